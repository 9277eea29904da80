# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Notes on what anyone who reaches a node can do to a job, by the ports that its firewall leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.values import mapping
from .checks import HOST, Wanted

_FAMILIES = {"ipv4": "IPv4", "ipv6": "IPv6"}
_SWARM = (("tcp", 2377), ("tcp", 7946), ("udp", 7946))
"""Ports of the swarm, which checks certificates there."""


def open_to_anyone(hostvars: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Notes where anyone can inject packets into the overlay, or meet ranks in the network of the hosts."""
    facts = {name: mapping(mapping(hostvars.get(name)).get("ansible_facts")).get("swarmspeed") for name in wanted.hosts}
    firewalls = {name: mapping(mapping(known).get("firewall")) for name, known in facts.items()}
    known = {name: firewall for name, firewall in firewalls.items() if firewall}
    if wanted.network == HOST:
        return _ranks(known, wanted)
    return _overlay(known, wanted) if wanted.data_port and not wanted.encrypted else []


def _overlay(firewalls: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """VXLAN has no authentication. It is IPv4 only."""
    bare = [name for name, firewall in firewalls.items() if is_open(firewall, "ipv4", "udp", wanted.data_port or 0)]
    if not bare:
        return []
    also = [
        f"{port}/{protocol}"
        for protocol, port in _SWARM
        if any(is_open(firewalls[name], family, protocol, port) for name in bare for family in _FAMILIES)
    ]
    return [
        f"{', '.join(bare)}: no firewall keeps UDP {wanted.data_port} from anyone, and the overlay is not encrypted, "
        f"so whoever can send to {'it' if len(bare) == 1 else 'them'} can inject packets into the overlay"
        f"{' (also open, but authenticated: ' + ', '.join(also) + ')' if also else ''}. Remedy: let only the nodes "
        "send to that port, by a firewall on them or in the network, or set overlay_network_encrypted: true"
    ]


def _ranks(firewalls: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """The rendezvous of ranks has no authentication either, and they listen at all addresses, also of IPv6."""
    low, dummy, high = wanted.rendezvous.partition("-")
    groups: dict[str, list[str]] = {}
    for name, firewall in firewalls.items():
        by = [
            word for family, word in _FAMILIES.items() if is_open(firewall, family, "tcp", int(low), int(high or low))
        ]
        if by:
            groups.setdefault(" and ".join(by), []).append(name)
    return [
        f"{', '.join(names)}: no firewall keeps TCP {wanted.rendezvous} from anyone over {by}, and the rendezvous of "
        "a job there has no authentication, so whoever reaches it can disturb the job or pose as a rank. Remedy: let "
        "only the nodes reach these ports, by a firewall on them or in the network, or give the underlay a network of "
        "its own"
        for by, names in groups.items()
    ]


def is_open(firewall: Mapping[str, Any], family: str, protocol: str, low: int, high: int = 0) -> bool:
    """Whether anyone may reach one of these ports; where it is not known, they may."""
    ranges = mapping(mapping(firewall.get("open")).get(family)).get(protocol)
    if not isinstance(ranges, list) or any(len(one) != 2 for one in ranges):
        return True
    return any(first <= (high or low) and low <= last for first, last in ranges)
