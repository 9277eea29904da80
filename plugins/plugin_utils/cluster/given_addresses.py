# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The underlay of hosts that share no subnet: the address of each, given by hand (``cluster_address``). Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from .underlay import Hosts, Underlay, UnderlayError, check_form, has, twins

VARIABLE = "cluster_address"


def given_underlay(hosts: Hosts, given: Mapping[str, str]) -> Underlay:
    """Return the underlay that consists of these addresses, one for each host; its ``subnet`` is empty.

    Raises ``UnderlayError`` where a host has none, not that one, or where two have the same.
    """
    check_form(hosts)
    missing = [host for host in hosts if not given.get(host)]
    if missing:
        one = next(host for host in hosts if given.get(host))
        raise UnderlayError(
            f"{', '.join(missing)}: {VARIABLE} is not set, but it is for {one}. Remedy: set it for every host of the "
            "cluster, or for none."
        )
    wanted = {host: _address(host, given[host]) for host in hosts}
    same = twins(wanted)
    if same:
        raise UnderlayError(f"{VARIABLE}: {same}. Remedy: set it for each host, not for a group.")
    ways = {host: _way(fabric, wanted[host]) for host, fabric in hosts.items()}
    absent = [f"{has(host, hosts[host])} should be reached at {wanted[host]}" for host, way in ways.items() if not way]
    if absent:
        raise UnderlayError(
            f"{'; '.join(absent)}, but no active interface there has that address. Remedy: set {VARIABLE} to an "
            "address that the host itself has, not to one that is translated on the way to it."
        )
    return Underlay(
        subnet="",
        interfaces={host: str(way["name"]) for host, way in ways.items()},
        addresses=wanted,
        mtu=min(int(way["mtu"]) for way in ways.values()),
        speed_mbps=min(int(way.get("speed_mbps") or 0) for way in ways.values()) or None,
        reason=f"set by {VARIABLE}",
    )


def own_subnet(underlay: Mapping[str, Any], host: str) -> str:
    """Return the network that this host's address of the underlay is found by: its own /32 where none is shared."""
    addresses = underlay.get("addresses") or {}
    return str(underlay.get("subnet") or (f"{addresses[host]}/32" if addresses.get(host) else ""))


def senders(underlay: Mapping[str, Any]) -> str:
    """Return where connections of the cluster come from, as sshd's ``from=`` takes it."""
    return str(underlay.get("subnet") or ",".join(map(str, (underlay.get("addresses") or {}).values())))


def _address(host: str, text: str) -> str:
    try:
        address = ipaddress.IPv4Address(str(text).strip())
    except ValueError:
        address = ipaddress.IPv4Address("0.0.0.0")
    if address.is_unspecified or address.is_loopback or address.is_multicast:
        raise UnderlayError(
            f"{host}: {VARIABLE} is '{text}', at which no other host can reach it. Remedy: set it to an IPv4 address "
            "of the host, such as 203.0.113.7."
        )
    return str(address)


def _way(fabric: Mapping[str, Any], address: str) -> Mapping[str, Any]:
    """Return the interface with this address, or an empty mapping."""
    for interface in fabric.get("interfaces") or []:
        if interface["state"] != "down" and any(entry["address"] == address for entry in interface["addresses"]):
            found: Mapping[str, Any] = interface
            return found
    return {}
