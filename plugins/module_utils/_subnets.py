# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which subnet the hosts share, which are taken, and which is free. Pure, IPv4 only, as Swarm's overlays are."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

IGNORED_NAMES = ("lo", "docker*", "br-*", "veth*", "virbr*")
"""Interfaces that container engines and libvirt make on every host, often with the same address on each."""

IGNORED_KINDS = frozenset({"loopback", "vxlan"})
"""An overlay cannot be its own underlay."""

Network = ipaddress.IPv4Network


class SubnetError(Exception):
    """A network is written wrongly, or none is free."""


class UnderlayError(Exception):
    """The hosts share no subnet, or not the one that is asked for."""


@dataclass(frozen=True)
class Underlay:
    """The network under the overlay; mappings are by host. ``speed_mbps`` is the slowest host's, None if unknown."""

    subnet: str
    interfaces: dict[str, str]
    addresses: dict[str, str]
    mtu: int
    speed_mbps: int | None
    reason: str


@dataclass(frozen=True)
class _Claim:
    """One host's way into one subnet."""

    interface: str
    address: str
    mtu: int
    speed: int
    default: bool


def parse_network(text: str, what: str) -> Network:
    """Return a network; ``what`` says in an error where the text came from."""
    try:
        return ipaddress.IPv4Network(str(text))
    except ValueError as error:
        try:
            meant = ipaddress.IPv4Network(str(text), strict=False)
        except ValueError:
            raise SubnetError(f"{what}: '{text}' is not an IPv4 network such as 10.20.0.0/24.") from error
        raise SubnetError(f"{what}: '{text}' has bits set right of its prefix; write {meant}.") from error


def _taken(networks: Mapping[str, str]) -> list[tuple[str, Network]]:
    """Return what can be collided with: no default route, nothing of IPv6."""
    found = []
    for label, text in networks.items():
        if text == "default" or ":" in str(text):
            continue
        network = parse_network(text, f"the taken network '{label}'")
        if network.prefixlen > 0:
            found.append((label, network))
    return found


def collisions(subnet: str, taken: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the entries of ``taken`` (label to network or address) that overlap ``subnet``, with their labels."""
    wanted = parse_network(subnet, "the subnet")
    return [{"label": label, "network": str(network)} for label, network in _taken(taken) if network.overlaps(wanted)]


def pick_subnet(pools: str | Iterable[str], prefix: int, taken: Mapping[str, str] | Iterable[str]) -> str:
    """Return the lowest subnet of this prefix length, in the first pool that has one, which overlaps nothing taken."""
    if not isinstance(taken, Mapping):
        taken = {str(network): str(network) for network in taken}
    in_use = _taken(taken)
    networks = [parse_network(text, "the address pool") for text in ([pools] if isinstance(pools, str) else pools)]
    for pool in networks:
        if not pool.prefixlen <= prefix <= 30:
            raise SubnetError(
                f"the address pool {pool}: no subnet with prefix length {prefix} fits; give {pool.prefixlen} to 30."
            )
        found = _lowest_free(pool, prefix, [network for _label, network in in_use])
        if found:
            return str(found)
    if not networks:
        raise SubnetError("No address pool is given to pick a subnet from.")
    labels = [label for label, network in in_use if any(network.overlaps(pool) for pool in networks)]
    more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
    raise SubnetError(
        f"No /{prefix} is free in {', '.join(map(str, networks))}. "
        f"In use: {', '.join(labels[:5])}{more}. Name another address pool."
    )


def _lowest_free(pool: Network, prefix: int, barriers: list[Network]) -> Network | None:
    size = 2 ** (32 - prefix)
    start = int(pool.network_address)
    while start + size - 1 <= int(pool.broadcast_address):
        candidate = ipaddress.IPv4Network((start, prefix))
        in_the_way = next((network for network in barriers if network.overlaps(candidate)), None)
        if in_the_way is None:
            return candidate
        # Go on behind it, at the next multiple of the size: a /8 in the way costs one step, not 65,536.
        behind = max(int(in_the_way.broadcast_address), start + size - 1) + 1
        start = -(-behind // size) * size
    return None


def common_underlay(
    hosts: Mapping[str, Mapping[str, Any]],
    wanted: str | None = None,
    ssh: Mapping[str, str] | None = None,
) -> Underlay:
    """Return the subnet that carries the cluster's traffic: ``wanted``, or the best that all hosts share.

    ``hosts`` maps a host to what ``fabric_info`` found there; ``ssh`` maps it to the address Ansible uses. Best is the
    highest speed that all have (an unknown speed counts as none), then the subnet with most addresses of ``ssh``, then
    the lowest. A single host's is that of its default route. A subnet in which two hosts have one address is never
    shared: it is a bridge of the same make on each.
    """
    if not hosts:
        raise UnderlayError("There is no host to find a common subnet for.")
    if wanted is not None:
        try:
            return _wanted_underlay(hosts, parse_network(wanted, "cluster_underlay_subnet"))
        except SubnetError as error:
            raise UnderlayError(str(error)) from None
    claims = {host: _claims(fabric) for host, fabric in hosts.items()}
    everywhere = set.intersection(*(set(of_host) for of_host in claims.values()))
    shared = {subnet for subnet in everywhere if not _twins({host: claims[host][subnet] for host in hosts})}
    if not shared:
        raise UnderlayError(_nothing_shared(hosts, claims, everywhere))

    def rank(subnet: Network) -> tuple[bool, int, int, Network]:
        ways = [of_host[subnet] for of_host in claims.values()]
        on_default = len(hosts) == 1 and ways[0].default
        reached = sum((ssh or {}).get(host) == of_host[subnet].address for host, of_host in claims.items())
        return (not on_default, -min(way.speed for way in ways), -reached, subnet)

    ranked = sorted(shared, key=rank)
    best = ranked[0]
    return _underlay(
        best, {host: claims[host][best] for host in hosts}, _reason([rank(subnet) for subnet in ranked], len(hosts))
    )


def _reason(ranks: list[tuple[bool, int, int, Network]], hosts: int) -> str:
    first = ranks[0]
    if hosts == 1:
        return "this host's default route leaves there" if not first[0] else "the best of this one host's subnets"
    if len(ranks) == 1:
        return "the only subnet that all hosts share"
    second = ranks[1]
    if first[1] != second[1]:
        return f"the fastest of {len(ranks)} subnets that all hosts share"
    if first[2] != second[2]:
        return f"of {len(ranks)} equally fast subnets that all hosts share, the one that Ansible reaches them by"
    return f"the lowest of {len(ranks)} subnets that all hosts share, which are equal otherwise"


def _wanted_underlay(hosts: Mapping[str, Mapping[str, Any]], subnet: Network) -> Underlay:
    ways: dict[str, _Claim] = {}
    for host, fabric in hosts.items():
        # By containment: some clouds give a host its address as a /32.
        inside = [
            _claim(fabric, interface, entry)
            for interface in fabric.get("interfaces", [])
            if interface["state"] != "down"
            for entry in _ipv4(interface)
            if ipaddress.IPv4Address(entry["address"]) in subnet
        ]
        if inside:
            ways[host] = min(inside, key=_preference)
    missing = [host for host in hosts if host not in ways]
    if missing:
        raise UnderlayError(
            f"cluster_underlay_subnet is {subnet}, but no interface that is up has an address in it on: "
            f"{'; '.join(_has(host, hosts[host]) for host in missing)}. "
            "Correct the variable, or give those hosts such an address."
        )
    twins = _twins(ways)
    if twins:
        raise UnderlayError(
            f"cluster_underlay_subnet is {subnet}, but {twins} there. "
            "Give each host an address of its own, or name another subnet."
        )
    return _underlay(subnet, ways, "asked for by cluster_underlay_subnet")


def _underlay(subnet: Network, ways: Mapping[str, _Claim], reason: str) -> Underlay:
    return Underlay(
        subnet=str(subnet),
        interfaces={host: way.interface for host, way in ways.items()},
        addresses={host: way.address for host, way in ways.items()},
        mtu=min(way.mtu for way in ways.values()),
        speed_mbps=min(way.speed for way in ways.values()) or None,
        reason=reason,
    )


def _claims(fabric: Mapping[str, Any]) -> dict[Network, _Claim]:
    """Return one host's subnets that could be an underlay, each with the interface preferred there."""
    found: dict[Network, _Claim] = {}
    for interface in fabric.get("interfaces", []):
        if not _usable(interface):
            continue
        for entry in _ipv4(interface):
            subnet, claim = ipaddress.IPv4Network(entry["subnet"]), _claim(fabric, interface, entry)
            if subnet not in found or _preference(claim) < _preference(found[subnet]):
                found[subnet] = claim
    return found


def _claim(fabric: Mapping[str, Any], interface: Mapping[str, Any], entry: Mapping[str, Any]) -> _Claim:
    return _Claim(
        interface=interface["name"],
        address=entry["address"],
        mtu=interface["mtu"],
        speed=interface.get("speed_mbps") or 0,
        default=fabric.get("default_interface") == interface["name"],
    )


def _preference(claim: _Claim) -> tuple[int, bool]:
    return (-claim.speed, not claim.default)


def _usable(interface: Mapping[str, Any]) -> bool:
    return (
        interface["state"] != "down"
        and interface["kind"] not in IGNORED_KINDS
        and not any(fnmatchcase(interface["name"], pattern) for pattern in IGNORED_NAMES)
    )


def _ipv4(interface: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # scope "link" is 169.254.0.0/16: every host may carry it, on networks that have nothing to do with each other.
    return [entry for entry in interface["addresses"] if entry["family"] == "inet" and entry["scope"] != "link"]


def _twins(ways: Mapping[str, _Claim]) -> str:
    """Return which hosts have one and the same address, in words, or nothing."""
    counted = Counter(way.address for way in ways.values())
    address, times = counted.most_common(1)[0]
    if times == 1:
        return ""
    return f"{' and '.join(host for host, way in ways.items() if way.address == address)} both have {address}"


def _nothing_shared(
    hosts: Mapping[str, Mapping[str, Any]],
    claims: Mapping[str, Mapping[Network, _Claim]],
    everywhere: Iterable[Network],
) -> str:
    """Return the error: which hosts stand apart from most, what they have, and the way out."""
    repeated = [
        f"{subnet} does not count, as {_twins({host: claims[host][subnet] for host in hosts})} there"
        for subnet in sorted(everywhere)
    ]
    holders: dict[Network, dict[str, _Claim]] = {}
    for host, of_host in claims.items():
        for subnet, way in of_host.items():
            holders.setdefault(subnet, {})[host] = way
    members = {subnet: len(ways) for subnet, ways in holders.items() if not _twins(ways)}
    most = min(members, key=lambda subnet: (-members[subnet], subnet), default=None)
    inside = [host for host in hosts if most is not None and most in claims[host]]
    # With nobody in the majority, every host is listed.
    apart = [host for host in hosts if host not in inside] if len(inside) > 1 else list(hosts)
    text = "The hosts share no subnet"
    if len(inside) > 1:
        text += f": {', '.join(inside)} are on {most}, but not"
    listed = "; ".join(_has(host, hosts[host]) for host in apart)
    return (
        f"{text}: {listed}. {''.join(part + '. ' for part in repeated)}"
        "Put all hosts on one subnet, or set cluster_underlay_subnet to a network in which each has an address."
    )


def _has(host: str, fabric: Mapping[str, Any]) -> str:
    addresses = [
        f"{interface['name']} {entry['address']}/{entry['prefix']}"
        for interface in fabric.get("interfaces", [])
        if _usable(interface)
        for entry in _ipv4(interface)
    ]
    if addresses:
        return f"{host} (has {', '.join(addresses)})"
    return f"{host} ({' '.join(fabric.get('problems', [])) or 'has no IPv4 address on any interface that is up'})"
