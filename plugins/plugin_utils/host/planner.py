# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)


"""The planner of the role host: facts and role_vars in, changes and refusals out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from ...module_utils.apt.pins import names
from ...module_utils.firewall.state import FIREWALLD
from ..core.problems import Problem
from ..plan.changes import Change, Inputs, RolePlan
from ..plan.fold import Facts, RoleVars
from ..plan.managed_file import ManagedFile
from .changes import facts_after, host_changes
from .files import managed_files
from .firewall import ufw_close
from .firewall_rules import SCRIPT_PATH, UNIT_PATH, policy_path
from .gathered import CA, ROLE, cluster_name
from .host import Differences, Host, compared

NOTHING: dict[str, Any] = {
    "repair_dpkg": False,
    "close_unit": False,
    "files": [],
    "packages": [],
    "trust": False,
    "sysctls": False,
    "restart_unit": False,
    "reload_units": False,
    "ufw": [],
    "reload_firewalld": False,
    "undo": {"close_unit": False, "ufw": [], "files": [], "trust": False, "reload_firewalld": False},
}
"""What the role's tasks read of a host on which there is nothing to do, and nothing to undo."""


class HostPlanner:
    """Plans each host for itself; of the others it needs their addresses."""

    role = ROLE

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        if role_vars["host_ca_certificate"]:
            yield str(role_vars["host_ca_certificate"])

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        task_inputs: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        for host, gathered in facts.items():
            found = compared(Host(host, gathered, role_vars[host], inputs))
            made = host_changes(found)
            changes += made
            refusals += _refusals(found)
            task_inputs[host] = task_input(found)
            if made:
                after[host] = facts_after(found)
        return RolePlan(changes, refusals, task_inputs, after)


def task_input(found: Differences) -> dict[str, Any]:
    """Return what the role's tasks read. Its files may hold secrets."""
    here, firewall = found.here, found.firewall
    return {
        # One that is at work is waited for, where there is something else to do.
        "repair_dpkg": here.dpkg_waits,
        "close_unit": found.close_unit,
        "files": [asdict(item) for item in found.files],
        "packages": here.missing_packages,
        "trust": found.trust,
        "sysctls": bool(here.sysctls),
        "restart_unit": found.restart_unit,
        "reload_units": UNIT_PATH in found.paths,
        "ufw": firewall["commands"] if firewall else [],
        "reload_firewalld": found.reload_firewalld,
        "undo": _undo(found),
    }


def _undo(found: Differences) -> dict[str, Any]:
    """Return what teardown reads: all that is there and would not be without this role."""
    here, policy = found.here, policy_path(cluster_name(found.here.role_vars))
    files = managed_files(here.role_vars, here.part("system"), "", "")
    # Folders stay, as others may use them by now.
    files = [item for item in files if item.text is not None]
    files += [ManagedFile(path, "") for path in (SCRIPT_PATH, UNIT_PATH, policy)]
    there, dummy = here.differing([replace(item, content="", state="absent") for item in files])
    paths = [item.path for item in there]
    return {
        "close_unit": here.exists(UNIT_PATH),
        "ufw": ufw_close(here.part("firewall"), cluster_name(here.role_vars)),
        "files": [asdict(item) for item in there],
        "trust": CA in paths or here.trusts,
        "reload_firewalld": policy in paths and FIREWALLD in names(here.part("firewall").get("active")),
    }


def _refusals(found: Differences) -> list[Problem]:
    host = found.here.name
    refusals = [
        Problem(
            host,
            f"{item.path} exists, but this collection did not create it: its first line does not contain '{item.mark}'",
            (
                "add the settings to it yourself and unset the variables for it (host_pip_index, host_pip_proxy and "
                "host_ca_certificate), or move it away"
            ),
        )
        for item in found.foreign
    ]
    problems = found.firewall["problems"] if found.firewall else []
    return refusals + [Problem(host, problem, "correct host_firewall_ports") for problem in problems]
