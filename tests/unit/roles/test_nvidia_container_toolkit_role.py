# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nvidia_container_toolkit acts on the plan: which of its tasks run, and that none decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.gathered import (
    RECORD_PATH,
    STAMP_PATH,
    UNIT,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.planner import NOTHING

from tests.planned_roles import shown, tasks_that_run
from tests.role_values import ROLES, acts, load, value, variables
from tests.toolkit_hosts import act as acts_of
from tests.toolkit_hosts import node, planned

ROLE = "nvidia_container_toolkit"
FILES = ("main", "preview", "converge", "smoke", "release", "restore", "verify", "teardown")
MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "ansible.builtin.include_tasks": "",
}


def plan(pending: bool, **act: Any) -> dict[str, Any]:
    return {
        "pending": {"gpu2": {ROLE: pending}},
        "acts": {"gpu2": {ROLE: {**NOTHING, **act}}},
        "stops": {"gpu2": {ROLE: []}},
        "drift": {"gpu2": {ROLE: []}},
    }


def runs(found: dict[str, Any] | None, *, check: bool = False) -> list[str]:
    """Return what of main.yml would run, until something ends the role or makes another plan."""
    tasks = tasks_that_run(ROLE, "main", found, ansible_check_mode=check)
    return shown(tasks, lambda key, task: MODULES.get(key) or str(task[key]))


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load(f"{ROLE}/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs(plan(False)) == ["end"]


@pytest.mark.parametrize("found", [None, {}, {"pending": {}}, {"pending": {"gpu2": {"docker": False}}}])
def test_what_this_run_has_not_planned_it_plans(found: dict[str, Any] | None) -> None:
    assert runs(found) == ["gather and plan"]


def test_changes_are_reported_applied_and_tried() -> None:
    assert runs(plan(True)) == ["report", "converge.yml", "verify.yml"]
    assert runs(plan(True, preview={"packages": ["x"]})) == ["report", "preview.yml", "converge.yml", "verify.yml"]
    assert runs(plan(True, preview={"packages": ["x"]}), check=True) == ["report", "preview.yml"]


def test_an_engine_that_gives_no_gpus_is_reported_where_nothing_is_planned() -> None:
    missing = plan(False, missing=["the Docker engine takes no CDI devices"])
    assert runs(missing) == ["report", "verify.yml"] and runs(missing, check=True) == ["report"]


def conditional() -> list[dict[str, Any]]:
    found = []
    for task in load(f"{ROLE}/tasks/converge.yml"):
        found += [inner for inner in task.get("block", [task]) if "when" in inner]
    return found


def test_without_work_no_task_of_a_condition_runs() -> None:
    given = variables(ROLE, swarmspeed_plan=plan(True), _nvidia_container_toolkit_before={"installs": False})
    assert len(conditional()) == 8
    assert [task["name"] for task in conditional() if acts(task, given)] == []


@pytest.mark.parametrize(
    ("act", "name"),
    [
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
def test_each_part_of_the_plan_has_its_task(act: dict[str, Any], name: str) -> None:
    before = {"installs": False}
    given = variables(
        ROLE,
        swarmspeed_plan=plan(True, **act),
        _nvidia_container_toolkit_before=before,
        _nvidia_container_toolkit_configured={"skipped": True},
    )
    assert [task["name"] for task in conditional() if acts(task, given)] == [name]


def test_an_engine_that_was_restarted_is_not_restarted_again() -> None:
    (task,) = [task for task in conditional() if task["name"].startswith("Restart the engine")]
    for restarted in (True, False):
        given = variables(
            ROLE,
            swarmspeed_plan=plan(True, hook=True),
            _nvidia_container_toolkit_configured={"restarted": restarted},
        )
        assert acts(task, given) is not restarted


def test_afterwards_it_is_gathered_and_planned_again() -> None:
    *dummy, last = load(f"{ROLE}/tasks/converge.yml")
    assert last["ansible.builtin.include_role"]["tasks_from"] == "again" and "when" not in last


def test_no_task_has_tags_of_its_own() -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    for file in FILES:
        assert [task for task in load(f"{ROLE}/tasks/{file}.yml") if "tags" in task] == []
    assert {path.stem for path in (ROLES / ROLE / "tasks").glob("*.yml")} == set(FILES)


def test_every_name_of_the_plan_that_a_task_reads_is_in_it() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROLES / ROLE / "tasks").glob("*.yml")))
    text += (ROLES / ROLE / "vars/main.yml").read_text(encoding="utf-8")
    made = acts_of(planned(node()))
    assert set(re.findall(r"_nvidia_container_toolkit_act\.(\w+)", text)) == set(NOTHING)
    assert set(re.findall(r"_nvidia_container_toolkit_act\.preview\.(\w+)", text)) == set(made["preview"])
    assert set(re.findall(r"_nvidia_container_toolkit_act\.smoke\.(\w+)", text)) == set(made["smoke"])
    assert set(re.findall(r"_nvidia_container_toolkit_before\.(\w+)", text)) == set(made["before"])


def test_role_and_planner_name_the_same_files() -> None:
    found = load(f"{ROLE}/vars/main.yml")
    assert found["_nvidia_container_toolkit_record_path"] == RECORD_PATH
    assert found["_nvidia_container_toolkit_stamp_path"] == STAMP_PATH
    assert found["_nvidia_container_toolkit_unit"] == UNIT


def test_a_training_container_asks_for_gpus_as_the_plan_says() -> None:
    requests = [{"driver": "cdi", "device_ids": ["nvidia.com/gpu=all"]}]
    given = variables(ROLE, swarmspeed_plan=plan(False, device_requests=requests))
    name = "_nvidia_container_toolkit_device_requests"
    assert value(name, given) == []  # the cluster of role_values computes on CPUs
    given["swarmspeed_cluster"] = {**given["swarmspeed_cluster"], "accelerator": "cuda"}
    assert value(name, given) == requests
