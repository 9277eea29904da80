# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role docker acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planned_roles import REPORT, PlannedRole

ROLE = PlannedRole("docker")
ALWAYS = ["Start the engine", "Gather facts and plan again"]


def test_changes_are_simulated_before_they_are_applied() -> None:
    plan = ROLE.plan(True, preview={"packages": ["x"]})
    assert ROLE.runs("main", plan) == [REPORT, "preview.yml", "converge.yml"]
    assert ROLE.runs("main", plan, ansible_check_mode=True) == [REPORT, "preview.yml"]


@pytest.mark.parametrize(
    ("task_input", "name"),
    [
        ({}, None),
        ({"files": [{"path": "/x"}]}, "Write Docker's repository and the engine's proxy"),
        ({"config": {"mtu": 1}}, "Merge the engine's configuration, keeping the user's own keys"),
        ({"packages": ["docker.io"]}, "Install packages"),
        (
            {"restart_engine": True},
            "Restart the engine for its proxy, a certificate authority, or ports that it still holds of a former swarm",
        ),
        ({"record": "x"}, "Exclude the packages from unattended-upgrades and record the holds"),
        ({"release": ["docker.io"]}, "Release packages that no longer need to be held"),
    ],
)
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], name: str | None) -> None:
    names = ROLE.names("converge", ROLE.plan(True, **task_input))
    assert set(names) == {*ALWAYS, *([name] if name else [])} and names[-1] == ALWAYS[-1]
