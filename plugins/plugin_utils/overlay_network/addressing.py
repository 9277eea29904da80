# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the overlay network is to be: its subnet, its MTU and the containers' addresses in it. Pure.

What is there stays as it is wherever it works; only consent (``recreate``) or an explicit value changes it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..cluster.subnets import SubnetError, parse_network, pick_subnet
from .subnet_conflicts import conflicts, in_the_way

MTU_OPTION = "com.docker.network.driver.mtu"
"""The *underlay's* MTU: the driver takes VXLAN's 50 bytes off it itself (libnetwork drivers/overlay, vxlanEncap)."""
DEFAULT_MTU = 1500
"""What the driver assumes where a network has no such option."""
VXLAN_BYTES = 50
PREFIX = 24
AUTO = "auto"


class OverlayError(Exception):
    """The overlay cannot be as it is requested; the text says what, where and what to do."""


@dataclass(frozen=True)
class OverlayRequest:
    """What the roles' variables ask. ``addresses`` is by host: empty, ``auto`` or an address."""

    name: str
    subnet: str = ""
    pool: str = "10.64.0.0/12"
    mtu: int = 0
    recreate: bool = False
    swarm_pools: Sequence[str] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    containers: Mapping[str, str] = field(default_factory=dict)


def plan_overlay(
    requested: OverlayRequest, facts: Mapping[str, Mapping[str, Any]], first: str, underlay_mtu: int
) -> dict[str, Any]:
    """Return ``subnet``, ``mtu`` (bytes, of the underlay) and ``addresses`` by host (only of those that have one)."""
    found = network_of(facts[first], requested.name)
    subnet = choose_subnet(requested, found, facts)
    try:
        addresses = choose_addresses(requested, subnet, facts)
    except SubnetError as error:
        raise OverlayError(f"overlay_network_subnet: {error} Remedy: correct it.") from None
    return {"subnet": subnet, "mtu": choose_mtu(requested, found, underlay_mtu), "addresses": addresses}


def network_of(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return what a node's engine says of the network, empty where it has none of that name."""
    found: Mapping[str, Any] = (node.get("docker") or {}).get("networks", {}).get(name) or {}
    return found


def choose_subnet(requested: OverlayRequest, found: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the subnet: the one requested, else that of the network that exists, else the first free one of the pool.

    One that exists and collides is given up only where the network may be re-created.
    """
    if requested.subnet:
        return requested.subnet
    present = {host: conflicts(node, requested.name, requested.swarm_pools) for host, node in facts.items()}
    existing = next(iter(found.get("subnets") or []), "")
    collides = existing and any(list(in_the_way(existing, known)) for known in present.values())
    if existing and not (collides and requested.recreate):
        return str(existing)
    taken = {f"{host}: {item.words}": item.network for host, known in present.items() for item in known}
    try:
        return pick_subnet(requested.pool, PREFIX, taken)
    except SubnetError as error:
        text = str(error).replace("Name another address pool.", "").rstrip(". ")
        raise OverlayError(
            f"overlay_network_pool: {text}. Remedy: set overlay_network_pool to a network in which a /{PREFIX} is free."
        ) from None


def choose_mtu(requested: OverlayRequest, found: Mapping[str, Any], underlay_mtu: int) -> int:
    """Return the MTU option in bytes: the one requested, else the smallest of all hosts' underlay interfaces.

    A network that exists with a smaller one works, so it is kept until it may be re-created.
    """
    if requested.mtu:
        return requested.mtu
    existing = existing_mtu(found)
    return existing if existing and existing < underlay_mtu and not requested.recreate else underlay_mtu


def existing_mtu(found: Mapping[str, Any]) -> int | None:
    """Return the MTU option of a network that exists, None if there is no network or the option is not a number."""
    if not found:
        return None
    text = str((found.get("options") or {}).get(MTU_OPTION, DEFAULT_MTU))
    return int(text) if text.isdigit() else None


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, str]:
    """Return, in words by setting, where a network that exists is not as ``wanted``: ``subnet``, ``mtu``, "
    "``encrypted``."""
    options = found.get("options") or {}
    differing = {}
    if found.get("driver") != "overlay":
        differing["driver"] = f"its driver is {found.get('driver')}, not overlay, so it does not reach other hosts"
    elif found.get("attachable") is not True:
        differing["attachable"] = "it is not attachable, so only services can join it, not a training container"
    subnet = next(iter(found.get("subnets") or []), "none")
    if subnet != wanted["subnet"]:
        differing["subnet"] = f"its subnet is {subnet}, not {wanted['subnet']}"
    mtu = str(options.get(MTU_OPTION, f"{DEFAULT_MTU} (not set)"))
    if mtu.partition(" ")[0] != str(wanted["mtu"]):
        differing["mtu"] = f"its MTU is {mtu}, not {wanted['mtu']}"
    encrypted = "encrypted" in options
    if encrypted != bool(wanted["encrypted"]):
        differing["encrypted"] = f"its traffic is {_kind(encrypted)}, not {_kind(not encrypted)}"
    return differing


def _kind(encrypted: bool) -> str:
    return "encrypted" if encrypted else "plain"


def choose_addresses(requested: OverlayRequest, subnet: str, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the address of each host's container that is to have a fixed one.

    With ``auto``, one that a container was given before stays its own; the others get the highest free ones in rank
    order, as the swarm itself hands out from the lower end. Raises ``OverlayError`` with all that is wrong.
    """
    addresses = {host: str(requested.addresses.get(host) or "") for host in facts}
    if not any(addresses.values()):
        return {}
    network = parse_network(subnet, "the overlay's subnet")
    usable = (int(network.network_address) + 2, int(network.broadcast_address) - 1)  # the first one is the gateway
    others = _others(requested, facts)
    fixed: dict[str, str] = {}
    problems = []
    for host, address in addresses.items():
        if address in ("", AUTO):
            continue
        given = {address: f"the container of {name}" for name, address in fixed.items()}
        problem = _unfit(address, network, usable, {**others, **given})
        if problem:
            problems.append(f"{host}: training_container_address {address} {problem}")
        fixed[host] = address
    kept = _kept(requested, facts)
    for host, address in addresses.items():
        held = kept.get(host, "")
        if address == AUTO and held and not _unfit(held, network, usable, others) and held not in fixed.values():
            fixed[host] = held
    used = {int(ipaddress.IPv4Address(item)) for item in [*fixed.values(), *others] if _is_address(item)}
    free = (number for number in range(usable[1], usable[0] - 1, -1) if number not in used)
    for host, address in addresses.items():
        if address == AUTO and host not in fixed:
            number = next(free, None)
            if number is None:
                problems.append(f"{host}: no address is free in the overlay's subnet {subnet}")
            else:
                fixed[host] = str(ipaddress.IPv4Address(number))
    if problems:
        raise OverlayError(
            f"{'. '.join(problems)}. Remedy: give addresses that are free in {subnet}, or auto to have them chosen."
        )
    return {host: fixed[host] for host in facts if host in fixed}


ADDRESS_LABEL = "swarmspeed.address"
"""Label of a container that holds the fixed address it was given."""


def _others(requested: OverlayRequest, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the addresses in the overlay of containers that are not ours, each with whose it is."""
    found: dict[str, str] = {}
    for host, node in facts.items():
        for name, container in (node.get("docker") or {}).get("containers", {}).items():
            address = (container.get("addresses") or {}).get(requested.name)
            if address and name != requested.containers.get(host):
                found[str(address)] = f"container {name} on {host}"
    return found


def _kept(requested: OverlayRequest, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the address by host that its container was given before; of two alike, the first one's in rank order."""
    found: dict[str, str] = {}
    for host, node in facts.items():
        container = (node.get("docker") or {}).get("containers", {}).get(requested.containers.get(host, "")) or {}
        address = str((container.get("labels") or {}).get(ADDRESS_LABEL) or "")
        if address and address not in found.values():
            found[host] = address
    return found


def _unfit(text: str, network: ipaddress.IPv4Network, usable: tuple[int, int], used: Mapping[str, str]) -> str:
    if not _is_address(text):
        return "is not an IPv4 address"
    if ipaddress.IPv4Address(text) not in network:
        return f"is not in the overlay's subnet {network}"
    if not usable[0] <= int(ipaddress.IPv4Address(text)) <= usable[1]:
        return f"is reserved in {network} for the network itself"
    return f"is used by {used[text]}" if text in used else ""


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def room(subnet: str) -> int:
    """Return how many nodes an overlay of this subnet has room for.

    Each takes two addresses, its container's and that of the driver's own endpoint there; the first, the second (kept
    free) and the last are the network's.
    """
    return (parse_network(subnet, "the subnet").num_addresses - 3) // 2
