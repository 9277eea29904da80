# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What all roles that act on the plan have in common: they plan what is not planned, end where nothing is, …"""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED

from tests import driver_hosts, image_nodes, ssh_nodes, toolkit_hosts, workspace_nodes
from tests.planned_roles import GATHER, HERE, REPORT, PlannedRole, every, files, nothing, passes, text
from tests.role_values import NODES, ROLES, load, task_inputs, templar

every_role = pytest.mark.parametrize("role", PLANNED)
LAUNCH = "deepspeed_launch"
"""Its tasks have tags, and what it starts with is its own: see its own tests."""
APPLIED: dict[str, list[str]] = {
    **{role: ["converge.yml"] for role in PLANNED},
    "nvidia_driver": ["converge.yml", "works.yml"],
    "nvidia_container_toolkit": ["converge.yml", "verify.yml"],
    "training_image": [GATHER],
    "workspace": [GATHER],
    "assets": [GATHER],
}
"""What of tasks/main.yml is done after the report where something is planned that needs no task of its own."""
ON_A_CONDITION = {
    *(f"{role}/main" for role in ("assets", "training_image", "workspace")),
    *("host/dpkg", "nvidia_driver/load", "swarm/converge"),
}
AGAIN = {
    *ON_A_CONDITION,
    *(f"{role}/converge" for role, applied in APPLIED.items() if "converge.yml" in applied and role != LAUNCH),
    *("nccl_env/ask", "nvidia_driver/fabric", "nvidia_driver/install", "nvidia_driver/reboot"),
    *("ssh_trust/keys", "training_container/repair"),
}
"""Files of tasks that plan again, some of them where something has changed only."""


def includes(role: str, file: str, tasks_from: str) -> list[dict[str, Any]]:
    """Return the tasks of a file by which preflight is to gather and plan."""
    found = [task for task in every(load(f"{role}/tasks/{file}.yml")) if "ansible.builtin.include_role" in task]
    return [task for task in found if task["ansible.builtin.include_role"]["tasks_from"] == tasks_from]


@every_role
def test_a_role_alone_knows_the_variables_that_all_roles_share(role: str) -> None:
    """``cluster_name`` and ``cluster_root`` are defaults of preflight, which a play of the user's own does not have."""
    for path in sorted((ROLES / role / "tasks").glob("*.yml")):
        for task in includes(role, path.stem, "alone"):
            assert task["ansible.builtin.include_role"].get("public") is True, path


@every_role
def test_where_nothing_is_planned_the_role_ends_at_its_first_task(role: str) -> None:
    (first, *dummy) = load(f"{role}/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    planned = PlannedRole(role)
    assert task_inputs(first, planned.given(planned.plan(False)))


@pytest.mark.parametrize(
    "plan",
    [
        None,
        {},
        {"pending": {}},
        {"pending": {"gpu1": dict.fromkeys(PLANNED, False)}},
        {"pending": {HERE: {"another": False}}, "task_inputs": {HERE: {}}},
    ],
)
@pytest.mark.parametrize(
    ("role", "file"), [*((role, file) for role in PLANNED for file in ("main", "verify")), ("host", "teardown")]
)
def test_what_this_run_has_not_planned_it_plans(role: str, file: str, plan: dict[str, Any] | None) -> None:
    assert PlannedRole(role).runs(file, plan) == [GATHER]
    (task,) = includes(role, file, "alone")
    assert task["vars"] == {"_preflight_roles": [role]}


@pytest.mark.parametrize("role", [role for role in PLANNED if role != LAUNCH])
def test_changes_are_reported_and_then_applied(role: str) -> None:
    planned = PlannedRole(role)
    assert planned.runs("main", planned.plan(True)) == [REPORT, *APPLIED[role]]
    assert planned.runs("main", planned.plan(True), ansible_check_mode=True) == [REPORT]
    (report,) = [task for task in load(f"{role}/tasks/main.yml") if "swarmspeed.cluster.plan" in task]
    assert report["swarmspeed.cluster.plan"] == {"stage": "report", "roles": [role]}


@every_role
def test_afterwards_it_is_gathered_and_planned_again(role: str) -> None:
    again = {f"{role}/{file}": includes(role, file, "again") for file in files(role)}
    assert {file for file, tasks in again.items() if tasks} == {file for file in AGAIN if file.startswith(f"{role}/")}
    for file, tasks in again.items():
        assert [task["vars"] for task in tasks] == [{"_preflight_roles": [role]}] * len(tasks)
        assert all(("when" in task) is (file in ON_A_CONDITION) for task in tasks), file


@pytest.mark.parametrize(("alone", "file"), [(False, "refresh.yml"), (True, "alone.yml")])
def test_a_role_alone_is_planned_again_by_itself(alone: bool, file: str) -> None:
    (again,) = load("preflight/tasks/again.yml")
    assert templar({"swarmspeed_alone": alone}).template(again["ansible.builtin.include_tasks"]) == file
    assert (ROLES / "preflight/tasks" / file).exists()


@every_role
def test_verify_fails_at_what_is_left_to_change(role: str) -> None:
    file = "works" if role == "nvidia_driver" else "verify"
    (judged,) = [
        task
        for task in every(load(f"{role}/tasks/{file}.yml"))
        if f"_{role}_wrong" in str(task.get("ansible.builtin.assert", {}).get("that"))
    ]
    planned = PlannedRole(role)
    for what, passed in (([], True), (["x is missing"], False)):
        for part in ("stops", "drift"):
            plan = {**planned.plan(bool(what)), part: {HERE: {role: what}}}
            assert passes(judged, planned.given(plan)) is passed, part


@pytest.mark.parametrize("role", [role for role in PLANNED if role != LAUNCH])
def test_no_task_has_tags_of_its_own(role: str) -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    assert [file for file in files(role) for task in every(load(f"{role}/tasks/{file}.yml")) if "tags" in task] == []


ALL = text(ROLES, ROLES.parent / "playbooks")


@every_role
def test_every_name_of_the_plan_that_is_read_is_in_it(role: str) -> None:
    read = re.findall(
        rf"_{role}_input\.(\w+)|task_inputs\[inventory_hostname\]\.{role}\.(\w+)|task_inputs, \['{role}', '(\w+)'\]"
        rf"|attribute='{role}\.(\w+)'|task_inputs \| default[^\n]*\.{role} \| default\(\{{\}}\)\)\.(\w+)",
        ALL,
    )
    names = {name for groups in read for name in groups if name}
    if role == "deepspeed_launch":  # preflight's name for its part
        names.update(re.findall(r"_preflight_launch_input\.(\w+)", ALL))
    assert names == set(nothing()[role])


def parts() -> dict[str, Any]:
    """Return what is below a name of the plan, by how a role calls it."""
    stale = workspace_nodes.host(missing=["train.py"])
    of_workspace = workspace_nodes.task_input(workspace_nodes.plan(stale, workspace_python_environment="/opt/train"))
    toolkit = toolkit_hosts.task_input(toolkit_hosts.planned(toolkit_hosts.node()))
    driver = driver_hosts.task_input(driver_hosts.planned(driver_hosts.facts()))
    return {
        "_host_input.undo": nothing()["host"]["undo"],
        "_nvidia_driver_input.preview": driver["preview"],
        "_nvidia_driver_before": {**driver["install"], "found": "what was found of the files is added"},
        "_nvidia_container_toolkit_input.preview": toolkit["preview"],
        "_nvidia_container_toolkit_input.smoke": toolkit["smoke"],
        "_nvidia_container_toolkit_before": toolkit["before"],
        "_training_image_input.build": image_nodes.task_input(image_nodes.plan(), NODES[0])["build"],
        "_ssh_trust_input.provide": ssh_nodes.task_input(ssh_nodes.plan(ssh_nodes.virgin()), ssh_nodes.SECOND)[
            "provide"
        ],
        "_workspace_input.code": of_workspace["code"],
        "_workspace_input.environment": of_workspace["environment"],
    }


def test_every_name_below_one_of_the_plan_is_in_it() -> None:
    found = parts()
    for name, part in found.items():
        assert set(re.findall(rf"{re.escape(name)}\.(\w+)", ALL)) == set(part), name
    # Jinja would find the methods of a mapping before its keys.
    names = {name for part in (*nothing().values(), *found.values()) for name in part}
    assert not names & set(dir(dict))
