# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Presets: which there are for a release, and what they say."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config import rules
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import (
    AUTO,
    FILLED_IN,
    INTEGRATIONS,
    KNOWN_VERSIONS,
    Version,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.presets import (
    PRESETS,
    available,
    preset,
    refusal,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import Checker

NVME = {
    "zero_optimization": {
        "offload_optimizer": {"nvme_path": "/nvme"},
        "offload_param": {"nvme_path": "/nvme"},
    }
}
CASES = [
    (name, integration, version)
    for version in KNOWN_VERSIONS
    for name in available(version)
    for integration in INTEGRATIONS
    if name != "pipeline" or integration == "deepspeed"
]


def test_the_names_are_fixed() -> None:
    assert PRESETS == (
        "zero0",
        "zero1",
        "zero2",
        "zero3",
        "zero2_offload",
        "zero3_offload_optimizer",
        "zero3_offload",
        "zero3_infinity",
        "pipeline",
        "zenflow",
        "superoffload",
    )


@pytest.mark.parametrize(
    "name, stage, optimizer, param",
    [
        ("zero0", 0, None, None),
        ("zero1", 1, None, None),
        ("zero2", 2, None, None),
        ("zero3", 3, None, None),
        ("zero2_offload", 2, "cpu", None),
        ("zero3_offload_optimizer", 3, "cpu", None),
        ("zero3_offload", 3, "cpu", "cpu"),
        ("zero3_infinity", 3, "nvme", "nvme"),
        ("pipeline", 1, None, None),
        ("zenflow", 2, "cpu", None),
        ("superoffload", 3, "cpu", None),
    ],
)
def test_stage_and_offload(name: str, stage: int, optimizer: str | None, param: str | None) -> None:
    zero = preset(name, "deepspeed")["zero_optimization"]
    assert zero["stage"] == stage
    assert zero.get("offload_optimizer", {}).get("device") == optimizer
    assert zero.get("offload_param", {}).get("device") == param


@pytest.mark.parametrize(
    "name, first, before",
    [("zenflow", Version(0, 17, 6), Version(0, 16, 9)), ("superoffload", Version(0, 18, 9), Version(0, 17, 6))],
)
def test_a_preset_that_a_release_lacks(name: str, first: Version, before: Version) -> None:
    assert name in available(first) and refusal(name, first) is None
    assert name not in available(before)
    text = f"preset: {name} needs DeepSpeed {first} or newer, not {before}"
    assert str(refusal(name, before)) == text
    with pytest.raises(ValueError, match=text):
        preset(name, "deepspeed", before)


def test_releases_that_are_not_known_count_as_the_nearest() -> None:
    assert available(Version(0, 15, 0)) == available(Version(0, 15, 4))
    assert available(Version(0, 19, 99)) == available(Version(1, 0, 0)) == PRESETS
    assert "zenflow" not in available(Version(0, 10, 0))


def test_a_name_that_is_none() -> None:
    assert str(refusal("zero4", KNOWN_VERSIONS[-1])) == f"preset: 'zero4' is not one of {', '.join(PRESETS)}"


@pytest.mark.parametrize("name, integration, version", CASES)
def test_every_preset_passes_the_checks(name: str, integration: str, version: Version) -> None:
    config = preset(name, integration, version)
    if name == "zero3_infinity":
        conflicts = rules.conflicts(config, version)
        assert [conflict.path for conflict in conflicts] == [
            "zero_optimization.offload_optimizer.nvme_path",
            "zero_optimization.offload_param.nvme_path",
        ]
        for block, keys in NVME["zero_optimization"].items():
            config["zero_optimization"][block].update(keys)
    if name == "zenflow" and integration == "deepspeed":
        conflicts = rules.conflicts(config, version)
        assert [conflict.path for conflict in conflicts] == ["zero_optimization.zenflow"]
        config["optimizer"]["params"] = {"lr": 1e-5}
    checker = Checker(version, integration)
    assert json.loads(json.dumps(checker.mapping(config))) == config
    assert [str(error) for error in checker.errors] == []
    assert rules.conflicts(config, version) == []
    assert rules.warnings(config, version) == []


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "pipeline"])
@pytest.mark.parametrize("integration", ["huggingface", "accelerate"])
def test_auto_only_where_the_integration_fills_it_in(name: str, integration: str) -> None:
    assert autos(preset(name, integration)) <= FILLED_IN[integration]
    stage3 = preset(name, integration)["zero_optimization"]["stage"] == 3
    assert ("zero_optimization.reduce_bucket_size" in autos(preset(name, integration))) is stage3


def test_zenflow_brings_an_optimizer_whose_parameters_are_the_users() -> None:
    assert preset("zenflow", "deepspeed")["optimizer"] == {"type": "AdamW"}
    names = {name: preset("zenflow", name)["optimizer"]["params"] for name in ("huggingface", "accelerate")}
    assert names["huggingface"] == dict.fromkeys(("lr", "betas", "eps", "weight_decay"), AUTO)
    assert names["accelerate"] == dict.fromkeys(("lr", "weight_decay"), AUTO)
    allowed = [
        name for name in KNOWN_VERSIONS[2:] if "zero_allow_untested_optimizer" in preset("zenflow", "deepspeed", name)
    ]
    assert allowed == [version for version in KNOWN_VERSIONS[2:] if version < Version(0, 19, 3)]


def test_presets_are_fresh_copies() -> None:
    before = copy.deepcopy(preset("zero3_infinity", "deepspeed"))
    changed = preset("zero3_infinity", "deepspeed")
    changed["aio"]["queue_depth"] = 1
    changed["zero_optimization"]["offload_param"]["device"] = "cpu"
    assert preset("zero3_infinity", "deepspeed") == before
    assert before["zero_optimization"]["offload_optimizer"]["device"] == "nvme"


def autos(config: dict[str, Any], at: str = "") -> set[str]:
    found = set()
    for key, value in config.items():
        if isinstance(value, dict):
            found |= autos(value, f"{at}{key}.")
        elif value == AUTO and f"{at}{key}" != "pipeline.stages":
            found.add(f"{at}{key}")
    return found
