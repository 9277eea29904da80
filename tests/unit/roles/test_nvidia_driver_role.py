# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nvidia_driver acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.changes import NOUVEAU
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.gathered import (
    EXCLUSION_FILE,
    NOUVEAU_FILE,
)

from tests.driver_hosts import facts, planned
from tests.driver_hosts import task_input as acts_of
from tests.planned_roles import HERE, REPORT, PlannedRole, passes
from tests.role_values import load, task_inputs, templar, value

ROLE = PlannedRole("nvidia_driver")


def runs(found: dict[str, Any], *, check: bool = False) -> list[str]:
    return ROLE.runs("main", found, ansible_check_mode=check)


def test_changes_are_simulated_before_they_are_applied_and_the_driver_is_tried() -> None:
    assert runs(ROLE.plan(True, preview={"branch": 580})) == [REPORT, "preview.yml", "converge.yml", "works.yml"]
    assert runs(ROLE.plan(True, preview={"branch": 580}), check=True) == [REPORT, "preview.yml"]


def test_a_fault_of_a_gpu_is_reported_where_nothing_is_planned() -> None:
    faulty = ROLE.plan(False, faults=["GPU 3 fell off."])
    assert runs(faulty) == [REPORT, "works.yml"] and runs(faulty, check=True) == [REPORT]


def test_the_role_waits_for_the_fabric_before_it_judges_the_gpus() -> None:
    waiting = ROLE.plan(False, faults=["GPU 0 ('In Progress')."], fabric={"wait": 120})
    assert runs(waiting) == [REPORT, "fabric.yml", "works.yml"]
    assert runs(waiting, check=True) == [REPORT]
    (wait, dummy) = ROLE.tasks("fabric")
    requested = wait["swarmspeed.cluster.gpu_info"]
    assert templar(ROLE.given(waiting)).template(requested["fabric_wait"]) == 120 and wait["timeout"] > 120


def test_a_kernel_without_the_driver_is_reported_by_a_run_and_fails_verify_and_a_reboot() -> None:
    found = ROLE.plan(False, next_boot="kernel 6.8.0-152-generic has no nvidia module. Remedy: install it.")
    assert runs(found) == [REPORT, "print", "works.yml"]
    assert wrong(found) == []
    boots_next = "Assert that the kernel that boots next has the driver"
    for file in ("verify", "reboot"):
        for known, right in ((found, False), (ROLE.plan(False), True)):
            assert passes(ROLE.task(file, boots_next), ROLE.given(known)) is right
    names = [task["name"] for task in ROLE.tasks("reboot")]
    assert names.index(boots_next) < names.index("Reboot the hosts one at a time")
    assert names[-1] == "Gather facts and plan again"


def wrong(found: dict[str, Any]) -> list[str]:
    return list(value("_nvidia_driver_wrong", ROLE.given(found)))


def test_verify_says_why_what_differs_and_what_is_wrong_with_the_gpus() -> None:
    assert wrong(ROLE.plan(False)) == []
    found = ROLE.plan(True, why="no driver is loaded", faults=["GPU 3 fell off."])
    found["drift"][HERE]["nvidia_driver"] = ["driver is missing"]
    found["stops"][HERE]["nvidia_driver"] = ["it may not be. Remedy: allow it"]
    assert wrong(found) == [
        "no driver is loaded.",
        "GPU 3 fell off.",
        "it may not be. Remedy: allow it.",
        "driver is missing.",
    ]


@pytest.mark.parametrize(
    ("task_input", "name"),
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
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], name: str) -> None:
    conditional = [task for task in ROLE.tasks("converge") if "when" in task]
    assert len(conditional) == 4
    given = ROLE.given(ROLE.plan(True, **task_input))
    assert [task["name"] for task in conditional if task_inputs(task, given)] == [name]


def test_role_and_planner_name_the_same_files() -> None:
    found = load("nvidia_driver/vars/main.yml")
    assert found["_nvidia_driver_exclusion_path"] == EXCLUSION_FILE
    assert found["_nvidia_driver_nouveau_path"] == NOUVEAU_FILE
    assert acts_of(planned(facts()))["install"]["nouveau"] == NOUVEAU
