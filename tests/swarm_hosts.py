# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented hosts of a cluster, in its swarm or out of it, and the plan for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Change, Inputs, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import fact_after
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.planner import SwarmPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.record import record_files

from tests.role_values import defaults

HOSTS = ("gpu1", "gpu2", "gpu3")
ADDRESSES = {host: f"10.1.0.{number}" for number, host in enumerate(HOSTS, 1)}
LABEL = {"swarmspeed.cluster": "lab"}
ROLE_VARS = defaults(
    cluster_name="lab",
)
OUT: dict[str, Any] = {"state": "inactive", "node_id": None, "manager": False, "labels": {}, "nodes": []}


def inputs(*managers: str, hosts: tuple[str, ...] = HOSTS) -> Inputs:
    """What cluster_facts says of the cluster; gpu1 is a manager in each case."""
    return Inputs(
        cluster={
            "hosts": list(hosts),
            "first": hosts[0],
            "managers": [host for host in hosts if host in (*managers, hosts[0])],
            "underlay": {"addresses": ADDRESSES},
        }
    )


def listed(host: str, role: str = "worker", **changed: Any) -> dict[str, Any]:
    """A line of the managers' list of nodes."""
    return {
        "id": f"id-{host}",
        "hostname": host,
        "role": role,
        "availability": "active",
        "state": "ready",
        "addr": ADDRESSES.get(host, "10.1.0.99"),
        "leader": False,
        "reachability": "reachable" if role == "manager" else None,
        **changed,
    }


def member(host: str, *nodes: Mapping[str, Any], manager: bool = False, **changed: Any) -> dict[str, Any]:
    """What the engine of a host in the swarm says; managers list the nodes, and know the label."""
    manager = manager or bool(nodes)
    return {
        "state": "active",
        "node_id": f"id-{host}",
        "node_addr": ADDRESSES.get(host),
        "manager": manager,
        "labels": dict(LABEL) if manager else {},
        "nodes": list(nodes),
        "data_path_port": 4789 if manager else None,
        "default_addr_pool": ["10.0.0.0/8"] if manager else [],
        **changed,
    }


def facts(host: str, swarm: Mapping[str, Any], **changed: Any) -> dict[str, Any]:
    docker = {"installed": True, "running": True, "error": None, "swarm": dict(swarm), "networks": {}}
    return {"system": {"hostname": host}, "docker": {**docker, **changed}, "files": recorded(swarm)}


def recorded(swarm: Mapping[str, Any]) -> dict[str, Any]:
    """What was gathered of the record, where the host is in a swarm that is this cluster's, for all that it shows."""
    if not isinstance(swarm.get("node_id"), str) or not str(swarm["node_id"]).startswith("id-"):
        return {}
    if swarm.get("manager") and swarm.get("labels") != LABEL:
        return {}
    files = record_files("lab", "", swarm["node_id"])
    return {item.path: {**fact_after(item, ""), "content": item.content} for item in files}


def fabric(*addresses: str) -> dict[str, Any]:
    """What fabric_info says of a host with one interface that has these addresses."""
    entries = [{"family": "inet", "address": address, "prefix": 24, "scope": "global"} for address in addresses]
    return {"interfaces": [{"name": "eth0", "addresses": entries}]}


def whole(*nodes: Mapping[str, Any], **swarms: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The facts of three hosts in their swarm; ``nodes`` replaces the list, ``swarms`` what single hosts say."""
    known = nodes or (listed("gpu1", "manager"), listed("gpu2"), listed("gpu3"))
    found: dict[str, Mapping[str, Any]] = {
        "gpu1": member("gpu1", *known),
        "gpu2": member("gpu2"),
        "gpu3": member("gpu3"),
    }
    return {host: facts(host, swarm) for host, swarm in {**found, **swarms}.items()}


def out(*hosts: str) -> dict[str, dict[str, Any]]:
    """The facts of hosts in no swarm."""
    return {host: facts(host, OUT) for host in hosts or HOSTS}


def plan(
    found: Mapping[str, Mapping[str, Any]],
    given: Inputs | None = None,
    each: Mapping[str, Mapping[str, Any]] | None = None,
    **desired: Any,
) -> Plan:
    """The plan for these hosts; ``each`` are variables of single hosts, ``desired`` those of all."""
    role_vars = {host: {**ROLE_VARS, **desired, **(each or {}).get(host, {})} for host in found}
    return fold([SwarmPlanner()], found, role_vars, given or inputs())


def shown(made: Plan) -> list[tuple[str, str, str, Any, Any]]:
    """All changes but the record that each host that enters the swarm is to get."""
    return [(one.host, one.action, one.what, one.before, one.after) for one in but_foreseen_records(made)]


def but_foreseen_records(made: Plan) -> list[Change]:
    entering = {change.host for change in made.changes if isinstance(change.after, Unknown)}
    return [one for one in made.changes if one.host not in entering or not one.what.startswith("/var/lib/swarmspeed/")]


def task_input(made: Plan, host: str = "gpu1") -> Mapping[str, Any]:
    return made.task_inputs[host]["swarm"]
