# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nvidia_driver acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.changes import NOUVEAU
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    NOUVEAU_FILE,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.planner import NOTHING

from tests.driver_hosts import act as acts_of
from tests.driver_hosts import facts, planned
from tests.planned_roles import shown, tasks_that_run
from tests.role_values import ROLES, acts, load, templar, value, variables

FILES = ("main", "preview", "converge", "install", "load", "reboot", "restore", "fabric", "works", "verify", "teardown")
MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "ansible.builtin.debug": "say",
    "ansible.builtin.include_tasks": "",
}


def plan(pending: bool, **act: Any) -> dict[str, Any]:
    return {
        "pending": {"gpu2": {"nvidia_driver": pending}},
        "acts": {"gpu2": {"nvidia_driver": {**NOTHING, **act}}},
        "stops": {"gpu2": {"nvidia_driver": []}},
        "drift": {"gpu2": {"nvidia_driver": []}},
    }


def runs(found: dict[str, Any] | None, *, check: bool = False) -> list[str]:
    """Return what of main.yml would run, until something ends the role or makes another plan."""
    tasks = tasks_that_run("nvidia_driver", "main", found, ansible_check_mode=check)
    return shown(tasks, lambda key, task: MODULES.get(key) or str(task[key]))


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("nvidia_driver/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs(plan(False)) == ["end"]


@pytest.mark.parametrize("found", [None, {}, {"pending": {}}, {"pending": {"gpu2": {"host": False}}}])
def test_what_this_run_has_not_planned_it_plans(found: dict[str, Any] | None) -> None:
    assert runs(found) == ["gather and plan"]


def test_changes_are_reported_and_then_applied_and_the_driver_is_tried() -> None:
    assert runs(plan(True)) == ["report", "converge.yml", "works.yml"]
    assert runs(plan(True, preview={"branch": 580})) == ["report", "preview.yml", "converge.yml", "works.yml"]
    assert runs(plan(True, preview={"branch": 580}), check=True) == ["report", "preview.yml"]


def test_a_fault_of_a_gpu_is_reported_where_nothing_is_planned() -> None:
    faulty = plan(False, faults=["GPU 3 fell off."])
    assert runs(faulty) == ["report", "works.yml"] and runs(faulty, check=True) == ["report"]


def test_the_role_waits_for_the_fabric_before_it_judges_the_gpus() -> None:
    waiting = plan(False, faults=["GPU 0 ('In Progress')."], fabric={"wait": 120})
    assert runs(waiting) == ["report", "fabric.yml", "works.yml"]
    assert runs(waiting, check=True) == ["report"]
    (wait, again) = load("nvidia_driver/tasks/fabric.yml")
    requested = wait["swarmspeed.cluster.gpu_info"]
    given = variables("nvidia_driver", swarmspeed_plan=waiting)
    assert templar(given).template(requested["fabric_wait"]) == 120 and wait["timeout"] > 120
    assert again["ansible.builtin.include_role"]["tasks_from"] == "again"


def test_a_kernel_without_the_driver_is_reported_by_a_run_and_fails_verify_and_a_reboot() -> None:
    found = plan(False, next_boot="kernel 6.8.0-152-generic has no nvidia module. Remedy: install it.")
    assert runs(found) == ["report", "say", "works.yml"]
    assert wrong(found) == []
    for file in ("verify", "reboot"):
        (task,) = [task for task in load(f"nvidia_driver/tasks/{file}.yml") if "boots next" in task["name"]]
        requested = task["ansible.builtin.assert"]["that"]
        for known, right in ((found, False), (plan(False), True)):
            given = variables("nvidia_driver", swarmspeed_plan=known)
            assert templar(given).evaluate_conditional(requested) is right
    names = [task["name"] for task in load("nvidia_driver/tasks/reboot.yml")]
    assert names.index("Assert that the kernel that boots next has the driver") < names.index(
        "Reboot the hosts one at a time"
    )


def wrong(found: dict[str, Any]) -> list[str]:
    return list(value("_nvidia_driver_wrong", variables("nvidia_driver", swarmspeed_plan=found)))


def test_verify_says_why_what_differs_and_what_is_wrong_with_the_gpus() -> None:
    assert wrong(plan(False)) == []
    found = plan(True, why="no driver is loaded", faults=["GPU 3 fell off."])
    found["drift"]["gpu2"]["nvidia_driver"] = ["driver is missing"]
    found["stops"]["gpu2"]["nvidia_driver"] = ["it may not be. Remedy: allow it"]
    assert wrong(found) == [
        "no driver is loaded.",
        "GPU 3 fell off.",
        "it may not be. Remedy: allow it.",
        "driver is missing.",
    ]


@pytest.mark.parametrize(
    ("act", "name"),
    [
        ({"install": {"driver": True}}, "Install the driver"),
        ({"load": {"modprobe": True}}, "Activate the installed driver"),
        (
            {"record": [{"path": "/x"}]},
            "Exclude the driver from unattended-upgrades and update the record of the holds",
        ),
        ({"units": [{"path": "/x"}]}, "Configure the persistence daemon"),
    ],
)
def test_each_part_of_the_plan_has_its_task(act: dict[str, Any], name: str) -> None:
    conditional = [task for task in load("nvidia_driver/tasks/converge.yml") if "when" in task]
    assert len(conditional) == 4
    given = variables("nvidia_driver", swarmspeed_plan=plan(True, **act))
    assert [task["name"] for task in conditional if acts(task, given)] == [name]


@pytest.mark.parametrize("file", ["converge", "reboot"])
def test_afterwards_it_is_gathered_and_planned_again(file: str) -> None:
    *dummy, last = load(f"nvidia_driver/tasks/{file}.yml")
    assert last["ansible.builtin.include_role"]["tasks_from"] == "again" and "when" not in last


def test_no_task_has_tags_of_its_own() -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    for file in FILES:
        assert [task for task in load(f"nvidia_driver/tasks/{file}.yml") if "tags" in task] == []
    assert {path.stem for path in (ROLES / "nvidia_driver/tasks").glob("*.yml")} == set(FILES)


def text() -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted((ROLES / "nvidia_driver/tasks").glob("*.yml")))


def test_every_name_of_the_plan_that_a_task_reads_is_in_it() -> None:
    vars_file = (ROLES / "nvidia_driver/vars/main.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"_nvidia_driver_act\.(\w+)", text() + vars_file)) == set(NOTHING)
    made = acts_of(planned(facts()))
    assert set(re.findall(r"_nvidia_driver_act\.preview\.(\w+)", text())) == set(made["preview"])
    before = set(re.findall(r"_nvidia_driver_before\.(\w+)", text()))
    assert before - {"found"} == set(made["install"])  # what was found of the files is added


def test_role_and_planner_name_the_same_files() -> None:
    found = load("nvidia_driver/vars/main.yml")
    assert found["_nvidia_driver_exclusion_path"] == EXCLUSION_FILE
    assert found["_nvidia_driver_nouveau_path"] == NOUVEAU_FILE
    assert acts_of(planned(facts()))["install"]["nouveau"] == NOUVEAU
