# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Facts about ds_config.json that hold across its blocks: releases, deprecated keys, what an integration fills in.

Read in the sources of DeepSpeed 0.15.4, 0.16.9, 0.17.6, 0.18.9 and 0.19.0 to 0.19.8 (runtime/config.py and the
pydantic models), transformers 5.23 (integrations/deepspeed.py) and accelerate 1.15 (accelerator.py). The blocks are in
``blocks_training`` and ``blocks_tools``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

AUTO = "auto"
"""The word that the Hugging Face integrations replace by a value of their own before DeepSpeed sees it."""

INTEGRATIONS = ("deepspeed", "huggingface", "accelerate")
"""Who calls DeepSpeed: the script itself, transformers.Trainer, or accelerate."""

FILLED_IN: dict[str, frozenset[str]] = {
    "deepspeed": frozenset(),
    "huggingface": frozenset(
        {
            "train_batch_size",
            "train_micro_batch_size_per_gpu",
            "gradient_accumulation_steps",
            "gradient_clipping",
            "optimizer.params.lr",
            "optimizer.params.betas",
            "optimizer.params.eps",
            "optimizer.params.weight_decay",
            "scheduler.params.warmup_min_lr",
            "scheduler.params.warmup_max_lr",
            "scheduler.params.warmup_num_steps",
            "scheduler.params.total_num_steps",
            "fp16.enabled",
            "bf16.enabled",
            "zero_optimization.reduce_bucket_size",
            "zero_optimization.stage3_prefetch_bucket_size",
            "zero_optimization.stage3_param_persistence_threshold",
        }
    ),
}
"""The keys where each integration replaces "auto". Elsewhere DeepSpeed takes its own default in silence, or fails."""
FILLED_IN["accelerate"] = FILLED_IN["huggingface"] - {"optimizer.params.betas", "optimizer.params.eps"} | {
    "zero_optimization.stage3_gather_16bit_weights_on_model_save"
}

ZERO_ALIASES = {
    name: f"stage3_{name}"
    for name in (
        "allgather_sequential",
        "gather_16bit_weights_on_model_save",
        "max_live_parameters",
        "max_reuse_distance",
        "model_persistence_threshold",
        "module_granularity_threshold",
        "param_persistence_threshold",
        "prefetch_bucket_size",
        "use_all_reduce_for_fetch_params",
    )
}
"""Short names that DeepSpeed reads too. Written are the long ones: both together it refuses."""

TENSOR_PARALLEL_ALIASES = {"replace_with_kernel_inject": "kernel_inject", "tensor_parallel": "tp"}
"""The same for tensor_parallel, where the short ones are written."""

ZERO_DEPRECATED = {
    "cpu_offload": "offload_optimizer",
    "cpu_offload_param": "offload_param",
    "stage3_gather_fp16_weights_on_model_save": "stage3_gather_16bit_weights_on_model_save",
}
"""Old keys of zero_optimization that DeepSpeed still reads, and refuses beside the new one."""

ZERO_SWITCHES = ("cpu_offload", "cpu_offload_param")
"""Those that were switches, and whose new form is a block: off is written by leaving them out."""


class Version(NamedTuple):
    """A release of DeepSpeed, comparable."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


KNOWN_VERSIONS = (
    Version(0, 15, 4),
    Version(0, 16, 9),
    Version(0, 17, 6),
    Version(0, 18, 9),
    *(Version(0, 19, patch) for patch in range(9)),
)
"""Releases whose keys were read, oldest first. A key that came between two of them counts from the later one on."""
NEWEST = KNOWN_VERSIONS[-1]

_RELEASE = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})(?:[.+_a-z-][0-9A-Za-z.+_-]*)?")


def parse_version(text: str) -> Version | None:
    """``0.19.8``, ``v0.19.8``, ``0.19.8+cu126`` and the like; ``None`` for anything else."""
    match = _RELEASE.fullmatch(text.strip())
    return Version(*map(int, match.groups())) if match else None


def nearest_known(wanted: Version) -> Version:
    """The release whose facts serve for ``wanted``: itself, the last known of its series, else the next known one."""
    series = [known for known in KNOWN_VERSIONS if known[:2] == wanted[:2]]
    if wanted in series:
        return wanted
    if series:
        return series[-1]
    return next((known for known in KNOWN_VERSIONS if known > wanted), NEWEST)
