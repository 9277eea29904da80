# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Comments, and accelerate's own configuration, in a ds_config.json; rows are modelled on public reports."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Plan, Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.field import Field
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.foreign import (
    _OTHERS,
    _TELLING,
    is_comment,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import BLOCKS

IGNORED = "is a comment: DeepSpeed ignores it, like every unknown key"
BATCH = {"train_batch_size": 4}
ACCELERATE = "of accelerate's own configuration, which DeepSpeed ignores"


def built(config: dict[str, Any], version: str = "0.19.8", **request: Any) -> Plan:
    return build(Request(config={**BATCH, **config}, deepspeed_version=version, world_size=1, **request))


@pytest.mark.parametrize("key", ["_comment", "_comment2", "comment", "Comment", "comments", "__comment__", "//", "#"])
def test_a_comment_is_a_warning_and_stays(key: str) -> None:
    plan = built({key: ["any", {"thing": "auto"}], "optimizer": {"type": "AdamW", "params": {}, key: 1}})
    assert plan.errors == []
    assert [str(warning) for warning in plan.warnings if warning.message == IGNORED] == [
        f"{key}: {IGNORED}",
        f"optimizer.{key}: {IGNORED}",
    ]
    assert plan.config[key] == ["any", {"thing": "auto"}]


@pytest.mark.parametrize("key", ["commentary", "comet", "_note", "train_comment", ""])
def test_what_is_no_comment(key: str) -> None:
    assert not is_comment(key)


def test_no_key_of_deepspeed_is_a_comment() -> None:
    assert [key for fields in BLOCKS.values() for key in fields if is_comment(key)] == []
    assert all(isinstance(field, Field) for fields in BLOCKS.values() for field in fields.values())


@pytest.mark.parametrize(
    ("config", "version", "error"),
    [
        (
            {"zero_optimization": {"stage": 2, "_comment": "two"}},
            "0.19.8",
            "zero_optimization._comment: is a comment, which DeepSpeed 0.19.8 refuses in zero_optimization; remove it",
        ),
        (
            {"bf16": {"enabled": True, "//": "yes"}},
            "0.19.8",
            "bf16.//: is a comment, which DeepSpeed 0.19.8 refuses in bf16; remove it",
        ),
        ({"bf16": {"enabled": True, "//": "yes"}}, "0.16.9", ""),
        (
            {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "comment": "x"}}},
            "0.19.8",
            "optimizer.params.comment: is a comment, which FusedAdam would get as a parameter; remove it",
        ),
        (
            {"optimizer": {"type": "SGD", "params": {"lr": 1e-3, "_comment": "x"}}},
            "0.19.8",
            "optimizer.params._comment: is a comment, which SGD would get as a parameter; remove it",
        ),
        (
            {"scheduler": {"type": "WarmupLR", "params": {"_comment": "x"}}},
            "0.19.8",
            "scheduler.params._comment: is a comment, which WarmupLR would get as a parameter; remove it",
        ),
    ],
)
def test_where_a_comment_does_harm(config: dict[str, Any], version: str, error: str) -> None:
    assert [str(problem) for problem in built(config, version).errors] == ([error] if error else [])


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {
                "gradient_accumulation_steps": 1,
                "gradient_clipping": 1.0,
                "offload_optimizer_device": "cpu",
                "offload_param_device": "cpu",
                "zero3_save_16bit_model": True,
                "zero_stage": 3,
                "zero3_init_flag": True,
                "zero_force_ds_cpu_optimizer": False,
            },
            "offload_optimizer_device, offload_param_device, zero3_save_16bit_model, … are keys "
            f"{ACCELERATE}; write zero_optimization: {{stage: 3, offload_optimizer: {{device: cpu}}, offload_param:"
            " {device: cpu}, stage3_gather_16bit_weights_on_model_save: true} instead",
        ),
        (
            {
                "compute_environment": "LOCAL_MACHINE",
                "deepspeed_config": {
                    "zero_stage": "2",
                    "offload_optimizer_device": "nvme",
                    "offload_optimizer_nvme_path": "/nvme",
                    "offload_param_device": "none",
                },
                "mixed_precision": "bf16",
                "num_processes": 8,
                "use_cpu": False,
            },
            f"compute_environment, deepspeed_config, mixed_precision, … are keys {ACCELERATE}; write zero_optimization:"
            " {stage: 2, offload_optimizer: {device: nvme, nvme_path: /nvme}} and bf16: {enabled: true} instead",
        ),
        (
            {"deepspeed_config": {"deepspeed_config_file": "ds.json"}, "num_machines": 2},
            f"deepspeed_config, num_machines are keys {ACCELERATE}; give what the file holds that deepspeed_config_file"
            " names",
        ),
        (
            {"zero3_init_flag": True},
            f"zero3_init_flag is a key {ACCELERATE}; write DeepSpeed's keys, such as zero_optimization, instead",
        ),
    ],
)
def test_accelerates_own_configuration_is_one_error(config: dict[str, Any], error: str) -> None:
    assert [str(problem) for problem in built(config).errors] == [f"config: {error}"]


def test_what_accelerate_does_not_own_alone() -> None:
    found = [str(problem) for problem in built({"debug": True}).errors]
    assert len(found) == 1
    assert found[0].startswith("debug: is not a key of DeepSpeed 0.19.8")
    assert built({"zero_stage": 3}, script_keys=["zero_stage"]).errors == []
    assert [key for key in (*_TELLING, *_OTHERS) if key in BLOCKS[""]] == []
