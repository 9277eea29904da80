# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The blocks of ds_config.json that choose and cut data: curricula, dynamic batches, random token dropping.

Source: runtime/data_pipeline (config.py, constants.py, curriculum_scheduler.py, data_sampling, data_routing) of the
releases named in ``facts``.
"""

from __future__ import annotations

from .field import COUNT, FLAG, SIZE, TEXT, WHOLE, Field, block, choice, needed, since

_SAMPLING = "data_efficiency.data_sampling"
_CURRICULUM = f"{_SAMPLING}.curriculum_learning"
_METRIC = f"{_CURRICULUM}.curriculum_metrics"
_LTD = "data_efficiency.data_routing.random_ltd"

SCHEDULE: dict[str, Field] = {
    "min_difficulty": needed(WHOLE),
    "max_difficulty": needed(WHOLE),
    "schedule_type": needed(choice("fixed_discrete", "fixed_root", "fixed_linear", "custom")),
    "schedule_config": block(f"{_METRIC}.schedule_config"),
}
"""How the difficulty of a curriculum grows; the same in the curriculum_learning that left the top level in 0.19.8."""

DATA: dict[str, dict[str, Field]] = {
    "data_efficiency": {
        "enabled": FLAG,
        "seed": WHOLE,
        "data_sampling": block(_SAMPLING),
        "data_routing": block("data_efficiency.data_routing"),
    },
    _SAMPLING: {
        "enabled": FLAG,
        "num_epochs": COUNT,
        "num_workers": SIZE,
        "pin_memory": since("0.16.9", FLAG),
        "curriculum_learning": block(_CURRICULUM),
        "dynamic_batching": since("0.16.9", block(f"{_SAMPLING}.dynamic_batching")),
    },
    _CURRICULUM: {
        "enabled": FLAG,
        "data_cluster_path": needed(TEXT, "enabled"),
        "curriculum_metrics": needed(Field("groups", block=_METRIC), "enabled"),
    },
    _METRIC: {
        **SCHEDULE,
        "index_to_sample_path": TEXT,
        "index_to_metric_path": TEXT,
        "difficulty_type": needed(choice("value", "percentile")),
        "clustering_type": needed(choice("single_cluster", "schedule_based")),
    },
    f"{_METRIC}.schedule_config": {
        "difficulty": Field("wholes"),
        "max_step": Field("wholes"),
        "total_curriculum_step": COUNT,
        "difficulty_step": COUNT,
        "root_degree": COUNT,
    },
    f"{_SAMPLING}.dynamic_batching": {
        "enabled": FLAG,
        "metrics_path": TEXT,
        "lr_scaling_method": choice("linear", "sqrt", "none"),
        "min_batch_size": COUNT,
        "max_batch_size": COUNT,
        "sequence_picking_order": choice("dataloader", "random", "seqlen"),
        "max_tokens": needed(COUNT, "enabled"),
        "verbose": FLAG,
    },
    "data_efficiency.data_routing": {"enabled": FLAG, "random_ltd": block(_LTD)},
    _LTD: {
        "enabled": FLAG,
        "total_layer_num": needed(COUNT, "enabled"),
        "random_ltd_layer_num": needed(COUNT, "enabled"),
        "random_ltd_layer_id": needed(Field("wholes", ge=0), "enabled"),
        "model_mask_name": TEXT,
        "model_type": needed(choice("decoder", "encoder"), "enabled"),
        "hidden_state_order": needed(choice("batch_seq_dim", "seq_batch_dim"), "enabled"),
        "micro_batch_size": COUNT,  # written over by the engine, as the next
        "global_batch_size": COUNT,
        "random_ltd_schedule": needed(block(f"{_LTD}.random_ltd_schedule"), "enabled"),
        "layer_token_lr_schedule": block(f"{_LTD}.layer_token_lr_schedule"),
    },
    f"{_LTD}.random_ltd_schedule": {
        "min_value": needed(SIZE),
        "max_value": needed(COUNT),
        "schedule_type": needed(choice("fixed_linear")),
        "schedule_config": needed(block(f"{_LTD}.random_ltd_schedule.schedule_config")),
    },
    f"{_LTD}.random_ltd_schedule.schedule_config": {"require_steps": needed(COUNT), "seq_per_step": needed(COUNT)},
    f"{_LTD}.layer_token_lr_schedule": {
        "enabled": FLAG,
        "total_layer_tokens": COUNT,
        "warmup_type": TEXT,
        "warmup_layer_tokens": SIZE,
    },
}
