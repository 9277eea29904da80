# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ``deepspeed.initialize`` refuses whatever the optimizer is.

Source: DeepSpeed 0.15.4 to 0.19.8, runtime/engine.py (``_do_sanity_check``, ``_do_optimizer_sanity_check``,
``_configure_zero_optimizer``), runtime/pipe/engine.py, runtime/zero/stage_1_and_2.py, runtime/zero/stage3.py,
runtime/zero/partition_parameters.py, runtime/torch_autocast.py, runtime/activation_checkpointing/checkpointing.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..common.problems import Problem, shown
from .facts import Version
from .rules_reading import MASTER_ANY_STAGE, PRECISION_MODELS, SUM
from .view import OFFLOADED, ZERO, View

# First known releases with what the name says; CLIPS is that of a default of 1 for gradient_clipping.
_TENSOR_PARALLEL = Version(0, 16, 9)
_TP_SIZE = Version(0, 18, 9)
_PARAM_DTYPE = Version(0, 19, 2)
_MANAGED = Version(0, 19, 4)
_TENSOR_PARALLEL_STAGE_3 = Version(0, 19, 4)
_NO_AMP = Version(0, 19, 8)
CLIPS = Version(0, 19, 3)


def engine_conflicts(view: View, world_size: int | None) -> Iterator[Problem]:
    """Combinations that no optimizer and no model makes work."""
    yield from _precision(view)
    yield from _pipeline(view)
    yield from _reduction(view)
    yield from _grad_norm(view)
    yield from _disk(view)
    yield from _sizes(view, world_size)
    yield from _activations(view)


def _precision(view: View) -> Iterator[Problem]:
    precision, accumulated = view.precision, view.dtype("data_types.grad_accum_dtype")
    stored = view.dtype("data_types.param_dtype")
    if stored and precision and stored != precision and view.version >= _PARAM_DTYPE:
        text = f"is {stored}, but the precision is {precision}; enable the block {stored}, or remove the key"
        if stored == "fp32":
            text = f"is fp32, but {precision}.enabled is true; remove one of the two"
        yield Problem("data_types.param_dtype", text)
    if accumulated and precision and view.stage == 0 and not _accumulates(view, precision, accumulated):
        yield Problem(
            "data_types.grad_accum_dtype",
            f"{accumulated} does not work with precision {precision} without ZeRO in DeepSpeed {view.version}; set"
            f" {ZERO}.stage 1, or remove the key",
        )
    if view.on("torch_autocast.enabled"):
        if view.on(f"{ZERO}.zero_quantized_weights"):
            yield Problem(f"{ZERO}.zero_quantized_weights", "cannot be combined with torch_autocast.enabled")
        if view.version < MASTER_ANY_STAGE and precision in ("fp16", "bf16"):
            yield Problem(
                "torch_autocast.enabled",
                f"cannot be combined with {precision}.enabled in DeepSpeed {view.version}; keep one of them",
            )
    if view.on("amp.enabled") and view.version < _NO_AMP:
        if view.stage > 0:
            yield Problem("amp.enabled", f"cannot be combined with {ZERO}.stage {view.stage}; use fp16 or bf16")
        elif precision in ("fp16", "bf16"):
            yield Problem("amp.enabled", f"cannot be combined with {precision}.enabled; keep one of them")


def _accumulates(view: View, precision: str, accumulated: str) -> bool:
    """Whether the engine without ZeRO accumulates in this type."""
    if precision == "bf16" and view.version < MASTER_ANY_STAGE and accumulated == "fp32":
        return True
    if precision == "bf16" and view.version < PRECISION_MODELS and accumulated == "bf16":
        return view.pipeline
    return precision == accumulated


def _pipeline(view: View) -> Iterator[Problem]:
    at = view.stage
    if view.pipeline and at in (2, 3):
        yield Problem(f"{ZERO}.stage", f"{at} cannot be combined with pipeline; use stage 0 or 1, or remove pipeline")
    if view.get("managed_gradient_accumulation") is not False or view.version < _MANAGED:
        return
    for hindrance, present in (
        ("pipeline", view.pipeline),
        ("compile.deepcompile", view.on("compile.deepcompile")),
        ("amp.enabled", view.on("amp.enabled") and view.version < _NO_AMP),
        (f"{ZERO}.overlap_comm with stage {at}", at < 2 and view.on(f"{ZERO}.overlap_comm")),
        # In the release that brought the key, and in that one only.
        (f"{ZERO}.offload_optimizer", view.version == _MANAGED and view.optimizer_device in OFFLOADED),
        (f"{ZERO}.offload_param", view.version == _MANAGED and view.param_device in OFFLOADED),
    ):
        if present:
            yield Problem("managed_gradient_accumulation", f"false cannot be combined with {hindrance}")


def _reduction(view: View) -> Iterator[Problem]:
    """How gradients are scaled and summed."""
    at = view.stage
    scatters = view.flag(f"{ZERO}.reduce_scatter", True)
    averages = view.get("gradient_allreduce_op") != "sum" or view.version < SUM
    if scatters and (at == 3 or (at == 2 and averages)):
        remedy = f"works with {ZERO}.stage {at} only if {ZERO}.reduce_scatter is false"
        factor = view.number("gradient_predivide_factor", 1)
        if factor is not None and factor != 1:
            yield Problem("gradient_predivide_factor", f"other than 1 {remedy}")
        if view.on("prescale_gradients"):
            yield Problem("prescale_gradients", f"true {remedy}")
    if at == 3 and scatters is False and view.on(f"{ZERO}.zero_quantized_gradients"):
        yield Problem(f"{ZERO}.zero_quantized_gradients", f"needs {ZERO}.reduce_scatter: true with stage 3")
    bucket = view.number(f"{ZERO}.allgather_bucket_size", 0)
    if at in (1, 2) and not view.bf16_optimizer and bucket is not None and bucket % 2:
        yield Problem(f"{ZERO}.allgather_bucket_size", f"must be even with stage 1 and 2, not {shown(bucket)}")
    if view.on(f"{ZERO}.legacy_stage1") and at > 0 and not view.bf16_optimizer:
        yield Problem(f"{ZERO}.legacy_stage1", "left DeepSpeed long ago; remove the key")


def _grad_norm(view: View) -> Iterator[Problem]:
    if view.get(f"{ZERO}.compute_grad_norm") is not False or view.stage not in (1, 2):
        return
    path = f"{ZERO}.compute_grad_norm"
    if view.bf16_optimizer:
        yield Problem(path, "false does not work with stage 1, bf16 and data_types.grad_accum_dtype fp32")
        return
    clipping = view.number("gradient_clipping", 1 if view.version >= CLIPS else 0)
    if clipping:
        default = "" if view.has("gradient_clipping") else " (1 is the default)"
        yield Problem(path, f"false needs gradient_clipping: 0{default}: clipping needs the norm")
    if view.zenflow:
        yield Problem(path, f"false cannot be combined with {ZERO}.zenflow")
    if view.optimizer_device in OFFLOADED:
        yield Problem(path, f"false cannot be combined with {ZERO}.offload_optimizer")


def _disk(view: View) -> Iterator[Problem]:
    """Stage 3 alone writes to the disk; with stage 1 and 2 a device ``nvme`` means the CPU's memory."""
    for key, device in (("offload_optimizer", view.optimizer_device), ("offload_param", view.param_device)):
        if view.stage == 3 and device == "nvme" and not view.get(f"{ZERO}.{key}.nvme_path"):
            yield Problem(f"{ZERO}.{key}.nvme_path", "is missing; device nvme needs the folder of a local disk")


def _sizes(view: View, world_size: int | None) -> Iterator[Problem]:
    tensor = view.number("tensor_parallel.autotp_size", 0) or 0
    if tensor > 1 and view.version >= _TENSOR_PARALLEL:
        path = "tensor_parallel.autotp_size"
        if view.stage == 3 and view.version < _TENSOR_PARALLEL_STAGE_3:
            yield Problem(
                path, f"above 1 cannot be combined with {ZERO}.stage 3 before DeepSpeed {_TENSOR_PARALLEL_STAGE_3}"
            )
        if view.pipeline:
            # PipelineEngine asserts its own number of data-parallel ranks, without a word
            yield Problem(path, "above 1 cannot be combined with pipeline")
        if world_size is not None and world_size % tensor:
            yield Problem(path, f"{shown(tensor)} does not divide the {world_size} ranks")
        other = view.number("tensor_parallel.tp.tp_size", 1)
        if view.version >= _TP_SIZE and other is not None and other not in (1, tensor):
            yield Problem(
                "tensor_parallel.tp.tp_size",
                f"is {shown(other)}, but {path} is {shown(tensor)}; keep {path}",
            )
    secondary = view.number(f"{ZERO}.zero_hpz_partition_size", 1) or 1
    if view.stage == 3 and world_size is not None and 1 < secondary < world_size and world_size % secondary:
        yield Problem(f"{ZERO}.zero_hpz_partition_size", f"{shown(secondary)} does not divide the {world_size} ranks")


def _activations(view: View) -> Iterator[Problem]:
    """What ``deepspeed.checkpointing.configure`` asserts; without that call the block has no effect at all.

    It asserts ``number_checkpoints`` too, which a script may give it instead, as Megatron does: that is a warning.
    """
    path = "activation_checkpointing"
    on = view.on(f"{path}.contiguous_memory_optimization")
    if on and view.flag(f"{path}.partition_activations", False) is False:
        yield Problem(f"{path}.contiguous_memory_optimization", f"needs {path}.partition_activations: true")
