# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role swarm acts on the plan: which of its tasks run on which host, and that none of them decides anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planned_roles import PlannedRole

ROLE = PlannedRole("swarm")


def names(file: str, **task_input: Any) -> list[str]:
    return ROLE.names(file, ROLE.plan(True, **task_input))


AGAIN = "Gather facts and plan again, with the ids of the nodes that joined"


@pytest.mark.parametrize(
    ("task_input", "expected"),
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
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], expected: list[str]) -> None:
    assert names("converge", **task_input) == expected


def test_all_hosts_leave_before_the_first_manager_ends_the_swarm() -> None:
    assert [task["name"] for task in ROLE.tasks("teardown")] == [
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
    task = ROLE.task("converge", "Request the join tokens")
    assert task["no_log"] is True and task["run_once"] is True
