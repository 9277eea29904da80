# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nvidia_container_toolkit acts on the plan: which of its tasks run, and that none decides anything."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import (
    RECORD_PATH,
    STAMP_PATH,
    UNIT,
)

from tests.planned_roles import REPORT, PlannedRole, every
from tests.role_values import load, task_inputs, value

NAME = "nvidia_container_toolkit"
ROLE = PlannedRole(NAME)


def test_changes_are_simulated_before_they_are_applied() -> None:
    plan = ROLE.plan(True, preview={"packages": ["x"]})
    assert ROLE.runs("main", plan) == [REPORT, "preview.yml", "converge.yml", "verify.yml"]
    assert ROLE.runs("main", plan, ansible_check_mode=True) == [REPORT, "preview.yml"]


def test_an_engine_that_gives_no_gpus_is_reported_where_nothing_is_planned() -> None:
    missing = ROLE.plan(False, missing=["the Docker engine does not support CDI devices"])
    assert ROLE.runs("main", missing) == [REPORT, "verify.yml"]
    assert ROLE.runs("main", missing, ansible_check_mode=True) == [REPORT]


def conditional(**task_input: Any) -> list[str]:
    """Return the tasks of converge.yml that run, of those that are left out where the plan has nothing for them."""
    given = ROLE.given(
        ROLE.plan(True, **task_input),
        _nvidia_container_toolkit_before={"installs": False},
        **{CONFIGURED: {"skipped": True}},
    )
    found = [task for task in every(ROLE.tasks("converge")) if "when" in task and "block" not in task]
    assert len(found) == 8
    return [task["name"] for task in found if task_inputs(task, given)]


CONFIGURED = "_nvidia_container_toolkit_configured"


@pytest.mark.parametrize(
    ("task_input", "name"),
    [
        ({}, None),
        (
            {"files": [{"path": "/x"}]},
            "Write the toolkit's package source and the unit that creates its devices at boot",
        ),
        ({"config": {"features": {}}}, "Merge the GPU settings into the engine's configuration"),
        ({"hook": True}, "Restart the engine, which detects NVIDIA's hook only at start"),
        ({"unit": True}, "Create links and descriptions of the devices, now and at each boot"),
        ({"smoke": {"image": "x"}}, "Test the toolkit in a container"),
        ({"record": "x"}, "Exclude the packages from unattended-upgrades and record the holds"),
        ({"release": ["x"]}, "Release packages that no longer need to be held"),
    ],
)
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], name: str | None) -> None:
    assert conditional(**task_input) == ([name] if name else [])


@pytest.mark.parametrize("restarted", [True, False])
def test_an_engine_that_was_restarted_is_not_restarted_again(restarted: bool) -> None:
    given = ROLE.given(ROLE.plan(True, hook=True), **{CONFIGURED: {"restarted": restarted}})
    assert task_inputs(ROLE.task("converge", "Restart the engine"), given) is not restarted


def test_role_and_planner_name_the_same_files() -> None:
    found = load(f"{NAME}/vars/main.yml")
    assert found["_nvidia_container_toolkit_record_path"] == RECORD_PATH
    assert found["_nvidia_container_toolkit_stamp_path"] == STAMP_PATH
    assert found["_nvidia_container_toolkit_unit"] == UNIT


def test_a_training_container_asks_for_gpus_as_the_plan_says() -> None:
    requests = [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=all"]}]
    given = ROLE.given(ROLE.plan(False, device_requests=requests))
    name = "_nvidia_container_toolkit_device_requests"
    assert value(name, given) == []  # the cluster of role_values computes on CPUs
    given["swarmspeed_cluster"] = {**given["swarmspeed_cluster"], "accelerator": "cuda"}
    assert value(name, given) == requests
