# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role docker acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.planner import NOTHING

from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import ROLES, acts, load, templar, variables

MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "ansible.builtin.include_tasks": "",
}


def planned(pending: bool, **act: Any) -> dict[str, Any]:
    return plan_of("docker", NOTHING, pending, **act)


def runs(file: str, plan: dict[str, Any] | None, **changed: Any) -> list[str]:
    """Return what of a file's tasks would run, until one ends the role or makes another plan."""
    return shown(tasks_that_run("docker", file, plan, **changed), called)


def called(key: str, task: dict[str, Any]) -> str:
    return MODULES.get(key) or str(task[key])


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("docker/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs("main", planned(False)) == ["end"]


@pytest.mark.parametrize("plan", [None, {}, {"pending": {}}, {"pending": {"gpu1": {"docker": False}}}])
def test_what_this_run_has_not_planned_it_plans(plan: dict[str, Any] | None) -> None:
    assert runs("main", plan) == ["gather and plan"]


def test_a_plan_of_other_roles_is_no_plan_for_this_one() -> None:
    assert runs("main", {"pending": {"gpu2": {"swarm": False}}}) == ["gather and plan"]


def test_changes_are_reported_and_then_applied() -> None:
    assert runs("main", planned(True)) == ["report", "converge.yml"]
    assert runs("main", planned(True, preview={"packages": ["x"]})) == ["report", "preview.yml", "converge.yml"]
    assert runs("main", planned(True, preview={"packages": ["x"]}), ansible_check_mode=True) == [
        "report",
        "preview.yml",
    ]


def conditional() -> list[dict[str, Any]]:
    """Return the tasks of converge.yml that are left out where the plan has nothing for them."""
    return [task for task in load("docker/tasks/converge.yml") if "when" in task]


def test_without_work_only_the_start_of_the_engine_is_left() -> None:
    given = variables("docker", swarmspeed_plan=planned(True))
    assert len(conditional()) == 6
    assert [task["name"] for task in conditional() if acts(task, given)] == []
    rest = [task["name"] for task in load("docker/tasks/converge.yml") if "when" not in task and "loop" not in task]
    assert rest == ["Start the engine", "Gather facts and plan again"]


@pytest.mark.parametrize(
    ("act", "name"),
    [
        ({"files": [{"path": "/x"}]}, "Write Docker's repository and the engine's proxy"),
        ({"config": {"mtu": 1}}, "Merge the engine's configuration, keeping the user's own keys"),
        ({"packages": ["docker.io"]}, "Install packages"),
        (
            {"restart_engine": True},
            "Restart the engine for its proxy, a certificate authority, or ports that it has kept from a swarm",
        ),
        ({"record": "x"}, "Exclude the packages from unattended-upgrades and record the holds"),
        ({"release": ["docker.io"]}, "Release packages that no longer need to be held"),
    ],
)
def test_each_part_of_the_plan_has_its_task(act: dict[str, Any], name: str) -> None:
    given = variables("docker", swarmspeed_plan=planned(True, **act))
    assert [task["name"] for task in conditional() if acts(task, given)] == [name]


@pytest.mark.parametrize(("alone", "file"), [(False, "refresh.yml"), (True, "alone.yml")])
def test_afterwards_it_is_gathered_and_planned_again(alone: bool, file: str) -> None:
    *dummy, last = load("docker/tasks/converge.yml")
    assert last["ansible.builtin.include_role"]["tasks_from"] == "again" and "when" not in last
    (again,) = load("preflight/tasks/again.yml")
    assert templar({"swarmspeed_alone": alone}).template(again["ansible.builtin.include_tasks"]) == file
    assert (ROLES / "preflight/tasks" / file).exists()


def test_no_task_has_tags_of_its_own() -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    for file in ("main", "converge", "preview", "verify", "release", "teardown"):
        assert [task for task in load(f"docker/tasks/{file}.yml") if "tags" in task] == []


def test_every_name_of_the_plan_that_a_task_reads_is_in_it() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROLES / "docker/tasks").glob("*.yml")))
    names = set(re.findall(r"_docker_act\.(\w+)", text))
    assert names == set(NOTHING)
