# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keys of a ds_config.json that are right alone and wrong together.

Source: DeepSpeed 0.19.8, runtime/config.py (``_do_error_check``), runtime/zero/config.py (validators),
runtime/engine.py and runtime/pipe/engine.py. What the engine alone refuses is found here before a job starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_facts import ZERO_DEPRECATED, Version
from ansible_collections.swarmspeed.cluster.plugins.module_utils._problems import Problem

ZERO = "zero_optimization"
_FP16_MASTER = "fp16.fp16_master_weights_and_grads"
_ANY_STAGE = Version(0, 18, 9)
"""First known release that takes fp16 master weights with stages 1 and 3."""


def get(config: dict[str, Any], path: str) -> Any:
    """The value at a dotted path, or ``None``."""
    value: Any = config
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def stage(config: dict[str, Any]) -> int:
    """The ZeRO stage, 0 where none is named."""
    value = get(config, f"{ZERO}.stage")
    return value if isinstance(value, int) else 0


def conflicts(config: dict[str, Any], version: Version) -> list[Problem]:
    """Combinations that this release of DeepSpeed refuses."""
    return [*_precision(config, version), *_zero(config), *_offload(config), *_replaced(config)]


def warnings(config: dict[str, Any]) -> list[Problem]:
    """Combinations that run, and do not do what they say."""
    return list(_idle(config))


def _precision(config: dict[str, Any], version: Version) -> Iterator[Problem]:
    if get(config, "fp16.enabled") is True and get(config, "bf16.enabled") is True:
        yield Problem("bf16.enabled", "cannot be true together with fp16.enabled; keep one of them")
    for path in (
        _FP16_MASTER,
        "bf16.bf16_master_weights_and_grads",
        "bf16.bf16_optimizer_states",
    ):
        if get(config, path) is True and stage(config) == 0:
            yield Problem(path, f"needs {ZERO}.stage 1, 2 or 3")
    if get(config, _FP16_MASTER) is True and version < _ANY_STAGE and stage(config) in (1, 3):
        yield Problem(_FP16_MASTER, f"needs {ZERO}.stage 2 in DeepSpeed {version}")
    if (
        get(config, "bf16.bf16_optimizer_states") is True
        and get(config, "bf16.bf16_master_weights_and_grads") is not True
    ):
        yield Problem("bf16.bf16_optimizer_states", "needs bf16.bf16_master_weights_and_grads: true")
    if get(config, "fp16.enabled") is True and not get(config, "fp16.loss_scale"):
        for key in ("loss_scale_window", "min_loss_scale"):
            value = get(config, f"fp16.{key}")
            if isinstance(value, int) and value <= 0:
                yield Problem(f"fp16.{key}", "must be above 0 with dynamic loss scaling (fp16.loss_scale 0)")


def _zero(config: dict[str, Any]) -> Iterator[Problem]:
    at = stage(config)
    if "pipeline" in config and at in (2, 3):
        yield Problem(f"{ZERO}.stage", f"{at} cannot be combined with pipeline; use stage 0 or 1, or remove pipeline")
    if get(config, f"{ZERO}.compute_grad_norm") is False and at not in (1, 2):
        yield Problem(f"{ZERO}.compute_grad_norm", "false works with stage 1 and 2 only")
    if config.get("gradient_allreduce_op") == "sum":
        for hindrance, present in (
            (f"{ZERO}.stage 3", at == 3),
            (f"{ZERO}.zenflow", get(config, f"{ZERO}.zenflow") is not None),
            ("compile.deepcompile", get(config, "compile.deepcompile") is True),
        ):
            if present:
                yield Problem("gradient_allreduce_op", f"sum cannot be combined with {hindrance}; use mean")


def _offload(config: dict[str, Any]) -> Iterator[Problem]:
    for key in ("offload_optimizer", "offload_param"):
        path = f"{ZERO}.{key}"
        if get(config, f"{path}.device") == "nvme" and not get(config, f"{path}.nvme_path"):
            yield Problem(f"{path}.nvme_path", "is missing; device nvme needs the folder of a local disk")
    ratio = get(config, f"{ZERO}.offload_optimizer.ratio")
    if isinstance(ratio, (int, float)) and ratio < 1 and stage(config) != 3:
        yield Problem(f"{ZERO}.offload_optimizer.ratio", "below 1 (a part stays on the GPU) works with stage 3 only")


def _replaced(config: dict[str, Any]) -> Iterator[Problem]:
    zero = config.get(ZERO)
    for old, new in ZERO_DEPRECATED.items():
        if isinstance(zero, dict) and old in zero and new in zero:
            yield Problem(
                f"{ZERO}.{old}", f"is the old form of {new}, which is set too (perhaps by the preset); keep {new}"
            )


def _idle(config: dict[str, Any]) -> Iterator[Problem]:
    zero = config.get(ZERO)
    if not isinstance(zero, dict):
        return
    for old, new in ZERO_DEPRECATED.items():
        if old in zero and new not in zero:
            yield Problem(f"{ZERO}.{old}", f"is deprecated; use {new}")
    if "cpu_offload_use_pin_memory" in zero:
        yield Problem(
            f"{ZERO}.cpu_offload_use_pin_memory", "is ignored by DeepSpeed; set pin_memory in the offload block"
        )
    if get(zero, "offload_param.device") in ("cpu", "nvme") and stage(config) != 3:
        yield Problem(
            f"{ZERO}.offload_param", f"has no effect with stage {stage(config)}; parameters are offloaded with stage 3"
        )
    if get(zero, "offload_optimizer.device") in ("cpu", "nvme") and stage(config) == 0:
        yield Problem(f"{ZERO}.offload_optimizer", "has no effect without ZeRO; set stage 1, 2 or 3")
