# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The hosts of a cluster as members of its swarm: which are in it, which in another one, and what its list is to be.

What the first manager knows decides what belongs to the swarm: a worker itself does not know which swarm it is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ...module_utils.swarm.state import LABEL, Current, Node, Step, Wanted
from ...module_utils.swarm.steps import plan_nodes
from ..core.values import mapping, mappings

MANAGER, WORKER = "manager", "worker"


@dataclass(frozen=True)
class Member:
    """One host: what is configured for it, and what its engine says. ``role`` is the wanted one."""

    host: str
    role: str
    docker: Mapping[str, Any]
    hostname: str
    wishes: Mapping[str, Any]
    underlay: str
    jobs: Sequence[str] = ()
    """The jobs that run on the host."""
    recorded: str = ""
    """The record of its swarm, where there is one."""
    was_ours: bool = False
    """Whether the swarm that it is in is recorded on the host as this cluster's."""
    lost: str = ""
    """The address by which the swarm knows it, where its host no longer has that."""

    @property
    def swarm(self) -> Mapping[str, Any]:
        return mapping(self.docker.get("swarm"))

    @property
    def active(self) -> bool:
        return self.swarm.get("state") == "active"

    @property
    def node_id(self) -> str:
        return str(self.swarm.get("node_id") or "") if self.active else ""

    @property
    def manages(self) -> bool:
        return self.swarm.get("manager") is True

    @property
    def label(self) -> Any:
        """The name of the cluster that its swarm belongs to, None where the swarm has no such label."""
        return mapping(self.swarm.get("labels")).get(LABEL)

    @property
    def others_attached(self) -> list[str]:
        """Running containers of others that use a network of the swarm, or are a task of it."""
        networks = mapping(self.docker.get("networks"))
        overlays = {name for name, known in networks.items() if mapping(known).get("driver") == "overlay"}
        found = []
        for name, known in mapping(self.docker.get("containers")).items():
            container = mapping(known)
            labels = mapping(container.get("labels"))
            ours = "swarmspeed.spec" in labels and labels.get(LABEL) == str(self.wishes["cluster_name"])
            uses = overlays & set(mapping(container.get("addresses"))) or "com.docker.swarm.task.id" in labels
            if container.get("state") == "running" and uses and not ours:
                found.append(str(name))
        return found

    @property
    def address(self) -> str:
        """Its address for the other nodes."""
        return str(self.wishes["swarm_advertise_address"] or self.underlay)

    @property
    def data_path_address(self) -> str:
        """Its address for the overlay's traffic, which may go another way."""
        return str(self.wishes["swarm_data_path_address"] or self.underlay)

    @property
    def future_id(self) -> str:
        """Stands for the id that the node gets when it joins."""
        return f"(known after apply: {self.host})"


@dataclass(frozen=True)
class Cluster:
    """All hosts of the cluster, the first manager first. ``name`` is the cluster's, and its swarm's."""

    name: str
    members: Sequence[Member]
    left_out: frozenset[str] = field(default=frozenset())
    """Hosts that cannot join as they are."""

    @property
    def first(self) -> Member:
        return self.members[0]

    @property
    def adopts(self) -> bool:
        """Whether the first manager's swarm, which bears no label, is taken over."""
        first = self.first
        return bool(first.node_id and first.manages and first.label is None and first.wishes["swarm_allow_adopt"])

    @property
    def exists(self) -> bool:
        """Whether the first manager manages the cluster's swarm already."""
        first = self.first
        return bool(first.node_id and first.manages and (first.label == self.name or self.adopts))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The swarm's list of nodes."""
        return tuple(_node(entry) for entry in mappings(self.first.swarm.get("nodes"))) if self.exists else ()

    @cached_property
    def ids(self) -> list[str]:
        return [node.id for node in self.nodes]

    def lists(self, member: Member) -> bool:
        """Whether a host is in this swarm, at whatever address."""
        return bool(member.node_id) and member.node_id in self.ids

    def has(self, member: Member) -> bool:
        """Whether a host is in this swarm, and need not join again."""
        return self.lists(member) and member not in self.moved

    @cached_property
    def moved(self) -> list[Member]:
        """The workers of this swarm that must leave it and join again, as they have another address now."""
        return [member for member in self.members if member.lost and not member.manages and self.lists(member)]

    def orphan(self, member: Member) -> bool:
        """Whether a host is left in this cluster's former swarm, whose managers are lost: none of them lists it."""
        known = {str(node.get("id")) for one in self.members for node in mappings(one.swarm.get("nodes"))}
        return member.was_ours and bool(member.node_id) and member.node_id not in known

    def entry(self, member: Member) -> Node | None:
        """Return how the first manager lists a host."""
        return next((node for node in self.nodes if self.lists(member) and node.id == member.node_id), None)

    @property
    def entering(self) -> list[Member]:
        """The hosts that form or join the swarm; that of one which is adopted is among them."""
        return [
            member
            for member in self.members
            if member.host not in self.left_out
            and (not self.has(member) or (self.adopts and member.host == self.first.host))
        ]

    def order(self) -> dict[str, Any]:
        """Return what the swarm's list is to be, as arguments of ``swarm_membership``; ids as once all have joined."""
        first, ids = self.first, {}
        for member in self.members:
            if self.has(member):
                ids[member.host] = member.node_id
            elif member.host not in self.left_out:
                ids[member.host] = member.future_id
        hostnames: dict[str, list[str]] = {}
        for member in self.members:
            if member.hostname:
                hostnames.setdefault(member.hostname, []).extend([ids[member.host]] if member.host in ids else [])
        present = [member for member in self.members if member.host in ids]
        return {
            "hostnames": hostnames if first.wishes["swarm_prune_stale_nodes"] else {},
            "node_roles": {ids[member.host]: member.role for member in present},
            "node_availability": {ids[member.host]: str(member.wishes["swarm_availability"]) for member in present},
            "removed_nodes": [str(name) for name in first.wishes["swarm_removed_nodes"]],
        }

    def joined(self) -> tuple[Node, ...]:
        """Return the swarm's list once all hosts have joined, in their roles."""
        fresh = [member for member in self.entering if not self.has(member)]
        left = {member.node_id for member in self.moved}
        return (
            *(node for node in self.nodes if node.id not in left),
            *(Node(one.future_id, one.hostname, one.role, addr=bare_address(one.address)) for one in fresh),
        )

    def steps(self) -> list[Step]:
        """Return what the first manager does to its list: the very steps of ``swarm_membership``.

        Raises ``SwarmError`` where it would refuse.
        """
        requested = self.order()
        wanted = Wanted(
            state=MANAGER,
            cluster=self.name,
            hostnames={name: frozenset(ids) for name, ids in requested["hostnames"].items()},
            node_roles=requested["node_roles"],
            node_availability=requested["node_availability"],
            removed_nodes=frozenset(requested["removed_nodes"]),
        )
        own = self.first.node_id if self.exists else self.first.future_id
        now = Current(state="active", node_id=own, manager=True, cluster_id="known", nodes=self.joined())
        return [step for step in plan_nodes(now, wanted) if step.words]


def after(nodes: Iterable[Node], steps: Iterable[Step]) -> list[Node]:
    """Return the list of nodes once these steps are done."""
    found = {node.id: node for node in nodes}
    for step in steps:
        node = found[step.node]
        if step.kind == "remove":
            del found[step.node]
        elif step.kind == "role":
            found[step.node] = replace(node, role=step.role)
        else:
            found[step.node] = replace(node, availability=step.role)
    return list(found.values())


def bare_address(text: str) -> str:
    """Return an address without the port that may stand behind it."""
    return text.rsplit(":", 1)[0] if text.count(":") == 1 else text


def as_facts(node: Node) -> dict[str, Any]:
    """Return a node as ``node_facts`` lists it."""
    return {
        "id": node.id,
        "hostname": node.hostname,
        "role": node.role,
        "availability": node.availability,
        "state": node.state,
        "addr": node.addr,
        "leader": node.leader,
        "reachability": ("reachable" if node.reachable else "unreachable") if node.role == MANAGER else None,
    }


def _node(entry: Mapping[str, Any]) -> Node:
    return Node(
        id=str(entry.get("id") or ""),
        hostname=str(entry.get("hostname") or ""),
        role=str(entry.get("role") or WORKER),
        state=str(entry.get("state") or "unknown"),
        availability=str(entry.get("availability") or "active"),
        addr=str(entry.get("addr") or ""),
        leader=entry.get("leader") is True,
        reachable=not entry.get("reachability") or entry.get("reachability") == "reachable",
    )
