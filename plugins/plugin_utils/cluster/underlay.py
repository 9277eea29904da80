# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which subnet carries the cluster's traffic: the one requested, or the best that all hosts share. Pure, IPv4 only."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from ...module_utils.common import reported
from ...module_utils.common.reported import Parser, ReportedError, accept
from .subnets import Network, SubnetError, parse_network

IGNORED_NAMES = ("lo", "docker*", "br-*", "veth*", "virbr*")
"""Interfaces that container engines and libvirt make on every host, often with the same address on each."""

IGNORED_KINDS = frozenset({"loopback", "vxlan"})
"""An overlay cannot be its own underlay."""

WIDEST = 8
"""Bits of the prefix of the widest network that is proposed where hosts share no subnet."""


class UnderlayError(Exception):
    """The hosts share no subnet, or not the one that is requested."""


@dataclass(frozen=True)
class Underlay:
    """The network under the overlay; mappings are by host. ``speed_mbps`` is the slowest host's, None if unknown.

    ``subnet`` is empty where the hosts share none, and the address of each was given by hand.
    """

    subnet: str
    interfaces: dict[str, str]
    addresses: dict[str, str]
    mtu: int
    speed_mbps: int | None
    reason: str


@dataclass(frozen=True)
class _Claim:
    """One host's way into one subnet; ``rival`` is another interface that would do as well."""

    interface: str
    address: str
    mtu: int
    speed: int
    default: bool
    reached: bool
    metric: int
    rival: str = ""

    @property
    def preference(self) -> tuple[int, bool, bool, int]:
        """What decides between two interfaces of one host in one subnet; the lowest route is the one packets take."""
        return (-self.speed, not self.reached, not self.default, self.metric)


Hosts = Mapping[str, Mapping[str, Any]]
Claims = Mapping[str, Mapping[Network, _Claim]]


def common_underlay(hosts: Hosts, wanted: str | None = None, ssh: Mapping[str, str] | None = None) -> Underlay:
    """Return the subnet that carries the cluster's traffic: ``wanted``, or the best that all hosts share.

    ``hosts`` maps a host to what ``fabric_info`` found there; ``ssh`` maps it to the address Ansible uses. Best is the
    highest speed that all have (an unknown speed counts as none), then the subnet with most addresses of ``ssh``; among
    subnets of unknown speed, then that of the default routes. Where that leaves several, the user must choose
    (UnderlayError). A single host's is that of its default route. A subnet in which two hosts have one address is never
    shared: it is a bridge of the same make on each.
    """
    if not hosts:
        raise UnderlayError("There is no host to find a common subnet for.")
    check_form(hosts)
    reached_by = ssh or {}
    if wanted is not None:
        try:
            return _wanted_underlay(hosts, parse_network(wanted, "cluster_underlay_subnet"), reached_by)
        except SubnetError as error:
            raise UnderlayError(str(error)) from None
    claims = {host: _claims(fabric, reached_by.get(host)) for host, fabric in hosts.items()}
    everywhere = set.intersection(*(set(of_host) for of_host in claims.values()))
    shared = {subnet for subnet in everywhere if not _twins({host: claims[host][subnet] for host in hosts})}
    if not shared:
        raise UnderlayError(_nothing_shared(hosts, claims, everywhere, reached_by))
    ranks = {subnet: _rank([of_host[subnet] for of_host in claims.values()]) for subnet in shared}
    ordered = sorted(shared, key=lambda subnet: (ranks[subnet], subnet))
    best = ordered[0]
    equals = [subnet for subnet in ordered if ranks[subnet] == ranks[best]]
    if len(hosts) > 1 and len(equals) > 1:
        raise UnderlayError(_ask_which(equals, claims))
    ways = {host: claims[host][best] for host in hosts}
    _refuse_rivals(best, ways)
    return _underlay(best, ways, _reason([(subnet, ranks[subnet]) for subnet in ordered], len(hosts)))


def check_form(hosts: Hosts) -> None:
    """Refuse what cannot stand in ssh_config, /etc/hosts or an environment, where the result is written."""
    try:
        for host, fabric in hosts.items():
            for field, value, parser in _written(fabric):
                accept(host, field, value, parser)
    except ReportedError as error:
        raise UnderlayError(str(error)) from None
    except (AttributeError, KeyError, TypeError) as error:
        raise UnderlayError(
            f"{host}: fabric_info returned data of an unexpected form ({type(error).__name__})."
        ) from None


def _written(fabric: Mapping[str, Any]) -> Iterator[tuple[str, Any, Parser]]:
    for number, item in enumerate(fabric.get("interfaces") or []):
        where = f"interfaces[{number}]"
        yield f"{where}.name", item["name"], reported.interface
        yield f"{where}.state", item["state"], reported.short_text
        yield f"{where}.kind", item["kind"], reported.short_text
        yield f"{where}.mtu", item["mtu"], reported.whole()
        yield f"{where}.speed_mbps", item.get("speed_mbps") or 0, reported.whole()
        for place, entry in enumerate(item["addresses"]):
            yield f"{where}.addresses[{place}].address", entry["address"], reported.address
            yield f"{where}.addresses[{place}].subnet", entry["subnet"], reported.network


def _rank(ways: list[_Claim]) -> tuple[bool, int, int, int]:
    """Return the sort key of a candidate subnet; lower is better."""
    speed = min(way.speed for way in ways)
    on_default = sum(way.default for way in ways)
    return (
        not (len(ways) == 1 and ways[0].default),
        -speed,
        -sum(way.reached for way in ways),
        0 if speed else -on_default,
    )


def _reason(ranked: list[tuple[Network, tuple[bool, int, int, int]]], hosts: int) -> str:
    dummy, first = ranked[0]
    if hosts == 1:
        return "this host's default route leaves there" if not first[0] else "the best of this one host's subnets"
    if len(ranked) == 1:
        return "the only subnet that all hosts share"
    other, second = ranked[1]
    if first[1] != second[1]:
        return (
            f"the fastest of {len(ranked)} subnets that all hosts share ({_speed(-first[1])}; {other} has "
            f"{_speed(-second[1])})"
        )
    if first[2] != second[2]:
        return f"of {len(ranked)} equally fast subnets that all hosts share, the one that Ansible reaches them by"
    return f"of {len(ranked)} subnets of unknown speed that all hosts share, the one of their default routes"


def _speed(mbps: int) -> str:
    return f"{mbps / 1000:g} Gbit/s" if mbps else "an unknown speed"


def _ask_which(equals: list[Network], claims: Claims) -> str:
    shared = []
    for subnet in equals:
        ways = [of_host[subnet] for of_host in claims.values()]
        names = list(dict.fromkeys(way.interface for way in ways))
        more = ", …" if len(names) > 3 else ""
        shared.append(f"{subnet} ({', '.join(names[:3])}{more}: {_speed(min(way.speed for way in ways))})")
    return (
        f"The hosts share {len(equals)} subnets with equal claims: {_and(shared)}. "
        "Set cluster_underlay_subnet to the one that is to carry the training."
    )


def _refuse_rivals(subnet: Network, ways: Mapping[str, _Claim]) -> None:
    # A single host's ranks meet on the host itself, whichever it is.
    rivals = [f"{host} ({way.interface} and {way.rival})" for host, way in ways.items() if way.rival]
    if rivals and len(ways) > 1:
        raise UnderlayError(
            f"Two interfaces have equal claims to {subnet} on {_and(rivals)}. Set cluster_underlay_subnet to a part of "
            "it that holds one address of each host, or take the second interface out of the subnet."
        )


def _wanted_underlay(hosts: Hosts, subnet: Network, ssh: Mapping[str, str]) -> Underlay:
    ways: dict[str, _Claim] = {}
    for host, fabric in hosts.items():
        # By containment: some clouds give a host its address as a /32.
        up = [interface for interface in fabric.get("interfaces", []) if interface["state"] != "down"]
        for interfaces in ([interface for interface in up if _usable(interface)], up):
            inside = [
                _claim(fabric, interface, entry, ssh.get(host))
                for interface in interfaces
                for entry in _ipv4(interface)
                if ipaddress.IPv4Address(entry["address"]) in subnet
            ]
            if inside:
                ways[host] = _preferred(inside)
                break
    missing = [host for host in hosts if host not in ways]
    if missing:
        raise UnderlayError(
            f"cluster_underlay_subnet is {subnet}, but no interface that is up has an address in it on: "
            f"{'; '.join(has(host, hosts[host]) for host in missing)}. "
            "Correct the variable, or give those hosts such an address."
        )
    twins = _twins(ways)
    if twins:
        raise UnderlayError(
            f"cluster_underlay_subnet is {subnet}, but {twins} there. "
            "Give each host an address of its own, or name another subnet."
        )
    _refuse_rivals(subnet, ways)
    return _underlay(subnet, ways, "requested by cluster_underlay_subnet")


def _underlay(subnet: Network, ways: Mapping[str, _Claim], reason: str) -> Underlay:
    return Underlay(
        subnet=str(subnet),
        interfaces={host: way.interface for host, way in ways.items()},
        addresses={host: way.address for host, way in ways.items()},
        mtu=min(way.mtu for way in ways.values()),
        speed_mbps=min(way.speed for way in ways.values()) or None,
        reason=reason,
    )


def _claims(fabric: Mapping[str, Any], ssh: str | None) -> dict[Network, _Claim]:
    """Return one host's subnets that could be an underlay, each with the interface preferred there."""
    found: dict[Network, list[_Claim]] = {}
    for interface in fabric.get("interfaces", []):
        for entry in _ipv4(interface) if _usable(interface) else []:
            claim = _claim(fabric, interface, entry, ssh)
            found.setdefault(ipaddress.IPv4Network(entry["subnet"]), []).append(claim)
    return {subnet: _preferred(claims) for subnet, claims in found.items()}


def _claim(
    fabric: Mapping[str, Any], interface: Mapping[str, Any], entry: Mapping[str, Any], ssh: str | None
) -> _Claim:
    metrics = [
        int(route.get("metric") or 0)
        for route in fabric.get("routes", [])
        if route.get("dst") == entry["subnet"] and route.get("dev") == interface["name"]
    ]
    return _Claim(
        interface=interface["name"],
        address=entry["address"],
        mtu=interface["mtu"],
        speed=interface.get("speed_mbps") or 0,
        default=fabric.get("default_interface") == interface["name"],
        reached=entry["address"] == ssh,
        metric=min(metrics, default=0),
    )


def _preferred(claims: list[_Claim]) -> _Claim:
    best = min(claims, key=lambda claim: claim.preference)
    rivals = [one for one in claims if one.preference == best.preference and one.interface != best.interface]
    return replace(best, rival=rivals[0].interface) if rivals else best


def _usable(interface: Mapping[str, Any]) -> bool:
    return (
        interface["state"] != "down"
        and interface["kind"] not in IGNORED_KINDS
        and not any(fnmatchcase(interface["name"], pattern) for pattern in IGNORED_NAMES)
    )


def _ipv4(interface: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    # scope "link" is 169.254.0.0/16: every host may carry it, on networks that have nothing to do with each other.
    return [entry for entry in interface["addresses"] if entry["family"] == "inet" and entry["scope"] != "link"]


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _twins(ways: Mapping[str, _Claim]) -> str:
    return twins({host: way.address for host, way in ways.items()})


def twins(addresses: Mapping[str, str]) -> str:
    """Return which hosts have one and the same address, in words, or nothing."""
    address, times = Counter(addresses.values()).most_common(1)[0]
    if times == 1:
        return ""
    same = [host for host, own in addresses.items() if own == address]
    return f"{_and(same)} {'both' if times == 2 else 'all'} have {address}"


def _nothing_shared(hosts: Hosts, claims: Claims, everywhere: Iterable[Network], ssh: Mapping[str, str]) -> str:
    """Return the error: which hosts stand apart from most, what they have, and the remedy."""
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
    # With no one in the majority, every host is listed.
    apart = [host for host in hosts if host not in inside] if len(inside) > 1 else list(hosts)
    text = "The hosts share no subnet"
    if len(inside) > 1:
        text += f": {', '.join(inside)} are on {most}, but not"
    listed = "; ".join(has(host, hosts[host]) for host in apart)
    return f"{text}: {listed}. {''.join(part + '. ' for part in repeated)}{_way_out(hosts, claims, ssh)}"


def _way_out(hosts: Hosts, claims: Claims, ssh: Mapping[str, str]) -> str:
    """Say what helps. An overlay crosses a router between the hosts, given a network that holds all of them."""
    addresses: list[ipaddress.IPv4Address] = []
    for of_host in claims.values():
        ways = sorted(of_host.values(), key=lambda way: (not way.reached, not way.default, way.preference))
        addresses.extend(ipaddress.IPv4Address(way.address) for way in ways[:1])
    around = ipaddress.IPv4Network(addresses[0]) if addresses else None
    while around is not None and around.prefixlen >= WIDEST and not all(one in around for one in addresses):
        around = around.supernet()
    fits = around is not None and around.prefixlen >= WIDEST and len(addresses) == len(hosts)
    try:
        if fits:
            _wanted_underlay(hosts, parse_network(str(around), ""), ssh)
    except UnderlayError:
        fits = False
    if not fits:
        return (
            "Do one of these: connect all hosts to one subnet; set cluster_underlay_subnet to a network in which each "
            "has an address; or, for routed networks, set cluster_address on every host."
        )
    return (
        "Connect all hosts to one subnet. Or, for routed networks, use an overlay: "
        f"cluster_network_mode: overlay, and cluster_underlay_subnet: {around}, which holds an address of each."
    )


def has(host: str, fabric: Mapping[str, Any]) -> str:
    """Return a host with the addresses that it has, in words."""
    addresses = [
        f"{interface['name']} {entry['address']}/{entry['prefix']}"
        for interface in fabric.get("interfaces", [])
        if _usable(interface)
        for entry in _ipv4(interface)
    ]
    if addresses:
        return f"{host} (has {', '.join(addresses)})"
    return f"{host} ({' '.join(fabric.get('problems', [])) or 'has no IPv4 address on any interface that is up'})"
