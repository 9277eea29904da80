# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role host acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.planner import NOTHING

from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import ROLES, acts, load, templar, variables

MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "ansible.builtin.include_tasks": "",
}


def planned(pending: bool, **act: Any) -> dict[str, Any]:
    return plan_of("host", NOTHING, pending, **act)


def runs(file: str, plan: dict[str, Any] | None, **changed: Any) -> list[str]:
    """Return what of a file's tasks would run, until one ends the role or makes another plan."""
    return shown(tasks_that_run("host", file, plan, **changed), called)


def called(key: str, task: dict[str, Any]) -> str:
    return MODULES.get(key) or str(task[key])


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("host/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs("main", planned(False)) == ["end"]


@pytest.mark.parametrize("plan", [None, {}, {"pending": {}}, {"pending": {"gpu2": {"docker": False}}}])
@pytest.mark.parametrize("file", ["main", "verify", "teardown"])
def test_what_this_run_has_not_planned_it_plans(file: str, plan: dict[str, Any] | None) -> None:
    assert runs(file, plan) == ["gather and plan"]


def test_changes_are_reported_and_then_applied() -> None:
    assert runs("main", planned(True)) == ["report", "converge.yml"]
    assert runs("main", planned(True), ansible_check_mode=True) == ["report"]


def named(file: str, plan: dict[str, Any], **changed: Any) -> list[str]:
    """Return the tasks of a file that run; a loop over nothing does not."""
    given = variables("host", **{"ansible_check_mode": False, "swarmspeed_plan": plan, **changed})
    return [
        task["name"]
        for task in load(f"host/tasks/{file}.yml")
        if acts(task, given) and ("loop" not in task or templar(given).template(task["loop"]))
    ]


def test_without_work_it_is_only_planned_again() -> None:
    assert named("converge", planned(True)) == ["Gather facts and plan again"]


@pytest.mark.parametrize(
    ("act", "name"),
    [
        ({"repair_dpkg": True}, "Repair an interrupted dpkg"),
        ({"close_unit": True}, "Remove the rules of iptables and nftables"),
        (
            {"files": [{"path": "/x"}]},
            "Write the files of proxies, mirrors, names, limits, kernel parameters and firewall rules",
        ),
        ({"packages": ["bc"]}, "Install packages"),
        ({"trust": True}, "Add the certificate authority to those that the host trusts"),
        ({"sysctls": True}, "Apply kernel parameters"),
        ({"restart_unit": True}, "Open iptables and nftables to the other nodes"),
        ({"ufw": ["ufw prepend allow"]}, "Change the rules of ufw"),
        ({"reload_firewalld": True}, "Reload firewalld"),
    ],
)
def test_each_part_of_the_plan_has_its_task(act: dict[str, Any], name: str) -> None:
    assert named("converge", planned(True, **act)) == [name, "Gather facts and plan again"]


def test_the_order_is_that_of_what_depends_on_what() -> None:
    """dpkg before apt; the unit is stopped before its script goes; apt goes through a proxy that was written."""
    names = [task["name"] for task in load("host/tasks/converge.yml")]
    assert names == [
        "Repair an interrupted dpkg",
        "Remove the rules of iptables and nftables",
        "Write the files of proxies, mirrors, names, limits, kernel parameters and firewall rules",
        "Install packages",
        "Add the certificate authority to those that the host trusts",
        "Apply kernel parameters",
        "Open iptables and nftables to the other nodes",
        "Change the rules of ufw",
        "Reload firewalld",
        "Gather facts and plan again",
    ]


def test_after_the_repair_of_dpkg_it_is_planned_again() -> None:
    for changed in (True, False):
        given = variables("host", _host_dpkg_repaired={"changed": changed}, ansible_check_mode=False)
        again = load("host/tasks/dpkg.yml")[-1]
        assert again["ansible.builtin.include_role"]["tasks_from"] == "again"
        assert acts(again, given) is changed


ALWAYS = ["Remove packages of a bundle that an interrupted run left", "Remove the files of this role"]


@pytest.mark.parametrize(
    ("undo", "name"),
    [
        ({}, None),
        ({"close_unit": True}, "Remove the rules of iptables and nftables"),
        ({"ufw": ["ufw delete allow"]}, "Remove the rules of ufw"),
        ({"reload_firewalld": True}, "Remove the rules of firewalld"),
        ({"trust": True}, "Remove the certificate authority from those that the host trusts"),
    ],
)
def test_teardown_undoes_what_is_there(undo: dict[str, Any], name: str | None) -> None:
    plan = planned(False, undo={**NOTHING["undo"], **undo})
    assert sorted(named("teardown", plan)) == sorted([*ALWAYS, *([name] if name else [])])
    assert named("teardown", plan, ansible_check_mode=True) == ALWAYS


def test_teardown_closes_before_the_files_go() -> None:
    names = [task["name"] for task in load("host/tasks/teardown.yml")]
    assert names.index("Remove the rules of iptables and nftables") < names.index("Remove the files of this role")
    assert names.index("Remove the files of this role") < names.index("Remove the rules of firewalld")


def test_verify_fails_where_something_is_planned() -> None:
    (asserted,) = [task for task in load("host/tasks/verify.yml") if "ansible.builtin.assert" in task]
    condition = {"when": asserted["ansible.builtin.assert"]["that"]}
    for what, passes in (([], True), (["package bc is missing"], False)):
        for part in ("stops", "drift"):
            plan = {**planned(bool(what)), part: {"gpu2": {"host": what}}}
            assert acts(condition, variables("host", swarmspeed_plan=plan)) is passes


def test_no_task_has_tags_of_its_own() -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    for path in (ROLES / "host/tasks").glob("*.yml"):
        assert [task for task in load(f"host/tasks/{path.name}") if "tags" in task] == []


def test_every_name_of_the_plan_that_a_task_reads_is_in_it() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROLES / "host/tasks").glob("*.yml")))
    assert set(re.findall(r"_host_act\.(\w+)", text)) == set(NOTHING)
    assert set(re.findall(r"_host_act\.undo\.(\w+)", text)) == set(NOTHING["undo"])
