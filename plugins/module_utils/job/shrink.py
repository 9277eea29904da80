"""Whether a job can go on with fewer ranks than it began with, and its ds_config.json for them.

Also part of the supervisor's archive: standard library, Python 3.8 or later. What decides is whether a checkpoint
depends on the number of ranks; read in deepspeed/runtime/engine.py (``load_checkpoint``, ``_load_zero_checkpoint``) and
in runtime/zero/stage3.py of 0.15.4, 0.16.9, 0.17.6, 0.18.9 and 0.19.8:

- ZeRO stage 1 to 3: another number of data-parallel ranks is refused ("Automatic adjustment of ZeRO's optimizer state
  partitioning with a new world size is not currently supported"), except for a universal checkpoint.
- Stage 0: one file has model and optimizer. But up to 0.17.6 at least, bf16 without ZeRO goes the way of ZeRO
  (``self.zero_optimization() or self.bfloat16_enabled()``); in 0.18.9 no more, except with a pipeline, whose
  BF16_Optimizer keeps a part of the states on each rank.

Tried on CPUs, saved by two ranks and loaded by one: stage 0 in fp32 with 0.17.6, 0.18.9 and 0.19.8, in bf16 with the
last two (0.17.6 refuses), stage 1 (0.17.6 and 0.19.8 refuse), universal checkpoints of stages 1 and 3 with 0.19.8; and
a pipeline of two stages in fp32 with 0.19.8, saved by four ranks and loaded by two. fp16 was read, not tried.
"""

from __future__ import annotations

import re
from typing import Any

from .batch import batch_ranks, positive

KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
WHOLE_BF16 = (0, 18, 9)
"""The first release read whose checkpoints of bf16 without ZeRO do not depend on the number of ranks."""


class ShrinkError(Exception):
    """The configuration does not allow that number of ranks. The text says why, and which it does."""


def refusal(config: dict[str, Any] | None, slots: list[int], release: str) -> str:
    """Why a job could not go on without one of its nodes; empty where it could, without one of them at least.

    ``config``: that of ds_config.json, ``None`` where the script does not get it: then its checkpoints decide, once
    there are some. ``slots``: those of each node, rank 0's first, which cannot be left out. ``release``: DeepSpeed's.
    """
    if config is None:
        return ""
    bound = bound_to_ranks(config, release)
    if bound:
        return bound
    first = ""
    for number in slots[1:]:
        try:
            shrink(config, sum(slots), sum(slots) - number)
            return ""
        except ShrinkError as error:
            first = first or str(error)
    return first


def zero_stage(config: dict[str, Any]) -> int:
    """The stage as DeepSpeed takes it: ``true`` is an old way to say 1, a missing one or "auto" is 0."""
    zero = config.get("zero_optimization")
    if zero is True:
        return 1
    stage = zero.get("stage") if isinstance(zero, dict) else 0
    if isinstance(stage, str) and stage.isdigit():
        return int(stage)
    return stage if isinstance(stage, int) else 0


def is_universal(config: Any) -> bool:
    """Whether it loads universal checkpoints, those that ds_to_universal has made for any number of ranks."""
    return _at(config, ("checkpoint", "load_universal")) is True


def bound_to_ranks(config: dict[str, Any], release: str) -> str:
    """Why checkpoints made with this configuration can only be loaded by as many ranks; empty where by others, too."""
    stage = zero_stage(config)
    if stage:
        if is_universal(config):
            return ""
        return (
            f"zero_optimization.stage is {stage}, and DeepSpeed does not load a checkpoint of ZeRO into another number "
            "of ranks. Possible with stage 0, or from a universal checkpoint (checkpoint.load_universal: true)."
        )
    enabled = _at(config, ("bf16", "enabled"))
    bf16 = (enabled if enabled is not None else _at(config, ("bfloat16", "enabled"))) in (True, "auto")
    if bf16 and isinstance(config.get("pipeline"), dict):
        return "with bf16 and a pipeline each rank keeps a part of the optimizer's state. Possible with fp16 or fp32."
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", release)
    if bf16 and found and tuple(map(int, found.groups())) < WHOLE_BF16:
        least = ".".join(map(str, WHOLE_BF16))
        return (
            f"DeepSpeed {release} splits bf16's optimizer states among the ranks, also without ZeRO. "
            f"Possible from {least} on, or with fp16 or fp32."
        )
    return ""


def shrink(config: dict[str, Any], old_world: int, new_world: int) -> tuple[dict[str, Any], str]:
    """The configuration for fewer ranks with the same micro batch, and what to say about it; or ShrinkError.

    train_batch_size stays where gradient_accumulation_steps can make up for the ranks, else it is the nearest possible.
    """
    elastic = config.get("elasticity")
    if isinstance(elastic, dict) and elastic.get("enabled") is True:
        raise ShrinkError("elasticity sets the batch sizes itself: shrink by hand, within its min_gpus and max_gpus.")
    old, new = _batch_ranks(config, old_world), _batch_ranks(config, new_world)
    words = f"{new_world} instead of {old_world} ranks"
    total, micro, steps = (config.get(key) for key in KEYS)
    if any(value == "auto" for value in (total, micro, steps)) and total in (None, "auto"):
        return config, f"{words}: the script sets the batch, which gets smaller where it does not make up for them."
    for key, value in zip(KEYS, (total, micro, steps)):
        if value is not None and not positive(value):
            raise ShrinkError(
                f"{key} is {value!r}: the script sets it, so the batch for {new_world} ranks is not known here. "
                "Give the three batch sizes as numbers in ds_config.json, and the same to the script."
            )
    if total is None and micro is None:
        raise ShrinkError("ds_config.json has neither train_batch_size nor train_micro_batch_size_per_gpu: give one.")
    micro = micro or max(1, (total or 0) // (old * (steps or 1)))
    steps = steps or (total // (micro * old) if total else 1)
    total = total or micro * steps * old
    if total != micro * steps * old:
        raise ShrinkError(
            f"train_batch_size {total} is not micro batch {micro} * accumulation {steps} * {old} data-parallel ranks: "
            "the configuration does not fit the job as it is."
        )
    after, left = divmod(total, micro * new)
    if 2 * left > micro * new or not after:
        after += 1
    changed = {**config, **dict(zip(KEYS, (after * micro * new, micro, after)))}
    if "data_parallel_size" in config:
        changed["data_parallel_size"] = new
    slower = f"a step takes {after / steps:.3g} times as long."
    if not left:
        return changed, (
            f"{words}: gradient_accumulation_steps {steps} becomes {after}, so train_batch_size stays {total} and the "
            f"micro batch {micro}; {slower}"
        )
    return changed, (
        f"{words}: train_batch_size {total} becomes {after * micro * new}, the nearest multiple of micro batch {micro} "
        f"* {new} data-parallel ranks, and gradient_accumulation_steps {steps} becomes {after}; {slower} The learning "
        "rate stays as it is."
    )


_DIVIDE = (
    ("tensor_parallel", "autotp_size"),
    ("tensor_parallel", "tp", "tp_size"),
    ("expert_parallel", "autoep_size"),
    ("zero_optimization", "zero_hpz_partition_size"),
    ("zero_optimization", "mics_shard_size"),
)
"""Sizes of groups into which the ranks that split a batch are divided."""


def _batch_ranks(config: dict[str, Any], world_size: int) -> int:
    """Among how many of ``world_size`` ranks the batch is split, or ShrinkError."""
    # What is configured now is that for the ranks there were.
    ranks, (path, words) = batch_ranks({**config, "data_parallel_size": None}, world_size)
    if path:
        raise ShrinkError(f"{path} {words}.")
    if ranks is None:
        stages = _at(config, ("pipeline", "stages")) or "auto"
        raise ShrinkError(f"pipeline.stages is {stages!r}: the script sets it, and the ranks it takes are not known.")
    for where in _DIVIDE:
        size = _at(config, where)
        if positive(size) and ranks % size:
            raise ShrinkError(f"{'.'.join(where)} {size} does not divide {ranks} data-parallel ranks.")
    return ranks


def _at(config: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        config = config.get(key) if isinstance(config, dict) else None
    return config
