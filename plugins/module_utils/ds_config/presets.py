# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Starting points for ds_config.json, before a user's overrides.

A key stands here where the default is a poor start or changed between releases, or where people tune it. Compared with
what the field uses: transformers' DeepSpeed guide, LLaMA-Factory (examples/deepspeed), axolotl (deepspeed_configs),
open-instruct (configs/ds_configs), DeepSpeed's tutorials and examples. ``docs/ds_config.md`` sets them side by side.
"""

from __future__ import annotations

import copy
from typing import Any

from ..common.problems import Problem, shown
from .facts import AUTO, FILLED_IN, KNOWN_VERSIONS, NEWEST, Version, nearest_known

# DeepSpeed's default is 5e8 elements, 1 GB a buffer in 16 bit, of which there are two to three; 2e8 is what
# transformers' guide advises for smaller cards, and costs little bandwidth.
_BUCKET = 200_000_000
# The default became true in 0.19.5. Pinned memory needs an unlimited memlock, which the containers here have.
_CPU = {"device": "cpu", "pin_memory": True}
# No nvme_path: only the user knows the folder of the local disk, and its absence is an error of its own.
_NVME = {"device": "nvme", "pin_memory": True}

_ZERO1 = {
    "stage": 1,
    "allgather_bucket_size": _BUCKET,
    # DeepSpeed's default with stage 1 and 2, as in LLaMA-Factory: overlapped reduction read buffers that were already
    # in use again (issues 4298 and 5347, pull request 7965, issue 8061: NaN or a wrong norm), fixed after 0.18.9 only.
    "overlap_comm": False,
    "reduce_bucket_size": _BUCKET,
}
_ZERO2 = {**_ZERO1, "stage": 2, "contiguous_gradients": True, "reduce_scatter": True}
# With offload each rank copies another part of the gradients to the CPU first, instead of all the same one (as
# LLaMA-Factory); it pays with several ranks or accumulation steps, and costs nothing else.
_ZERO2_OFFLOAD = {**_ZERO2, "offload_optimizer": _CPU, "round_robin_gradients": True}
_ZERO3 = {
    "stage": 3,
    "contiguous_gradients": True,
    # Stage 3 is slow without it: it hides the gathering of parameters. It is also the default there.
    "overlap_comm": True,
    "reduce_bucket_size": _BUCKET,
    # Defaults, written because they are the first things to lower when a GPU is short by 1 to 2 GiB.
    "stage3_max_live_parameters": 1_000_000_000,
    "stage3_max_reuse_distance": 1_000_000_000,
    "stage3_param_persistence_threshold": 100_000,
    "stage3_prefetch_bucket_size": 50_000_000,
    # Gathering all shards while saving can run into the collective's timeout; zero_to_fp32.py does it afterwards.
    "stage3_gather_16bit_weights_on_model_save": False,
    # Elements that one step of the optimizer works on: its fp32 gradients, 4 bytes each, exist at once.
    "sub_group_size": 1_000_000_000,
}
_ZERO: dict[str, dict[str, Any]] = {
    "zero0": {"stage": 0},
    "zero1": _ZERO1,
    "zero2": _ZERO2,
    "zero3": _ZERO3,
    "zero2_offload": _ZERO2_OFFLOAD,
    # Between zero3 and zero3_offload: most models that miss stage 3 by their optimizer states need no more than this,
    # and their parameters do not cross PCIe for every layer.
    "zero3_offload_optimizer": {**_ZERO3, "offload_optimizer": _CPU},
    "zero3_offload": {**_ZERO3, "offload_optimizer": _CPU, "offload_param": _CPU},
    "zero3_infinity": {
        **_ZERO3,
        "offload_optimizer": _NVME,
        "offload_param": _NVME,
        # Four buffers of this many fp32 values are pinned per rank: 16 GB with the default 1e9, 1.6 GB with 1e8.
        "sub_group_size": 100_000_000,
    },
    # Stage 1 is the highest that the pipeline engine takes.
    "pipeline": _ZERO1,
    # DeepSpeed's ZenFlow tutorial: the most important 5 % of the gradients update on the GPU at every step, the rest on
    # the CPU every fourth, beside the next steps. Intervals of the selection stay at their default, "auto".
    "zenflow": {**_ZERO2_OFFLOAD, "zenflow": {"topk_ratio": 0.05, "update_interval": 4, "overlap_step": True}},
    # DeepSpeed's examples for one GH200: a tenth of the optimizer stays on the GPU, small groups so that CPU and GPU
    # work at the same time, no overlap_comm.
    "superoffload": {
        **_ZERO3,
        "offload_optimizer": {**_CPU, "super_offload": True, "ratio": 0.9, "cpuadam_cores_perc": 0.9},
        "overlap_comm": False,
        "reduce_bucket_size": 400_000_000,
        "sub_group_size": 400_000_000,
    },
}
PRESETS = tuple(_ZERO)
"""All names, whatever the release; ``available`` says which a release has."""

_FIRST = {"zenflow": Version(0, 17, 6), "superoffload": Version(0, 18, 9)}
"""First known release with what the preset needs; presets that are not here suit every known release."""

_ZENFLOW_TESTED = Version(0, 19, 3)
"""Known releases before it count ZenFlow's Adam among the untested optimizers, and want that allowed."""

# Requests large and deep enough to keep an NVMe disk busy. What is best depends on the disk: ds_nvme_tune measures it.
_AIO = {"block_size": 1_048_576, "overlap_events": True, "queue_depth": 32, "single_submit": False}


def available(version: Version) -> tuple[str, ...]:
    """The presets that this release of DeepSpeed has."""
    return tuple(name for name in PRESETS if _FIRST.get(name, KNOWN_VERSIONS[0]) <= nearest_known(version))


def refusal(name: str, version: Version) -> Problem | None:
    """Why this preset cannot be had with this release, or ``None``."""
    if name not in PRESETS:
        return Problem("preset", f"{shown(name)} is not one of {', '.join(PRESETS)}")
    if name not in available(version):
        return Problem("preset", f"{name} needs DeepSpeed {_FIRST[name]} or newer, not {version}")
    return None


def preset(name: str, integration: str, version: Version = NEWEST) -> dict[str, Any]:
    """A fresh copy of the preset; with a Hugging Face integration, "auto" where its arguments decide.

    Raises ``ValueError`` with the text of ``refusal`` for a preset that the release lacks: ask that first.
    """
    problem = refusal(name, version)
    if problem is not None:
        raise ValueError(str(problem))
    zero = copy.deepcopy(_ZERO[name])
    # The default was 0.0 (no clipping) before 0.19.3 and is 1.0 since: written, it means the same everywhere.
    config: dict[str, Any] = {"gradient_clipping": 1, "zero_optimization": zero}
    if name == "pipeline":
        config["pipeline"] = {"stages": AUTO, "partition": "best"}
    if name == "zero3_infinity":
        config["aio"] = dict(_AIO)
    if name == "zenflow":
        # Its optimizer is made from the file's parameters, which must be there; a learning rate is the user's to give.
        config["optimizer"] = {"type": "AdamW"}
        if nearest_known(version) < _ZENFLOW_TESTED:
            config["zero_allow_untested_optimizer"] = True
    if integration != "deepspeed":
        config.update(
            gradient_clipping=AUTO,
            train_batch_size=AUTO,
            train_micro_batch_size_per_gpu=AUTO,
            gradient_accumulation_steps=AUTO,
        )
        if name == "zenflow":
            filled = ("lr", "betas", "eps", "weight_decay")
            config["optimizer"]["params"] = {
                key: AUTO for key in filled if f"optimizer.params.{key}" in FILLED_IN[integration]
            }
        if zero["stage"] == 3:
            # the integration sizes these by the model's hidden size
            zero.update(
                reduce_bucket_size=AUTO,
                stage3_prefetch_bucket_size=AUTO,
                stage3_param_persistence_threshold=AUTO,
            )
    return config
