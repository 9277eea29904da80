# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Is this host in the swarm it belongs in, and which steps bring it there: data in, data out, no engine.

What the engine reports (seen on engine 20.10.24; the same fields in the API reference, version 1.41 and later):

* A manager's ``GET /info`` carries ``Swarm.Cluster`` (id, spec with labels, pools) without the join tokens. A worker's
  carries its own node id and its managers' node ids, never the cluster's id. So whether a worker is in *this* swarm
  can only be answered with the node ids that this swarm's managers list: ``member_ids``.
* A node that a manager removed from its list stays ``active`` and shows no error. Its remembered managers give it away.
* A node that left is ``ready`` on its managers for about 15 s more, then ``down``.
* ``pending`` without a node id is a join that never finished; the engine goes on trying it for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError
from typing import Any

from ..engine.daemon_config_keys import parse_version, swarm_takes_nftables

LABEL = "swarmspeed.cluster"
"""Swarm label that holds the cluster's name: how the first manager knows its own swarm again."""

DEFAULT_POOL = ("10.0.0.0/8",)  # the engine's own, as is the /24 (swarmkit controlapi/cluster.go)
DEFAULT_SUBNET_SIZE = 24
DEFAULT_DATA_PATH_PORT = 4789
_TOKEN = re.compile(r"SWMTKN-[0-9A-Za-z]+(?:-[0-9A-Za-z]+){2,3}")

# What a host is to the swarm requested.
NONE, THIS, REMOVED, UNLABELLED, FOREIGN, UNKNOWN = "none", "this", "removed", "unlabelled", "foreign", "unknown"


class SwarmError(Exception):
    """What is wrong, where, and what to do, in one text."""


@dataclass(frozen=True)
class Node:
    """One line of a manager's list; ``state`` is ready, down, unknown or disconnected."""

    id: str
    hostname: str = ""
    role: str = "worker"
    state: str = "ready"
    availability: str = "active"
    addr: str = ""
    leader: bool = False
    reachable: bool = True

    @property
    def name(self) -> str:
        return f"{self.hostname or 'node'} ({self.id})"


@dataclass(frozen=True)
class Current:
    """What the engine says; the default is a host that has no swarm, or no engine yet."""

    state: str = "inactive"  # inactive, pending, active, error or locked
    node_id: str = ""
    node_addr: str = ""
    manager: bool = False
    error: str = ""
    cluster_id: str = ""  # managers with a leader only
    labels: Mapping[str, str] = field(default_factory=dict)
    data_path_port: int = DEFAULT_DATA_PATH_PORT
    default_addr_pool: Sequence[str] = DEFAULT_POOL
    subnet_size: int = DEFAULT_SUBNET_SIZE
    remotes: Mapping[str, str] = field(default_factory=dict)  # address -> node id ("" while joining) of its managers
    nodes: Sequence[Node] = ()  # managers only
    live_restore: bool = False
    nftables: bool = False
    """The engine has the nftables backend, and its release lets none of those into a swarm."""


@dataclass(frozen=True)
class Wanted:
    """The module's parameters, checked. ``None`` means not given."""

    state: str
    cluster: str
    init: bool = False
    remote_addrs: Sequence[str] = ()
    join_token: str | None = field(default=None, repr=False)
    member_ids: frozenset[str] | None = None
    cluster_id: str = ""
    advertise_addr: str = ""
    listen_addr: str = "0.0.0.0:2377"
    data_path_addr: str = ""
    data_path_port: int = 0
    default_addr_pool: Sequence[str] = ()
    subnet_size: int = 0
    leave_foreign: bool = False
    adopt: bool = False
    force: bool = False
    hostnames: Mapping[str, frozenset[str]] = field(default_factory=dict)
    node_roles: Mapping[str, str] = field(default_factory=dict)
    node_availability: Mapping[str, str] = field(default_factory=dict)
    removed_nodes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Step:
    """One thing to do. ``words`` is empty for mere waiting, which is not a change; the other texts make the diff."""

    kind: str  # wait, leave, init, join, label, role, availability, remove
    words: str = ""
    node: str = ""
    role: str = ""  # or the availability
    force: bool = False
    subject: str = "membership"
    before: str = ""
    after: str = ""


def parse_current(info: Mapping[str, Any], nodes: Iterable[Mapping[str, Any]] = ()) -> Current:
    """``GET /info`` and, on a manager, ``GET /nodes``."""
    swarm: Mapping[str, Any] = info.get("Swarm") or {}
    cluster: Mapping[str, Any] = swarm.get("Cluster") or {}
    return Current(
        state=swarm.get("LocalNodeState") or "inactive",
        node_id=swarm.get("NodeID") or "",
        node_addr=swarm.get("NodeAddr") or "",
        manager=bool(swarm.get("ControlAvailable")),
        error=swarm.get("Error") or "",
        cluster_id=cluster.get("ID") or "",
        labels=dict((cluster.get("Spec") or {}).get("Labels") or {}),
        data_path_port=cluster.get("DataPathPort") or DEFAULT_DATA_PATH_PORT,
        default_addr_pool=tuple(cluster.get("DefaultAddrPool") or DEFAULT_POOL),
        subnet_size=cluster.get("SubnetSize") or DEFAULT_SUBNET_SIZE,
        remotes={peer.get("Addr") or "": peer.get("NodeID") or "" for peer in swarm.get("RemoteManagers") or ()},
        nodes=tuple(parse_node(node) for node in nodes),
        live_restore=bool(info.get("LiveRestoreEnabled")),
        nftables=_refuses_nftables(info),
    )


def _refuses_nftables(info: Mapping[str, Any]) -> bool:
    nftables = (info.get("FirewallBackend") or {}).get("Driver") == "nftables"
    return nftables and not swarm_takes_nftables(parse_version(info.get("ServerVersion")), None)


def parse_node(node: Mapping[str, Any]) -> Node:
    """One element of ``GET /nodes``, or ``GET /nodes/ID``."""
    spec, status, manager = (node.get(key) or {} for key in ("Spec", "Status", "ManagerStatus"))
    return Node(
        id=node["ID"],
        hostname=(node.get("Description") or {}).get("Hostname") or "",
        role=spec.get("Role") or "worker",
        state=status.get("State") or "unknown",
        availability=spec.get("Availability") or "active",
        addr=status.get("Addr") or "",
        leader=bool(manager.get("Leader")),
        reachable=not manager or manager.get("Reachability") == "reachable",
    )


def parse_wanted(given: Mapping[str, Any]) -> Wanted:
    """Check the parameters; every error names the parameter and never repeats a token."""
    values = {key: value for key, value in given.items() if key in Wanted.__dataclass_fields__ and value is not None}
    for key in ("hostnames", "node_roles", "node_availability", "removed_nodes"):
        if values.get(key) and values["state"] != "manager" and (key, values["state"]) != ("removed_nodes", "absent"):
            raise SwarmError(f"{key} is for managers: only they keep the list of nodes; state is {values['state']}.")
    if not str(values["cluster"]).strip():
        raise SwarmError("cluster is empty: give the name of the cluster this swarm serves.")
    if values.get("init") and values["state"] != "manager":
        raise SwarmError(f"init is true and state is {values['state']}: only a manager can create the swarm.")
    if values.get("join_token") and not _TOKEN.fullmatch(values["join_token"]):
        raise SwarmError(
            "join_token is not a swarm join token (SWMTKN-1-…): take it from a manager, with return_tokens: true."
        )
    if not values.get("listen_addr"):
        values.pop("listen_addr", None)
    if "member_ids" in values:
        values["member_ids"] = frozenset(str(item) for item in values["member_ids"] if item)
    values["removed_nodes"] = frozenset(values.get("removed_nodes") or ())
    values["hostnames"] = {name: _ids(name, ids) for name, ids in (values.get("hostnames") or {}).items()}
    for node, role in (values.get("node_roles") or {}).items():
        if role not in ("manager", "worker"):
            raise SwarmError(f"node_roles: {node} has role {role!r}; it is manager or worker.")
    for node, availability in (values.get("node_availability") or {}).items():
        if availability not in ("active", "pause", "drain"):
            raise SwarmError(f"node_availability: {node} has {availability!r}; it is active, pause or drain.")
    _check_ranges(values)
    return Wanted(**values)


def _ids(hostname: str, ids: Any) -> frozenset[str]:
    if ids is None or isinstance(ids, str):
        ids = [ids]
    if not isinstance(ids, (list, tuple)) or not all(item is None or isinstance(item, str) for item in ids):
        raise SwarmError(f"hostnames: {hostname} needs a node id, or a list of them where hosts share the name.")
    return frozenset(item for item in ids if item)


def _check_ranges(values: Mapping[str, Any]) -> None:
    port, size = values.get("data_path_port") or 0, values.get("subnet_size") or 0
    if port and not 1024 <= port <= 49151:
        raise SwarmError(f"data_path_port is {port}; the engine takes 1024 to 49151.")
    if size and not 1 <= size <= 29:
        raise SwarmError(f"subnet_size is {size}; the engine takes a prefix length of at most 29.")
    pools: list[IPv4Network] = []
    for text in values.get("default_addr_pool") or ():
        try:
            pool = IPv4Network(text)
        except (AddressValueError, NetmaskValueError, ValueError) as error:
            raise SwarmError(
                f"default_addr_pool: {text!r} is not an IPv4 network such as 10.42.0.0/16: {error}"
            ) from error
        if pool.prefixlen > (size or DEFAULT_SUBNET_SIZE):
            raise SwarmError(
                f"default_addr_pool: {text} is smaller than one subnet (/{size or DEFAULT_SUBNET_SIZE}):"
                " give a larger pool or a larger subnet_size."
            )
        for other in pools:
            if pool.overlaps(other):  # the engine accepts these and hands the same addresses out twice
                raise SwarmError(f"default_addr_pool: {text} and {other} overlap: give pools that share no address.")
        pools.append(pool)


def relation(current: Current, wanted: Wanted) -> str:
    """What this host is to the swarm requested. A label of another cluster outweighs everything else."""
    if current.state == "inactive":
        return NONE
    if not current.node_id:
        return UNKNOWN
    return _by_cluster(current, wanted) if current.cluster_id else _by_node(current, wanted)


def _by_cluster(current: Current, wanted: Wanted) -> str:
    label, known = current.labels.get(LABEL), wanted.member_ids
    if label not in (None, wanted.cluster):
        return FOREIGN
    if wanted.cluster_id:
        return THIS if current.cluster_id == wanted.cluster_id else FOREIGN
    listed = current.node_id in (known or ())
    if label is None:
        # the first manager answers for the label; the others follow it
        return THIS if listed and not wanted.init else UNLABELLED
    return FOREIGN if known and not listed else THIS


def _by_node(current: Current, wanted: Wanted) -> str:
    known = wanted.member_ids
    if known is None:
        return UNKNOWN
    if current.node_id in known:
        return THIS
    return REMOVED if known & set(current.remotes.values()) else FOREIGN


def quorum_without(nodes: Iterable[Node], leaving: str) -> tuple[int, int, bool]:
    """Managers that answer, managers that remain, and whether they can still decide, once ``leaving`` is none."""
    rest = [node for node in nodes if node.role == "manager" and node.id != leaving]
    answering = sum(1 for node in rest if node.reachable)
    return answering, len(rest), bool(rest) and 2 * answering > len(rest)


def diff(steps: Iterable[Step]) -> tuple[dict[str, str], dict[str, str]]:
    """Before and after, of exactly the steps that change something."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for step in steps:
        if step.words:
            before.setdefault(step.subject, step.before)
            after[step.subject] = step.after
    return before, after
