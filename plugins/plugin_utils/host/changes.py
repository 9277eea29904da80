# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)


"""The changes of the role host on one host, and the facts that the host has afterwards."""

from __future__ import annotations

from typing import Any

from ...module_utils.firewall.state import UFW
from ..plan.changes import Change, Changes, Consent, Unknown
from ..plan.files import ABSENT, add_file, fact_after
from .files import WHY
from .gathered import CA, CA_LINK, ROLE
from .host import Differences


def host_changes(found: Differences) -> list[Change]:
    """Return what the role would change, in the order in which it does."""
    here = found.here
    changes = Changes(ROLE, here.name)
    _add_repair(changes, found)
    for item in found.files:
        add_file(changes, item, here.part("files"), here.key, WHY.get(item.path, "host_firewall"))
    for package in here.missing_packages:
        changes.add(f"package {package}", None, Unknown("the version that apt chooses"), "host_packages")
    if found.trust_differs:
        changes.add(f"trust in {CA}", here.trusts or None, None if here.trusts else True, "host_ca_certificate")
    for name, (before, after) in here.sysctls.items():
        changes.add(f"kernel parameter {name}", before, after, "host_sysctls")
    _add_openings(changes, found)
    return changes.found


def _add_repair(changes: Changes, found: Differences) -> None:
    interrupted, stopped = found.here.interrupted, found.here.stopped_by_repair
    if not interrupted:
        return
    effect = (
        f"an interrupted dpkg must be repaired ({', '.join(interrupted)}), which restarts the engine and stops these "
        f"running containers: {', '.join(stopped)}"
    )
    given = bool(found.here.wishes["docker_allow_restart"])
    consent = Consent("docker_allow_restart", effect, given, "stop the containers first") if stopped else None
    before = f"interrupted: {', '.join(interrupted)}"
    changes.add("dpkg", before, "every package configured", consent=consent)


def _add_openings(changes: Changes, found: Differences) -> None:
    """Add what differs in the kernel or in ufw. firewalld's policy is a file."""
    firewall = found.firewall
    if not firewall:
        return
    for name, wanted in firewall["wanted"].items():
        there = firewall["found"].get(name)
        if name == UFW:
            for rule in (rule for rule in there or [] if rule not in wanted):
                changes.add(f"ufw rule {rule}", True, None, "host_firewall")
            for rule in (rule for rule in wanted if rule not in (there or [])):
                changes.add(f"ufw rule {rule}", None, True, "host_firewall")
        elif there != wanted:
            changes.add(f"opening for the other nodes in {name}", there, wanted, "host_firewall")


def facts_after(found: Differences) -> dict[str, Any]:
    """Return the host's facts once the role has done what is planned, as far as they can be known."""
    here = found.here
    files = {**here.part("files"), **{item.path: fact_after(item, here.key) for item in found.files}}
    if found.trust_differs:
        files[CA_LINK] = {**ABSENT, "exists": bool(here.wishes["host_ca_certificate"])}
    return {
        **here.facts,
        "packages": {**here.part("packages"), **dict.fromkeys(here.missing_packages, "(known after apply)")},
        "files": files,
        "sysctls": {**here.part("sysctls"), **{name: after for name, (dummy, after) in here.sysctls.items()}},
        "dpkg": {**here.part("dpkg"), "unfinished": [], "journal": False},
        "firewall": found.firewall["after"] if found.firewall else here.part("firewall"),
    }
