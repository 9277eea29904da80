# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files of systems that people run by hand today come out exactly; fixtures/systems/README.md names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import render
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile import filters as hostfile_filters
from ansible_collections.swarmspeed.cluster.plugins.module_utils.hostfile import text as hostfile

SYSTEMS = Path(__file__).parents[1] / "fixtures/systems"
NAMES = sorted(path.stem for path in SYSTEMS.glob("*.yml"))
CONFIGURED = sorted(path.stem for path in SYSTEMS.glob("*.json"))


def request_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((SYSTEMS / f"{name}.yml").read_text())
    return found


def test_all_systems_are_there() -> None:
    assert NAMES == ["s1", "s1b", "s2", "s3", "s4", "s5", "s6"]
    assert [name for name in NAMES if "ds_config" in request_of(name)] == CONFIGURED


@pytest.mark.parametrize("name", CONFIGURED)
def test_ds_config(name: str) -> None:
    plan = build(Request(**request_of(name)["ds_config"]))
    assert plan.errors == []
    assert render(plan.config) == (SYSTEMS / f"{name}.json").read_text()


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_the_stage_of_cifar_is_a_flag(stage: int) -> None:
    """Its script builds the same configuration for every stage."""
    requested = request_of("s2")["ds_config"]
    requested["config"]["zero_optimization"].update(
        stage=stage, overlap_comm=True, contiguous_gradients=True, reduce_scatter=True
    )
    plan = build(Request(**{**requested, "preset": "zero0"}))
    assert plan.errors == []
    assert render(plan.config) == (SYSTEMS / "s2.json").read_text().replace('"stage": 2', f'"stage": {stage}')


@pytest.mark.parametrize("name", NAMES)
def test_hostfile(name: str) -> None:
    requested = request_of(name)["hostfile"]
    plan = hostfile_filters.plan(requested["hosts"], requested.get("include"))
    assert hostfile.render(plan.hosts) == (SYSTEMS / f"{name}.hostfile").read_text()
    assert plan.include == requested.get("include", "")
