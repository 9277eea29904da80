# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role swarm acts on the plan: which of its tasks run on which host, and that none of them decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.planner import NOTHING

from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import ROLES, load

MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "ansible.builtin.include_tasks": "",
}


def planned(pending: bool, **act: Any) -> dict[str, Any]:
    return plan_of("swarm", NOTHING, pending, **act)


def tasks(file: str, plan: dict[str, Any] | None, **changed: Any) -> list[dict[str, Any]]:
    """Return those of a file's tasks whose conditions let them run."""
    return list(tasks_that_run("swarm", file, plan, **changed))


def runs(plan: dict[str, Any] | None, **changed: Any) -> list[str]:
    """Return what of tasks/main.yml would run, until it ends the role or makes another plan."""
    return shown(tasks("main", plan, **changed), lambda key, task: MODULES.get(key) or str(task[key]))


def names(file: str, **act: Any) -> list[str]:
    return [task["name"] for task in tasks(file, planned(True, **act))]


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("swarm/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs(planned(False)) == ["end"]


@pytest.mark.parametrize("plan", [None, {}, {"pending": {}}, {"pending": {"gpu2": {"docker": False}}}])
def test_what_this_run_has_not_planned_it_plans(plan: dict[str, Any] | None) -> None:
    assert runs(plan) == ["gather and plan"]


def test_changes_are_reported_and_then_applied() -> None:
    assert runs(planned(True)) == ["report", "converge.yml"]
    assert runs(planned(True), ansible_check_mode=True) == ["report"]


AGAIN = "Gather facts and plan again, with the ids of the nodes that joined"


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        ({}, []),
        (
            {"form": {"state": "manager"}, "entering": ["gpu2"]},
            ["Form the swarm on its first manager", "Request the join tokens from the first manager", AGAIN],
        ),
        (
            {"join": {"state": "worker"}, "entering": ["gpu2"]},
            ["Request the join tokens from the first manager", "Join the swarm", AGAIN],
        ),
        # The first manager, where only others join.
        ({"entering": ["gpu3"]}, ["Request the join tokens from the first manager", AGAIN]),
        (
            {"arrange": {"removed_nodes": []}, "arranging": True},
            ["Promote, demote and remove nodes, and set their availability", "Gather facts and plan again"],
        ),
        ({"arranging": True}, ["Gather facts and plan again"]),
        (
            {"record": [{"path": "/x"}]},
            ["Record which swarm is this cluster's, where no container can write", "Gather facts and plan again"],
        ),
    ],
)
def test_each_part_of_the_plan_has_its_task(act: dict[str, Any], expected: list[str]) -> None:
    assert names("converge", **act) == expected


def test_all_hosts_leave_before_the_first_manager_ends_the_swarm() -> None:
    assert [task["name"] for task in load("swarm/tasks/teardown.yml")] == [
        "Leave the swarm, workers first",
        "End the swarm on its first manager",
        "Remove the record of the swarm",
        "Remove its folder, if nothing else is in it",
    ]
    ids = {"member_ids": ["a"]}
    assert names("teardown") == []
    assert names("teardown", leave=ids) == ["Leave the swarm, workers first"]
    assert names("teardown", leave_last=ids) == ["End the swarm on its first manager"]
    assert names("teardown", recorded="/x/swarm.json")[-2:] == [
        "Remove the record of the swarm",
        "Remove its folder, if nothing else is in it",
    ]


def test_the_tokens_are_requested_once_and_never_shown() -> None:
    (task,) = [task for task in load("swarm/tasks/converge.yml") if task.get("register") == "_swarm_tokens"]
    assert task["no_log"] is True and task["run_once"] is True


def test_no_task_has_tags_of_its_own() -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    for file in ("main", "converge", "verify", "teardown"):
        assert [task for task in load(f"swarm/tasks/{file}.yml") if "tags" in task] == []


def test_every_name_of_the_plan_that_a_task_reads_is_in_it() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROLES / "swarm/tasks").glob("*.yml")))
    assert set(re.findall(r"_swarm_act\.(\w+)", text)) == set(NOTHING)
