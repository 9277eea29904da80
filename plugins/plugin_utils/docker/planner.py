# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role docker: facts and wishes in, changes and refusals out, by way of ``docker_plan``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.problems import Problem
from ..plan.changes import Change, Inputs, RolePlan
from ..plan.files import differs, entry_of
from ..plan.fold import Facts, Wishes
from . import encryption
from .changes import docker_changes, facts_after, owned, record, unheld
from .encryption import engine_after
from .engine import UNIT_FILES, docker_plan
from .gathered import ROLE, SOURCES_PATH
from .host import Host, Request, parse_request

KEY_FILE = "role:docker/files/docker.asc"
"""The public key of Docker's repository, which comes with the role."""
NOTHING: dict[str, Any] = {
    "packages": [],
    "version": "",
    "preview": {},
    "files": [],
    "config": {},
    "restart": "if_idle",
    "swarm": False,
    "reload_units": False,
    "restart_engine": False,
    "users": [],
    "hold": [],
    "record": "",
    "recorded": [],
    "release": [],
}
"""What the role's tasks read of a host on which there is nothing to do."""


class DockerPlanner:
    """Plans each host for itself. Only on an encrypted overlay network do engines depend on each other."""

    role = ROLE

    def files(self, wishes: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""
        yield KEY_FILE
        if wishes["host_ca_certificate"]:
            yield str(wishes["host_ca_certificate"])

    def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
        changes: list[Change] = []
        refusals: list[Problem] = []
        acts: dict[str, Mapping[str, Any]] = {}
        after: dict[str, Mapping[str, Any]] = {}
        encrypting: dict[str, str] = {}
        for host, found in facts.items():
            wished = wishes[host]
            if wished["deepspeed_launch_runtime"] == "host":  # there Docker does not apply
                acts[host] = NOTHING
                continue
            requested = request(wished, inputs)
            planned = docker_plan(found, requested)
            parsed = parse_request(requested)
            made = docker_changes(host, found, parsed, planned)
            changes += made
            if parsed.swarm and wished["overlay_network_encrypted"]:
                encrypting[host] = engine_after(parsed, Host(found))
            refusals += [Problem(host, text, remedy) for text, remedy in planned["problems"]]
            acts[host] = act(Host(found), parsed, planned)
            if made:
                after[host] = facts_after(found, parsed, planned)
        refusals += encryption.refusals(encrypting)
        return RolePlan(changes, refusals, acts, after)


def request(wishes: Mapping[str, Any], inputs: Inputs) -> dict[str, Any]:
    """Return what is configured for a host's engine, in the form that ``docker_plan`` reads."""
    underlay = inputs.cluster.get("underlay")
    mtu = underlay.get("mtu") if isinstance(underlay, Mapping) else None
    authority = inputs.files.get(str(wishes["host_ca_certificate"] or ""), "")
    of_role = ("source", "version", "hold", "users", "proxy", "repository_url")
    return {
        **{name: wishes[f"docker_{name}"] for name in of_role},
        "restart": wishes["docker_allow_restart"],
        "config": wishes["docker_daemon_config"],
        "repository_key": wishes["docker_repository_key"] or inputs.files.get(KEY_FILE, "").rstrip(),
        "ca": hashlib.sha256(authority.encode()).hexdigest()[:16] if authority else "",
        "swarm": wishes["cluster_network_mode"] == "overlay",
        "mtu": mtu or 1500,
        "digest_key": inputs.digest_key,
    }


def act(host: Host, requested: Request, planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the role's tasks read. Its files and its config may hold secrets."""
    known = host.part("files")
    files = [item for item in owned(planned) if differs(item, known, requested.digest_key)]
    holds = record(planned)
    preview = {
        **{name: planned[name] for name in ("packages", "locked", "version", "sources")},
        "address": requested.repository_url if planned["sources"] else "",
        "without": [*planned["stale_sources"], SOURCES_PATH],
        "holds": planned["recorded"],
    }
    return {
        **NOTHING,
        **{name: planned[name] for name in ("packages", "version", "users", "recorded", "release")},
        "preview": preview if planned["preview"] else {},
        "files": [entry_of(item) for item in files],
        "config": planned["config"] if planned["differing_keys"] else {},
        "restart": "always" if requested.restart else "if_idle",
        "swarm": requested.swarm,
        "reload_units": any(item.path in UNIT_FILES for item in files),
        # A new daemon.json is handed to the engine by docker_daemon_config, and another version by apt.
        "restart_engine": host.running and bool(host.stale_swarm_ports or planned["other_units"]),
        "hold": unheld(host, planned),
        "record": planned["record"] if holds and differs(holds, known, requested.digest_key) else "",
    }
