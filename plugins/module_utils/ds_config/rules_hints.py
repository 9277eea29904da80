# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What DeepSpeed takes, and does slowly or not at all.

Each group names its source in DeepSpeed 0.19.8 (older releases agree where nothing else is said). Only what is certain
from the configuration is said: keys of a block that is switched off on purpose (``enabled: false``) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..common.problems import Problem, shown
from .facts import ZERO_DEPRECATED, Version
from .rules_compile import STAGE_2
from .rules_engine import CLIPS
from .view import OFFLOADED, PARAM_DEVICE, ZERO, View

SMALL_MEMLOCK = 2**30
"""Bytes: offload pins buffers of hundreds of MiB each, so that a limit below this is soon reached."""
LARGE_BUCKET = 4 * 10**9
"""Bytes a GPU: more than this for gradient buffers alone is rarely meant."""
HUGE_SWAP = 32 * 10**9
"""Bytes of pinned host memory a rank: twice what DeepSpeed's defaults ask for."""

_PINS = Version(0, 19, 5)
_STAGE_3_ONLY = (
    "sub_group_size",
    "zero_hpz_partition_size",
    "zero_quantized_gradients",
    "zero_quantized_nontrainable_weights",
    "zero_quantized_weights",
)
_STAGE_1_AND_2_ONLY = (
    "allgather_bucket_size",
    "allgather_partitions",
    "parameter_alignment",
    "round_robin_gradients",
    "use_multi_rank_bucket_allreduce",
)
_ANY_STAGE = ("contiguous_gradients", "overlap_comm", "reduce_scatter", "round_robin_gradients")
_MUP = ("muadam", "muadamw", "musgd")


def hints(view: View, memlock: int | None) -> Iterator[Problem]:
    """What runs, and not as meant."""
    yield from _old_keys(view)
    yield from _idle(view)
    yield from _offload(view)
    yield from _memory(view, memlock)
    yield from _defaults(view)
    yield from _slow(view)
    yield from _elsewhere(view)


def _old_keys(view: View) -> Iterator[Problem]:
    """runtime/config_utils.py (``_process_deprecated_field``), runtime/zero/config.py."""
    for old, new in ZERO_DEPRECATED.items():
        if view.has(f"{ZERO}.{old}") and not view.has(f"{ZERO}.{new}"):
            yield Problem(f"{ZERO}.{old}", f"is deprecated; use {new}")
    if view.has(f"{ZERO}.cpu_offload_use_pin_memory"):
        yield Problem(
            f"{ZERO}.cpu_offload_use_pin_memory", "is ignored by DeepSpeed; set pin_memory in the offload block"
        )
    if view.stage == 3 and view.on(f"{ZERO}.elastic_checkpoint"):
        yield Problem(f"{ZERO}.elastic_checkpoint", "has no effect with stage 3; use checkpoint.load_universal")


def _idle(view: View) -> Iterator[Problem]:
    """Keys that nothing reads: the arguments that runtime/engine.py hands to the optimizer of each stage."""
    at = view.stage
    block = view.get(ZERO)
    keys = [key for key in block if isinstance(key, str)] if isinstance(block, dict) else []
    for key in keys:
        path = f"{ZERO}.{key[:80]}"
        if at < 3 and (key in _STAGE_3_ONLY or (key.startswith("stage3_") and key not in ZERO_DEPRECATED)):
            # false, and a group of 1, are what holds without the key too
            if block[key] is not False and view.number(path, 0) != 1:
                yield Problem(path, f"has no effect with stage {at}; it belongs to stage 3")
        elif at == 3 and key in _STAGE_1_AND_2_ONLY:
            yield Problem(path, "has no effect with stage 3; it belongs to stages 1 and 2")
        elif at == 0 and key in _ANY_STAGE and block[key] is True:
            yield Problem(path, "has no effect without ZeRO; set stage 1, 2 or 3")
    for precision in ("fp16", "bf16"):
        options = view.get(precision)
        if isinstance(options, dict) and options and "enabled" not in options:
            yield Problem(f"{precision}.enabled", f"is missing, so that {precision} is off; set it to true")
    if view.on("fp16.enabled") and view.number("fp16.loss_scale", 0):
        for key in ("hysteresis", "initial_scale_power", "loss_scale_window", "min_loss_scale"):
            if view.has(f"fp16.{key}"):
                yield Problem(f"fp16.{key}", "has no effect with a fixed loss scale; set fp16.loss_scale: 0")
    if view.pipeline and at == 1 and view.on(f"{ZERO}.overlap_comm"):
        # _configure_zero_optimizer says so in the log and goes on without
        yield Problem(f"{ZERO}.overlap_comm", "is switched off by the pipeline engine")


def _offload(view: View) -> Iterator[Problem]:
    """runtime/zero/offload_config.py, stage_1_and_2.py (a device other than none is the CPU), stage3.py."""
    at, device, path = view.stage, view.optimizer_device, f"{ZERO}.offload_optimizer"
    ratio = view.number(f"{path}.ratio", 1)
    offloaded = device in OFFLOADED
    for key, present, text in (
        (
            "offload_param",
            view.get(PARAM_DEVICE) in OFFLOADED and at != 3,
            f"has no effect with stage {at}; parameters are offloaded with stage 3",
        ),
        (
            "offload_optimizer",
            offloaded and at == 0 and view.has(path),
            "has no effect without ZeRO; set stage 1, 2 or 3",
        ),
        (
            "offload_optimizer.device",
            device == "nvme" and at in (1, 2),
            f"nvme means the CPU's memory with stage {at}; the disk is used with stage 3",
        ),
        *(
            (f"offload_optimizer.{name}", view.on(f"{path}.{name}") and device != "nvme", "works with device nvme only")
            for name in ("pipeline_read", "pipeline_write", "fast_init")
        ),
        (
            "offload_optimizer.buffer_count",
            at == 3 and device == "nvme" and view.adam and (view.number(f"{path}.buffer_count", 4) or 0) < 4,
            "should be at least 4 with Adam: parameter, gradient, momentum and variance",
        ),
        (
            "offload_optimizer.super_offload",
            view.on(f"{path}.super_offload") and at != 3,
            "has no effect without stage 3",
        ),
        (
            "offload_optimizer.cpuadam_cores_perc",
            view.has(f"{path}.cpuadam_cores_perc") and not view.on(f"{path}.super_offload"),
            "has no effect without super_offload: true",
        ),
        (
            "offload_optimizer.ratio",
            at == 3 and ratio is not None and ratio < 1 and not offloaded,
            "has no effect without a device cpu or nvme",
        ),
        (
            "zenflow.update_interval",
            # configure_zenflow of runtime/zenflow/engine.py
            view.zenflow and (view.number("gradient_accumulation_steps", 1) or 1) > 1,
            "takes the place of gradient_accumulation_steps, which has no effect with zenflow",
        ),
        ("zenflow", view.zenflow and at == 0, "has no effect without ZeRO; set stage 1 or 2"),
        (
            "zenflow",
            view.zenflow and at == 3 and not offloaded,
            "is made for an offloaded optimizer; set offload_optimizer.device: cpu",
        ),
    ):
        if present:
            yield Problem(f"{ZERO}.{key}", text)


def _memory(view: View, memlock: int | None) -> Iterator[Problem]:
    """Pinned memory: the docstrings of ``pin_memory`` in runtime/zero/offload_config.py and compile/config.py.

    Buffers: ``reduce_bucket_size`` elements, twice with overlap_comm in stage_1_and_2.py; for the disk
    ``buffer_count`` tensors of the largest group in runtime/swap_tensor/optimizer_utils.py.
    """
    if memlock is not None and not isinstance(memlock, bool) and 0 <= memlock < SMALL_MEMLOCK:
        for path, default in _pinned(view):
            yield Problem(
                path,
                f"pins host memory{default}, but the job's processes may lock {memlock // 1024} KiB only; raise"
                " memlock (ulimit -l, docker run --ulimit memlock=-1), or set it to false, which is slower",
            )
    at, bucket = view.stage, view.number(f"{ZERO}.reduce_bucket_size", 0)
    if at in (1, 2, 3) and bucket and not view.bf16_optimizer:
        width = {"fp16": 2, "bf16": 2}.get(view.precision or "", 4)
        twice = at < 3 and view.on(f"{ZERO}.overlap_comm")
        size = bucket * width * (2 if twice else 1)
        if size > LARGE_BUCKET and view.flag(f"{ZERO}.contiguous_gradients", True):
            cause = "two buffers, because of overlap_comm" if twice else "one buffer"
            yield Problem(
                f"{ZERO}.reduce_bucket_size", f"takes {size / 1e9:.0f} GB of every GPU ({cause}); 2e8 to 5e8 is usual"
            )
    if at == 3 and view.optimizer_device == "nvme":
        count = view.number(f"{ZERO}.offload_optimizer.buffer_count", 4) or 0
        group = view.number(f"{ZERO}.sub_group_size", 10**9) or 0
        if count * group * 4 > HUGE_SWAP:
            yield Problem(
                f"{ZERO}.sub_group_size",
                f"with buffer_count {shown(count)} lets each rank pin up to {count * group * 4 / 1e9:.0f} GB of host"
                " memory; 1e8 to 1e9 is usual",
            )


def _pinned(view: View) -> Iterator[tuple[str, str]]:
    """Paths of the switches that pin memory, and in words where a default does."""
    newer = view.version >= _PINS
    for key, used in (
        ("offload_optimizer", view.stage > 0 and view.optimizer_device in OFFLOADED),
        ("offload_param", view.stage == 3 and view.param_device in OFFLOADED),
    ):
        path = f"{ZERO}.{key}.pin_memory"
        if used and view.flag(path, newer):
            yield path, "" if view.has(path) else " (the default)"
    path = "compile.offload_activation_pin_memory"
    if view.on("compile.deepcompile") and view.on("compile.offload_activation") and view.flag(path, True):
        yield path, "" if view.has(path) else " (the default)"


def _defaults(view: View) -> Iterator[Problem]:
    """runtime/constants.py: ``GRADIENT_CLIPPING_DEFAULT`` was 0 before 0.19.3."""
    if view.version >= CLIPS and not view.has("gradient_clipping"):
        yield Problem(
            "gradient_clipping",
            f"is missing: DeepSpeed {CLIPS} and newer clip at 1, older ones not at all; write what is meant (0 is off)",
        )
    pipelined = view.pipeline and view.stage == 0 and view.precision == "bf16"
    if pipelined and view.version >= Version(0, 18, 9) and (view.number("gradient_accumulation_steps", 1) or 1) > 1:
        yield Problem(
            "bf16.enabled", f"gradients add up in bf16 with a pipeline without ZeRO; {ZERO}.stage 1 is more exact"
        )


def _slow(view: View) -> Iterator[Problem]:
    """utils/timer.py and comm/comm.py wait for the GPU at each measurement; the rest as said."""
    for path in ("wall_clock_breakdown", "flops_profiler.enabled", "comms_logger.enabled"):
        if view.on(path):
            yield Problem(path, "measures by waiting for the GPU, which slows training down; for a few steps only")
    if view.stage == 3 and view.on(f"{ZERO}.stage3_gather_16bit_weights_on_model_save"):
        # _zero3_consolidated_16bit_state_dict gathers layer by layer into rank 0's memory
        yield Problem(
            f"{ZERO}.stage3_gather_16bit_weights_on_model_save",
            "gathers the whole model in the first rank's memory at each save, which may outlast the time-out of"
            " collectives (DEEPSPEED_TIMEOUT); zero_to_fp32.py converts a checkpoint afterwards",
        )
    name, device = view.optimizer, view.optimizer_device
    if view.stage > 0 and device in OFFLOADED and name is not None:
        if view.torch_adam:
            # The engine refuses the same from a script, as "in most cases will yield poor performance".
            yield Problem("optimizer.params.torch_adam", "is slow on the CPU, where the offloaded optimizer works")
        elif name not in ("adam", "adamw", "adagrad", "lion", "muon"):
            yield Problem(
                "optimizer.type",
                f"{shown(view.get('optimizer.type'))} has no version for the CPU, where the offloaded optimizer works",
            )
    # _do_warning_check of runtime/config.py
    words = view.get("vocabulary_size")
    if isinstance(words, int) and not isinstance(words, bool) and words % 8:
        yield Problem("vocabulary_size", f"{shown(words)} is not a multiple of 8, which tensor cores need to be fast")


def _elsewhere(view: View) -> Iterator[Problem]:
    """What only the script, the image or the model can make work."""
    block = view.get("activation_checkpointing")
    path = "activation_checkpointing.number_checkpoints"
    if view.on("activation_checkpointing.contiguous_memory_optimization") and view.get(path) is None:
        # Megatron gives the number of its layers to deepspeed.checkpointing.configure
        yield Problem(
            path, "is missing, and contiguous_memory_optimization needs it; give it, unless the script does in its code"
        )
    if isinstance(block, dict) and any(value is True for value in block.values()):
        yield Problem(
            "activation_checkpointing", "works only if the model calls deepspeed.checkpointing; the engine does not"
        )
    compiled = view.get("compile")
    if view.on("compile.deepcompile"):
        yield Problem("compile.deepcompile", "works only if the script calls engine.compile()")
        if view.stage == 0 and view.version >= STAGE_2:
            # get_deepcompile_backend falls back
            yield Problem("compile.deepcompile", "does no more than torch.compile without ZeRO; set stage 1, 2 or 3")
    elif isinstance(compiled, dict):
        for key in ("offload_activation", "offload_opt_states", "offload_parameters", "free_activation"):
            if compiled.get(key) is True:
                yield Problem(f"compile.{key}", "has no effect without compile.deepcompile: true")
    if view.optimizer in _MUP:
        yield Problem("optimizer.type", f"{shown(view.get('optimizer.type'))} needs the Python package mup")
    if view.on("aio.use_gds"):
        # runtime/swap_tensor/aio_config.py
        yield Problem("aio.use_gds", "works with NVIDIA GPUs and GPUDirect Storage only")
