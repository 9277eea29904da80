# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role host acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planned_roles import PlannedRole, nothing
from tests.role_values import task_inputs

ROLE = PlannedRole("host")
AGAIN = "Gather facts and plan again"


@pytest.mark.parametrize(
    ("task_input", "name"),
    [
        ({}, None),
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
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], name: str | None) -> None:
    assert ROLE.names("converge", ROLE.plan(True, **task_input)) == [*([name] if name else []), AGAIN]


def test_the_order_is_that_of_what_depends_on_what() -> None:
    """dpkg before apt; the unit is stopped before its script goes; apt goes through a proxy that was written."""
    names = [task["name"] for task in ROLE.tasks("converge")]
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
        AGAIN,
    ]


def test_after_the_repair_of_dpkg_it_is_planned_again() -> None:
    for changed in (True, False):
        assert (
            task_inputs(ROLE.tasks("dpkg")[-1], ROLE.given(None, _host_dpkg_repaired={"changed": changed})) is changed
        )


ALWAYS = [
    "Remove packages of a bundle that an interrupted run left",
    "Remove the files of this role",
    "Remove the folders of all clusters, if nothing is left in them",
]


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
    plan = ROLE.plan(False, undo={**nothing()["host"]["undo"], **undo})
    assert sorted(ROLE.names("teardown", plan)) == sorted([*ALWAYS, *([name] if name else [])])
    assert ROLE.names("teardown", plan, ansible_check_mode=True) == ALWAYS


def test_teardown_closes_before_the_files_go() -> None:
    names = [task["name"] for task in ROLE.tasks("teardown")]
    assert names.index("Remove the rules of iptables and nftables") < names.index("Remove the files of this role")
    assert names.index("Remove the files of this role") < names.index("Remove the rules of firewalld")
