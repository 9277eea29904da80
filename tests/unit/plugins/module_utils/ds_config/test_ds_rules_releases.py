# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Faults of single releases of DeepSpeed: said of these releases, and of no other."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import parse_version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.rules_releases import FAULTS, release_hints

WRONG, LOST, SLOW = (fault.text for fault in FAULTS)


def hinted(release: str, stage: int = 2, precision: str = "bf16") -> list[str]:
    version = parse_version(release)
    assert version is not None
    config: dict[str, Any] = {"zero_optimization": {"stage": stage}, precision: {"enabled": True}}
    return [str(problem) for problem in release_hints(config, version)]


@pytest.mark.parametrize(
    ("release", "texts"),
    [
        ("0.17.5", []),
        ("0.17.6", [WRONG]),
        ("0.18.2", [WRONG]),
        ("0.18.3", [LOST]),
        ("0.18.4", [LOST]),
        ("0.18.5", [LOST, SLOW]),
        ("0.18.6", [LOST, SLOW]),
        ("0.18.7", [LOST]),
        ("0.19.3", [LOST]),
        ("0.19.4", []),
        ("0.19.8", []),
    ],
)
def test_which_releases(release: str, texts: list[str]) -> None:
    assert hinted(release) == [f"zero_optimization.stage: 2 {text}" for text in texts]


def test_other_stages_and_precisions() -> None:
    assert hinted("0.18.5", stage=3) == hinted("0.18.1", stage=1) == []
    assert hinted("0.18.5", precision="fp16") == [f"zero_optimization.stage: 2 {SLOW}"]


@pytest.mark.parametrize("config", [{}, {"zero_optimization": 5}, {"zero_optimization": {"stage": "auto"}}])
def test_what_says_nothing_of_a_stage_meets_nothing(config: dict[str, Any]) -> None:
    version = parse_version("0.18.5")
    assert version is not None and list(release_hints(config, version)) == []


def test_a_release_is_judged_as_itself_and_not_as_the_nearest_known() -> None:
    given: dict[str, Any] = {"preset": "zero2", "precision": "bf16", "config": {"train_micro_batch_size_per_gpu": 1}}
    old = [str(warning) for warning in build(Request(**given, deepspeed_version="0.18.5")).warnings]
    assert "deepspeed_version: 0.18.5 is unknown here; checked as for 0.18.9" in old
    assert f"zero_optimization.stage: 2 {SLOW}" in old
    new = [str(warning) for warning in build(Request(**given, deepspeed_version="0.18.9")).warnings]
    assert f"zero_optimization.stage: 2 {SLOW}" not in new and f"zero_optimization.stage: 2 {LOST}" in new
