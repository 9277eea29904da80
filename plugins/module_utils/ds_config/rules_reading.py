# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ``DeepSpeedConfig`` refuses when it reads a configuration.

Source: DeepSpeed 0.15.4 to 0.19.8, runtime/config.py (``_initialize_params``, ``_do_error_check``),
runtime/zero/config.py (validators), runtime/precision_config.py and runtime/config_utils.py (deprecated keys).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..common.problems import Problem
from .facts import ZERO_DEPRECATED, Version
from .view import ZERO, View

FP16_MASTER = "fp16.fp16_master_weights_and_grads"
BF16_MASTER = "bf16.bf16_master_weights_and_grads"
BF16_STATES = "bf16.bf16_optimizer_states"
# First known releases with what the name says.
PRECISION_MODELS = Version(0, 17, 6)
"""fp16 and bf16 became pydantic blocks, whose keys count even where ``enabled`` is false."""
MASTER_ANY_STAGE = Version(0, 18, 9)
SUM = Version(0, 19, 6)
NO_ELASTICITY = Version(0, 19, 8)


def reading_conflicts(view: View) -> Iterator[Problem]:
    """Combinations that DeepSpeed refuses before there is an engine."""
    yield from _precision(view)
    yield from _zero(view)
    yield from _batch(view)


def fp16_master(view: View) -> bool:
    """Whether fp16 master weights are requested; before 0.17 only together with ``fp16.enabled``."""
    return view.on(FP16_MASTER) and (view.version >= PRECISION_MODELS or view.on("fp16.enabled"))


def _precision(view: View) -> Iterator[Problem]:
    if view.on("fp16.enabled") and view.on("bf16.enabled"):
        yield Problem("bf16.enabled", "cannot be true together with fp16.enabled; keep one of them")
    for path, requested in (
        (FP16_MASTER, fp16_master(view)),
        (BF16_MASTER, view.on(BF16_MASTER)),
        (BF16_STATES, view.on(BF16_STATES)),
    ):
        if requested and view.stage not in (1, 2, 3):
            yield Problem(path, f"needs {ZERO}.stage 1, 2 or 3")
    if fp16_master(view) and view.version < MASTER_ANY_STAGE and view.stage in (1, 3):
        yield Problem(FP16_MASTER, f"needs {ZERO}.stage 2 in DeepSpeed {view.version}")
    if view.on(BF16_STATES) and not view.on(BF16_MASTER):
        yield Problem(BF16_STATES, f"needs {BF16_MASTER}: true")
    if view.on("fp16.enabled") and view.number("fp16.loss_scale", 0) == 0:
        # Refused from 0.19.3 on. Before, a window of 0 divides by zero at the first step, and a floor of 0 lets the
        # scale reach 0 after enough overflows.
        for key in ("loss_scale_window", "min_loss_scale"):
            value = view.number(f"fp16.{key}", 1)
            if value is not None and value <= 0:
                yield Problem(f"fp16.{key}", "must be above 0 with dynamic loss scaling (fp16.loss_scale 0)")


def _zero(view: View) -> Iterator[Problem]:
    at = view.stage
    if view.get(f"{ZERO}.compute_grad_norm") is False and at not in (1, 2):
        yield Problem(f"{ZERO}.compute_grad_norm", "false works with stage 1 and 2 only")
    if view.get("gradient_allreduce_op") == "sum" and view.version >= SUM:
        for hindrance, present in (
            (f"{ZERO}.stage 3", at == 3),
            (f"{ZERO}.zenflow", view.zenflow),
            ("compile.deepcompile", view.on("compile.deepcompile")),
        ):
            if present:
                yield Problem("gradient_allreduce_op", f"sum cannot be combined with {hindrance}; use mean")
    ratio = view.number(f"{ZERO}.offload_optimizer.ratio", 1)
    if ratio is not None and ratio < 1 and at != 3:
        yield Problem(f"{ZERO}.offload_optimizer.ratio", "below 1 (a part stays on the GPU) works with stage 3 only")
    for old, new in ZERO_DEPRECATED.items():
        if view.has(f"{ZERO}.{old}") and view.has(f"{ZERO}.{new}"):
            yield Problem(
                f"{ZERO}.{old}", f"is the old form of {new}, which is also set (perhaps by the preset); keep {new}"
            )


def _batch(view: View) -> Iterator[Problem]:
    if not view.on("elasticity.enabled") or view.version >= NO_ELASTICITY:
        return
    if view.on("elasticity.ignore_non_elastic_batch_info"):
        return
    for key in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"):
        if key in view.config:
            yield Problem(
                key,
                "cannot be combined with elasticity, which sets the batch itself; remove elasticity,"
                " or set elasticity.ignore_non_elastic_batch_info: true",
            )
            return
