# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Starting points for ds_config.json, before a user's overrides.

A key stands here where the default is a poor start or changed between releases, or where people tune it.
"""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_facts import AUTO

# DeepSpeed's default is 5e8 elements. overlap_comm holds 4.5 times both buckets, 9 GB in 16 bit; 2e8 costs 3.6 GB
# (transformers' DeepSpeed guide, https://huggingface.co/docs/transformers/deepspeed).
_BUCKET = 200_000_000
# The default became true in 0.19.5. Pinned memory needs an unlimited memlock, which the containers here have.
_CPU = {"device": "cpu", "pin_memory": True}

_ZERO1 = {"stage": 1, "allgather_bucket_size": _BUCKET, "reduce_bucket_size": _BUCKET}
_ZERO2 = {**_ZERO1, "stage": 2, "contiguous_gradients": True, "overlap_comm": True, "reduce_scatter": True}
_ZERO3 = {
    "stage": 3,
    "contiguous_gradients": True,
    "overlap_comm": True,
    "reduce_bucket_size": _BUCKET,
    "stage3_max_live_parameters": 1_000_000_000,
    "stage3_max_reuse_distance": 1_000_000_000,
    "stage3_param_persistence_threshold": 100_000,
    "stage3_prefetch_bucket_size": 50_000_000,
    # Gathering all shards while saving can run into the collective's timeout; zero_to_fp32.py does it afterwards.
    "stage3_gather_16bit_weights_on_model_save": False,
    "sub_group_size": 1_000_000_000,
}
_ZERO: dict[str, dict[str, Any]] = {
    "zero0": {"stage": 0},
    "zero1": _ZERO1,
    "zero2": _ZERO2,
    "zero3": _ZERO3,
    "zero2_offload": {**_ZERO2, "offload_optimizer": _CPU},
    "zero3_offload": {**_ZERO3, "offload_optimizer": _CPU, "offload_param": _CPU},
    # Stage 1 is the highest that the pipeline engine takes.
    "pipeline": _ZERO1,
}
PRESETS = tuple(_ZERO)


def preset(name: str, integration: str) -> dict[str, Any]:
    """A fresh copy of the preset; with a Hugging Face integration, "auto" where its arguments decide."""
    zero = copy.deepcopy(_ZERO[name])
    # The default was 0.0 (no clipping) before 0.19.3 and is 1.0 since: written, it means the same everywhere.
    config: dict[str, Any] = {"gradient_clipping": 1, "zero_optimization": zero}
    if name == "pipeline":
        config["pipeline"] = {"stages": AUTO, "partition": "best"}
    if integration != "deepspeed":
        config.update(
            gradient_clipping=AUTO,
            train_batch_size=AUTO,
            train_micro_batch_size_per_gpu=AUTO,
            gradient_accumulation_steps=AUTO,
        )
        if zero["stage"] == 3:
            # the integration sizes these by the model's hidden size
            zero.update(
                reduce_bucket_size=AUTO,
                stage3_prefetch_bucket_size=AUTO,
                stage3_param_persistence_threshold=AUTO,
            )
    return config
