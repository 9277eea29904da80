# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a DeepSpeed configuration, a model and the ranks say about memory: the numbers that its terms are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .facts import AUTO, Version
from .model import MOMENTS, Model

_MOST = 10**18
_PIN_DEFAULT = Version(0, 19, 5)


@dataclass(frozen=True)
class Job:
    """What decides about memory, taken from a configuration; element sizes in bytes."""

    model: Model
    version: Version
    stage: int
    ranks: int
    """``N``: ranks that share the states."""
    data_parallel: int
    """Ranks that hold the same piece of the model; those of a sequence count too."""
    ranks_per_host: int
    pieces: int
    """Pipeline stages times tensor-parallel ranks: each holds that part of the model."""
    sequence_parallel: int
    micro_batch: int
    accumulates: bool
    weight: int
    gradient: int
    master: int
    """0 where the weights themselves are fp32 and no second copy exists."""
    moment: int
    activation: int
    moments: int
    optimizer_device: str
    optimizer_pinned: bool
    optimizer_ratio: float
    optimizer_buffers: int
    param_device: str
    param_buffers: int
    param_buffer_size: int
    max_in_cpu: int
    bucket: int
    overlap: bool
    sub_group: int
    live: int
    prefetch: int
    """Elements of the weights that stage 3 gathers ahead."""
    top_share: float
    """ZenFlow's share of parameters that update on the GPU."""
    secondary: int
    """Ranks of ZeRO++'s second copy of the weights, or 0."""
    notes: tuple[str, ...]

    @property
    def parameters(self) -> int:
        """Parameters of the model that one rank's pieces make up."""
        return share(self.model.parameters, self.pieces)

    @property
    def trainable(self) -> int:
        """``T``: those of them that are trained."""
        return share(self.model.trainable, self.pieces)

    @property
    def own(self) -> int:
        """``T / N``: those that this rank's optimizer steps."""
        return share(self.trainable, self.ranks)

    @property
    def kept(self) -> float:
        """The part of the optimizer that is on the GPU."""
        return 1.0 if self.optimizer_device == "none" else 1 - self.optimizer_ratio

    @property
    def cpu_master(self) -> int:
        """As ``master`` where the optimizer is offloaded: the CPU has a copy also of fp32 weights."""
        return self.master or 4


def job(config: dict[str, Any], model: Model, gpus_per_host: int | None, world_size: int, version: Version) -> Job:
    """What a checked configuration says about memory; ``world_size`` ranks, ``gpus_per_host`` of them in each host."""
    notes: list[str] = []
    zero = _block(config, "zero_optimization")
    stage = min(3, _number(zero, "stage", 0))
    pieces, sequence = _parallel(config, notes)
    data_parallel = max(1, world_size // pieces)
    shared = _number(zero, "mics_shard_size", 0) or data_parallel
    if gpus_per_host is None:
        notes.append("gpus.count is not given: all ranks are counted in one host")
    weight, activation, master = _precision(config, stage, notes)
    bf16, fp16 = _block(config, "bf16"), _block(config, "fp16")
    low_master = bf16.get("bf16_master_weights_and_grads") is True or fp16.get("fp16_master_weights_and_grads") is True
    accumulated = _block(config, "data_types").get("grad_accum_dtype")
    fp32_gradients = stage > 0 and accumulated in ("fp32", "float32", "float")
    optimizer, param = _block(zero, "offload_optimizer"), _block(zero, "offload_param")
    zenflow = _block(zero, "zenflow")
    pin = version >= _PIN_DEFAULT
    ranks = max(1, min(shared, data_parallel)) if stage else 1
    part, buffer = share(model.largest, ranks), _number(param, "buffer_size", 10**8)
    if stage == 3 and _device(param) == "nvme" and part > buffer:
        # runtime/swap_tensor/partitioned_param_swapper.py, get_buffer
        notes.append(
            f"zero_optimization.offload_param.buffer_size {buffer:,} is below a rank's part of the largest layer,"
            f" {part:,}: DeepSpeed fails with 'More elements than buffer size'; raise it"
        )
    return Job(
        model=model,
        version=version,
        stage=stage,
        ranks=ranks,
        data_parallel=data_parallel,
        ranks_per_host=min(gpus_per_host or world_size, world_size),
        pieces=pieces,
        sequence_parallel=sequence,
        micro_batch=_micro_batch(config, data_parallel // sequence, notes),
        accumulates=_number(config, "gradient_accumulation_steps", 1) > 1,
        weight=weight,
        gradient=4 if fp32_gradients else weight,
        master=2 if low_master and master else master,
        moment=2 if bf16.get("bf16_optimizer_states") is True else 4,
        activation=activation,
        moments=_moments(config, model, notes),
        # NVMe is for stage 3; stage 1 and 2 take it for the CPU
        optimizer_device="none" if not stage else _device(optimizer) if stage == 3 else _device(optimizer, "cpu"),
        optimizer_pinned=optimizer.get("pin_memory", pin) is True,
        optimizer_ratio=_ratio(optimizer.get("ratio"), 1.0) if stage == 3 else 1.0,
        optimizer_buffers=_number(optimizer, "buffer_count", 4),
        param_device=_device(param) if stage == 3 else "none",
        param_buffers=_number(param, "buffer_count", 5),
        param_buffer_size=buffer,
        max_in_cpu=_number(param, "max_in_cpu", 10**9),
        bucket=_bucket(zero, model),
        overlap=zero.get("overlap_comm") is True,
        sub_group=_number(zero, "sub_group_size", 10**9),
        prefetch=_prefetch(zero, model),
        live=_number(zero, "stage3_max_live_parameters", 10**9),
        top_share=_ratio(zenflow.get("topk_ratio"), 0.1) if zenflow and zenflow.get("offload") is not True else 0.0,
        secondary=max(0, _number(zero, "zero_hpz_partition_size", 1)) if stage == 3 else 0,
        notes=tuple(notes),
    )


def _precision(config: dict[str, Any], stage: int, notes: list[str]) -> tuple[int, int, int]:
    """Bytes of a weight, of an activation and of a master weight."""
    enabled = [_block(config, name).get("enabled") for name in ("fp16", "bf16")]
    if True in enabled:
        return 2, 2, 4
    if AUTO in enabled:
        notes.append("the integration decides between fp16, bf16 and fp32: counted is 16 bit")
        return 2, 2, 4
    notes.append("precision is fp32: neither fp16 nor bf16 is enabled")
    autocast = _block(config, "torch_autocast").get("enabled") is True
    return 4, 2 if autocast else 4, 4 if stage else 0


def _parallel(config: dict[str, Any], notes: list[str]) -> tuple[int, int]:
    """Pieces that the model is cut into, and ranks that share a sequence."""
    stages = 1
    if "pipeline" in config:
        stages = _number(_block(config, "pipeline"), "stages", 0)
        if not stages:
            notes.append("pipeline.stages is not a number: the model is counted as one piece, an upper bound")
            stages = 1
    tensor = max(1, _number(_block(config, "tensor_parallel"), "autotp_size", 1))
    if tensor > 1:
        notes.append("tensor parallelism cuts weights, not activations, here")
    return stages * tensor, max(1, _number(config, "sequence_parallel_size", 1))


def _micro_batch(config: dict[str, Any], replicas: int, notes: list[str]) -> int:
    micro = _number(config, "train_micro_batch_size_per_gpu", 0)
    if not micro:
        total, steps = _number(config, "train_batch_size", 0), _number(config, "gradient_accumulation_steps", 1)
        micro = total // (max(1, replicas) * max(1, steps))
        if not micro:
            notes.append("train_micro_batch_size_per_gpu is not a number: counted is 1")
    return max(1, micro)


def _moments(config: dict[str, Any], model: Model, notes: list[str]) -> int:
    kind = _block(config, "optimizer").get("type")
    if kind is None:
        return MOMENTS[model.optimizer]
    name = str(kind).lower()
    if name in MOMENTS:
        return MOMENTS[name]
    notes.append("optimizer.type is not one whose memory is known here: two values per parameter, as Adam")
    return 2


def _bucket(zero: dict[str, Any], model: Model) -> int:
    if zero.get("reduce_bucket_size") == AUTO:
        return model.hidden**2  # what transformers and accelerate fill in
    return _number(zero, "reduce_bucket_size", 500_000_000)


def _prefetch(zero: dict[str, Any], model: Model) -> int:
    if zero.get("stage3_prefetch_bucket_size") == AUTO:
        return model.hidden**2 * 9 // 10
    return _number(zero, "stage3_prefetch_bucket_size", 50_000_000)


def _device(block: dict[str, Any], nvme: str = "nvme") -> str:
    return {"cpu": "cpu", "nvme": nvme}.get(str(block.get("device")), "none")


def _block(config: dict[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    return value if isinstance(value, dict) else {}


def _number(block: dict[str, Any], name: str, default: int) -> int:
    value = block.get(name)
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    return min(value, _MOST) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _ratio(value: Any, default: float) -> float:
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if good else default


def share(amount: int, among: int) -> int:
    """An equal part, rounded up."""
    return -(-amount // max(1, among))
