# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tasks of the role swarm read of its plan, and the facts of the hosts once it is carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.swarm.state import DEFAULT_DATA_PATH_PORT, DEFAULT_POOL, LABEL, Step
from ..core.values import mapping
from ..plan.files import differs, fact_after
from ..plan.fold import Facts
from ..plan.managed_file import ManagedFile
from .members import MANAGER, Cluster, Member, after, as_facts
from .record import record_files

PORT = 2377
"""Where managers listen for other nodes."""


def task_inputs(cluster: Cluster, member: Member, steps: Sequence[Step]) -> dict[str, Any]:
    """Return what the tasks read of a host, as far as it is not nothing."""
    entering, is_first = cluster.entering, member.host == cluster.first.host
    found: dict[str, Any] = {
        **leaving(cluster, member),
        "entering": [one.host for one in entering],
        "trouble": _trouble(cluster, member),
    }
    if member in entering:
        address = member.address
        enter = {
            "state": member.role,
            "member_ids": cluster.ids,
            "advertise_addr": address,
            "listen_addr": _with_port(address),
            "data_path_addr": member.data_path_address,
            # What leaving its own dead swarm needs is a consent of the change.
            "leave_foreign": bool(member.role_vars["swarm_allow_leave_foreign"]) or cluster.orphan(member),
        }
        if is_first:
            found["form"] = {
                **enter,
                "data_path_port": member.role_vars["swarm_data_path_port"],
                "default_addr_pool": list(member.role_vars["swarm_default_address_pool"]),
                "adopt": bool(member.role_vars["swarm_allow_adopt"]),
            }
        else:
            found["join"] = {**enter, "remote_addrs": [_with_port(cluster.first.address)]}
    if member in cluster.moved:
        found["rejoin"] = {"member_ids": cluster.ids}
    if is_first:
        found["left"] = [one.node_id for one in cluster.moved]
    # Once hosts have joined it is planned again, with the ids that they got.
    if steps and not entering:
        found["arranging"] = True
        if is_first:
            found["arrange"] = cluster.order()
    return found


def leaving(cluster: Cluster, member: Member) -> dict[str, Any]:
    """Return what teardown reads: the first manager leaves last, which ends the swarm."""
    found: dict[str, Any] = {"cluster": cluster.name, "first": cluster.first.host, "recorded": member.recorded}
    if cluster.lists(member):
        found["leave_last" if member.host == cluster.first.host else "leave"] = {"member_ids": cluster.ids}
    elif cluster.orphan(member):
        found["leave"] = {"member_ids": [member.node_id]}
    return found


def _with_port(address: str) -> str:
    return f"[{address}]:{PORT}" if ":" in address else f"{address}:{PORT}"


def _trouble(cluster: Cluster, member: Member) -> str:
    """Return why a host that is in the swarm is no use there, in words; empty where all is well."""
    entry = cluster.entry(member)
    if entry is None:
        return ""
    if entry.state != "ready":
        return f"the swarm's managers list it as {entry.state}, not ready"
    if entry.role == MANAGER and not member.manages:
        return "the swarm lists it as a manager, but it does not control the swarm"
    return ""


def to_record(cluster: Cluster, facts: Facts, key: str) -> dict[str, list[ManagedFile]]:
    """Return by host the files of the record that differ. Who is still to join gets an id first."""
    found: dict[str, list[ManagedFile]] = {}
    for member in cluster.members:
        if not cluster.entering and cluster.has(member):
            files = record_files(cluster.name, str(cluster.first.swarm.get("cluster_id") or ""), member.node_id)
            found[member.host] = [
                item for item in files if differs(item, mapping(facts[member.host].get("files")), key)
            ]
    return {host: files for host, files in found.items() if files}


def facts_after(cluster: Cluster, facts: Facts, steps: Sequence[Step], key: str) -> dict[str, Mapping[str, Any]]:
    """Return the facts of the hosts once they have joined and their list is in order."""
    nodes = after(cluster.joined(), steps)
    roles = {node.id: node.role for node in nodes}
    found: dict[str, Mapping[str, Any]] = {}
    for member in cluster.members:
        if member.host in cluster.left_out:
            continue
        enters = not cluster.has(member)
        node_id = member.future_id if enters else member.node_id
        swarm = {**member.swarm, "state": "active", "error": None, "node_id": node_id}
        swarm["manager"] = roles.get(node_id, member.role) == MANAGER
        if member in cluster.moved:
            # An interface without an IPv4 address stands for one that only the engine reads.
            swarm["node_addr"] = member.address if member.address[:1].isdigit() else None
        swarm["labels"] = {**({} if enters else mapping(member.swarm.get("labels")))}
        if member.host == cluster.first.host:
            swarm["nodes"] = [as_facts(node) for node in nodes]
            swarm["labels"][LABEL] = cluster.name
            if enters:
                swarm["cluster_id"] = None  # known after apply
                swarm["data_path_port"] = member.role_vars["swarm_data_path_port"] or DEFAULT_DATA_PATH_PORT
                swarm["default_addr_pool"] = list(member.role_vars["swarm_default_address_pool"] or DEFAULT_POOL)
        docker = {**member.docker, "swarm": swarm}
        if enters:  # its overlay networks were those of the swarm that it has left
            networks = mapping(member.docker.get("networks"))
            docker["networks"] = {
                name: known for name, known in networks.items() if mapping(known).get("driver") != "overlay"
            }
        swarm_id = str(cluster.first.swarm.get("cluster_id") or "") if cluster.has(cluster.first) else ""
        files = {item.path: fact_after(item, key) for item in record_files(cluster.name, swarm_id, node_id)}
        known = {**mapping(facts[member.host].get("files")), **files}
        found[member.host] = {**facts[member.host], "docker": docker, "files": known}
    return found
