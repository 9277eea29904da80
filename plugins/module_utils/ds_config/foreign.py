# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What people put into a ds_config.json that is not DeepSpeed's: comments, and accelerate's own configuration.

Source: accelerate 1.15, utils/dataclasses.py (``DeepSpeedPlugin``) and commands/config/config_args.py.
"""

from __future__ import annotations

import re
from typing import Any

from .field import FLAG, as_number

_COMMENT = re.compile(r"(?://|#).*|_*comments?(?![a-z]).*", re.IGNORECASE | re.DOTALL)

_TELLING = (
    *("zero_stage", "offload_optimizer_device", "offload_param_device", "zero3_init_flag", "zero3_save_16bit_model"),
    *("offload_optimizer_nvme_path", "offload_param_nvme_path", "deepspeed_config_file", "deepspeed_config"),
    *("deepspeed_multinode_launcher", "deepspeed_moe_layer_cls_names", "compute_environment", "distributed_type"),
)
"""Keys that accelerate alone has, at the top level of its file or in its block deepspeed_config."""
_OTHERS = (
    *("debug", "deepspeed_exclusion_filter", "deepspeed_hostfile", "deepspeed_inclusion_filter", "downcast_bf16"),
    *("dynamo_backend", "dynamo_config", "enable_cpu_affinity", "fsdp_config", "gpu_ids", "machine_rank"),
    *("main_process_ip", "main_process_port", "main_training_function", "megatron_lm_config", "mixed_precision"),
    *("mpirun_config", "num_machines", "num_processes", "rdzv_backend", "same_network", "tpu_env", "tpu_use_cluster"),
    *("tpu_use_sudo", "use_cpu"),
)
"""Further ones, which only beside those above are accelerate's."""

_KEYS = "DeepSpeed's keys, such as zero_optimization,"


def is_comment(key: object) -> bool:
    """Whether a key is there to hold a comment, as ``_comment``, ``comment_2`` or ``//`` are."""
    return isinstance(key, str) and _COMMENT.fullmatch(key) is not None


def accelerate_keys(config: dict[str, Any]) -> list[str]:
    """The keys by which a configuration is accelerate's own, or nothing where it is not."""
    telling = [key for key in config if key in _TELLING]
    return telling + [key for key in config if key in _OTHERS] if telling else []


def accelerate_fault(config: dict[str, Any], keys: list[str]) -> str:
    """What to say of accelerate's own configuration, with DeepSpeed's form of it."""
    shown = ", ".join(keys[:3]) + (", …" if len(keys) > 3 else "")
    verb = "is a key" if len(keys) == 1 else "are keys"
    text = f"{shown} {verb} of accelerate's own configuration, which DeepSpeed ignores"
    inner = config.get("deepspeed_config")
    given = {**config, **inner} if isinstance(inner, dict) else config
    if given.get("deepspeed_config_file"):
        return f"{text}; give what the file holds that deepspeed_config_file names"
    return f"{text}; write {_written(given) or _KEYS} instead"


def _written(given: dict[str, Any]) -> str:
    """DeepSpeed's form of accelerate's keys, as YAML writes it on one line."""
    zero: list[str] = []
    stage = as_number(given.get("zero_stage"))
    if stage in (0, 1, 2, 3):
        zero.append(f"stage: {stage}")
    for block in ("offload_optimizer", "offload_param"):
        device = given.get(f"{block}_device")
        if device in ("cpu", "nvme"):
            path = given.get(f"{block}_nvme_path")
            folder = f", nvme_path: {path}" if device == "nvme" and isinstance(path, str) and path.isprintable() else ""
            zero.append(f"{block}: {{device: {device}{folder[:200]}}}")
    if FLAG.convert(given.get("zero3_save_16bit_model")):
        zero.append("stage3_gather_16bit_weights_on_model_save: true")
    precision = given.get("mixed_precision")
    written = [f"zero_optimization: {{{', '.join(zero)}}}"] if zero else []
    written += [f"{precision}: {{enabled: true}}"] if precision in ("fp16", "bf16") else []
    return " and ".join(written)
