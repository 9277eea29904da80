# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The blocks of ds_config.json that left DeepSpeed in 0.19.7 and 0.19.8, for the releases that still have them.

Source: compression/config.py, nebula/config.py, elasticity/config.py, runtime/constants.py and runtime/config.py of
DeepSpeed 0.15.4 to 0.19.7. ``quantize_training`` is not described: no release known here reads it.
"""

from __future__ import annotations

from .blocks_data import SCHEDULE
from .field import AMOUNT, COUNT, FLAG, LIST, NUMBER, SHARE, SIZE, TEXT, TEXTS, Field, block, choice, needed

_DENSE_RATIO = {"dense_ratio": needed(Field("number", gt=0, le=1))}
_METHOD = choice("l1", "topk")


def _technique(name: str, shared: dict[str, Field], group: dict[str, Field]) -> dict[str, dict[str, Field]]:
    """The four blocks of one technique of compression_training; ``group``: what is set for each group of modules."""
    path = f"compression_training.{name}"
    groups = f"{path}.different_groups"
    return {
        path: {
            "shared_parameters": block(f"{path}.shared_parameters"),
            "different_groups": needed(Field("groups", block=groups)),
        },
        f"{path}.shared_parameters": {"enabled": FLAG, "schedule_offset": SIZE, **shared},
        groups: {"params": needed(block(f"{groups}.params")), "modules": TEXTS, "related_modules": LIST},
        f"{groups}.params": group,
    }


_TECHNIQUES = {
    **_technique(
        "weight_quantization",
        {
            "quantizer_kernel": FLAG,
            "quantize_groups": COUNT,
            "quantize_verbose": FLAG,
            "quantization_type": choice("symmetric", "asymmetric"),
            "quantize_weight_in_forward": FLAG,
            "rounding": choice("nearest", "stochastic"),
            "fp16_mixed_quantize": block("compression_training.weight_quantization.fp16_mixed_quantize"),
        },
        {"start_bits": needed(COUNT), "target_bits": needed(COUNT), "quantization_period": SIZE},
    ),
    **_technique(
        "activation_quantization",
        {
            "quantization_type": choice("symmetric", "asymmetric"),
            "range_calibration": choice("dynamic", "static"),
        },
        {"bits": needed(COUNT)},
    ),
    **_technique(
        "sparse_pruning",
        {
            "method": choice("l1", "topk", "snip_momentum"),
            "block_pattern": TEXT,
            "dense_ratio": Field("number", gt=0, lt=1),
            "schedule_offset_stride": COUNT,
            "schedule_offset_end": SIZE,
            "excluded_modules": TEXTS,
        },
        _DENSE_RATIO,
    ),
    **_technique("row_pruning", {"method": _METHOD}, _DENSE_RATIO),
    **_technique("head_pruning", {"method": _METHOD, "num_heads": needed(COUNT, "enabled")}, _DENSE_RATIO),
    **_technique("channel_pruning", {"method": _METHOD}, _DENSE_RATIO),
}

REMOVED: dict[str, dict[str, Field]] = {
    "nebula": {
        "enabled": FLAG,
        "nebula_load_path": TEXT,
        "enable_nebula_load": FLAG,
        "persistent_storage_path": TEXT,
        "persistent_time_interval": COUNT,
        "num_of_version_in_retention": COUNT,
    },
    "elasticity": {
        "enabled": FLAG,
        "max_train_batch_size": needed(COUNT, "enabled"),
        "micro_batch_sizes": needed(Field("wholes", gt=0), "enabled"),
        "min_gpus": COUNT,
        "max_gpus": COUNT,
        "model_parallel_size": COUNT,
        "num_gpus_per_node": COUNT,
        "min_time": AMOUNT,
        "prefer_larger_batch": FLAG,
        "ignore_non_elastic_batch_info": FLAG,
        "version": NUMBER,
    },
    # the rest is handed to Apex as it is
    "amp": {"enabled": needed(FLAG)},
    "eigenvalue": {
        "enabled": FLAG,
        "verbose": FLAG,
        "max_iter": COUNT,
        "tol": AMOUNT,
        "stability": AMOUNT,
        "gas_boundary_resolution": COUNT,
        "layer_name": TEXT,
        "layer_num": SIZE,
    },
    "curriculum_learning": {"enabled": needed(FLAG), "curriculum_type": needed(TEXT, "enabled"), **SCHEDULE},
    "progressive_layer_drop": {
        "enabled": needed(FLAG),
        "theta": needed(SHARE, "enabled"),
        "gamma": needed(AMOUNT, "enabled"),
    },
    "sparse_attention": {
        "mode": choice("dense", "fixed", "variable", "bigbird", "bslongformer"),
        "block": COUNT,
        "different_layout_per_head": FLAG,
        "num_local_blocks": SIZE,
        "num_global_blocks": SIZE,
        "attention": choice("bidirectional", "unidirectional"),
        "horizontal_global_attention": FLAG,
        "num_different_global_patterns": COUNT,
        "num_random_blocks": SIZE,
        "local_window_blocks": Field("wholes"),
        "global_block_indices": Field("wholes"),
        "global_block_end_indices": Field("wholes"),
        "num_sliding_window_blocks": SIZE,
    },
    "compression_training": {
        "layer_reduction": block("compression_training.layer_reduction"),
        **{
            name: block(f"compression_training.{name}") for name in sorted({path.split(".")[1] for path in _TECHNIQUES})
        },
    },
    "compression_training.layer_reduction": {
        "enabled": FLAG,
        "keep_number_layer": COUNT,
        "module_name_prefix": TEXT,
        "teacher_layer": Field("wholes", ge=0),
        "other_module_name": TEXTS,
    },
    "compression_training.weight_quantization.fp16_mixed_quantize": {
        "enabled": FLAG,
        "quantize_change_ratio": SHARE,
    },
    **_TECHNIQUES,
}

OPEN = frozenset({"amp"})
"""Blocks that take any key beyond those described."""
