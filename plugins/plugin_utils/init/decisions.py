# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What init decides from the servers' facts: names, managers, network. Pure; docs/init.md has the table."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cluster.given_addresses import given_underlay
from ..cluster.underlay import Underlay, UnderlayError, common_underlay
from ..core.kinds import KINDS
from ..nccl_env.settings import common_rdma
from .servers import Server

Facts = Mapping[str, Mapping[str, Any]]
FAST = 25_000
"""Mbit/s from which VXLAN costs more than the isolation of an overlay is worth, between hosts that trust each other."""
THREE_MANAGERS = 5
"""Servers from which there are three managers."""
LONGEST_NAME = 30
_COMMON = frozenset({"localhost", "debian", "ubuntu", "server", "host", "node"})


@dataclass(frozen=True)
class Choice:
    """A value of a variable, empty for its default, and the reason as a clause."""

    value: str
    reason: str


@dataclass(frozen=True)
class Network:
    """``cluster_network_mode``; and ``cluster_underlay_subnet`` or, for routed networks, ``cluster_address``."""

    mode: Choice
    subnet: Choice
    address: str = ""


def choose_names(servers: Sequence[Server], facts: Facts, taken: Collection[str] = ()) -> dict[str, str]:
    """Return the inventory name of each server by label: the one given, its host name, or gpu1, gpu2, node1 …

    Host names are used if all servers have one that Docker, DNS and ssh take alike, and none has that of another.
    """
    given = {server.label: server.name for server in servers if server.name}
    others = [server.label for server in servers if not server.name]
    own = {label: str(facts[label]["system"].get("hostname") or "").partition(".")[0].lower() for label in others}
    used = {*taken, *given.values()}
    fit = all(KINDS["dns_label"].accepts(name) and len(name) <= LONGEST_NAME for name in own.values())
    if fit and len({*own.values(), *used}) == len(own) + len(used) and not _COMMON & set(own.values()):
        return {server.label: given.get(server.label) or own[server.label] for server in servers}
    stem = "gpu" if all(gpus(facts[label]) for label in others) else "node"
    numbers = (number for number in range(1, len(used) + len(servers) + 1) if f"{stem}{number}" not in used)
    return {server.label: given.get(server.label) or f"{stem}{next(numbers)}" for server in servers}


def choose_managers(count: int) -> Choice:
    """Return how many of so many servers are managers of the swarm, which decide by majority."""
    if count >= THREE_MANAGERS:
        return Choice("3", f"with {THREE_MANAGERS} servers or more, the swarm should survive the loss of a manager")
    return Choice(
        "1",
        f"with fewer than {THREE_MANAGERS} servers a job uses all of them and ends with any of them; site.yml then "
        "makes the swarm again",
    )


def choose_network(servers: Sequence[Server], facts: Facts) -> Network:
    """Return the network of the training."""
    fabrics = {server.label: facts[server.label]["fabric"] for server in servers}
    reached = {server.label: server.address for server in servers}
    try:
        underlay = common_underlay(fabrics, None, reached)
    except UnderlayError as error:
        why = Choice("", str(error))
        try:
            # With a router between them, each at the address by which Ansible reaches it.
            underlay = given_underlay(fabrics, reached)
        except UnderlayError:
            return Network(_mode(fabrics, None), why)
        return Network(_mode(fabrics, underlay), why, "{{ ansible_host }}")
    subnet = underlay.subnet if len(servers) > 1 else ""
    return Network(_mode(fabrics, underlay), Choice(subnet, underlay.reason))


def _mode(fabrics: Facts, underlay: Underlay | None) -> Choice:
    """Return ``host`` for RDMA, and for 25 Gbit/s or more between addresses that the internet cannot reach."""
    rdma = common_rdma(fabrics)
    if len(fabrics) == 1:
        return Choice("overlay", "a single server needs nothing faster")
    if rdma["link_layer"]:
        return Choice("host", f"{rdma['reason']}, and an overlay carries no RDMA")
    speed = underlay.speed_mbps if underlay else None
    if underlay is None or speed is None:
        return Choice("overlay", f"{rdma['reason']}, and the speed of the network is not known")
    if speed < FAST:
        return Choice("overlay", f"{rdma['reason']}, and at {_gbit(speed)} VXLAN costs little")
    if not all(ipaddress.ip_address(address).is_private for address in underlay.addresses.values()):
        return Choice("overlay", f"{_gbit(speed)}, but between public addresses; an overlay keeps its ports closed")
    return Choice("host", f"{_gbit(speed)} between private addresses, where VXLAN would cost more than a few percent")


def _gbit(mbps: int) -> str:
    return f"{mbps / 1000:g} Gbit/s"


def gpus(facts: Mapping[str, Any]) -> str:
    """Return a server's GPUs in words; empty where it has none."""
    gpu = facts["gpu"]
    names = [re.sub(r"[^\w ./+-]", "", str(one.get("name") or "NVIDIA GPU")) for one in gpu.get("gpus") or []]
    if names:
        return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))
    count = len(gpu.get("pci_devices") or [])
    return f"{count} × NVIDIA GPU, no driver yet" if count else ""


def notes(servers: Sequence[Server], names: Mapping[str, str], facts: Facts) -> list[str]:
    """Return what a user should know and init decides nothing about."""
    found = []
    with_gpus = [server.label for server in servers if gpus(facts[server.label])]
    if with_gpus and len(with_gpus) < len(servers):
        lacking = ", ".join(names[server.label] for server in servers if server.label not in with_gpus)
        found.append(f"No GPU on {lacking}: take it out of hosts.yml, or set cluster_accelerator: cpu.")
    walls = {server.label: facts[server.label]["firewall"].get("active") or [] for server in servers}
    if any(walls.values()):
        listed = ", ".join(f"{names[label]} ({', '.join(active)})" for label, active in walls.items() if active)
        found.append(f"Firewall on {listed}: the role host opens the ports between the servers, except for sshd's.")
    return found
