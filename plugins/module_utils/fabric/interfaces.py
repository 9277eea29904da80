# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A host's interfaces, routes and RDMA devices, from the JSON of ``ip`` and the texts of sysfs.

Sources: ip-address(8), ip-route(8); the kernel's Documentation/ABI/stable/sysfs-class-infiniband and
Documentation/ABI/testing/sysfs-class-net (speed in Mbit/s, -1 where unknown).
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any, cast

from ..common.command_io import CommandResult
from .host_io import FabricIO
from .rdma import gpu_distances, numa_node, parse_infiniband, pci_address

NOT_DESTINATIONS = frozenset({"local", "broadcast", "multicast", "anycast"})
"""Types of route that repeat the host's own addresses and so say nothing about where packets go."""

STACKED_KINDS = frozenset({"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "ipoib", "vxlan"})
"""Kinds of interface whose ``link`` is the interface below them. A veth's ``link`` is its other end, no parent."""


class FabricError(Exception):
    """What ``ip`` answered cannot be used."""


def parse_json(answer: CommandResult | None, command: str) -> list[dict[str, Any]]:
    """Return the objects in an answer of ``ip -j``. No output at all is what some versions say for "none"."""
    if answer is None:
        raise FabricError("The command ip is not installed, so addresses and routes are unknown. Install iproute2.")
    if answer.rc != 0:
        reported = " ".join(answer.text.split())[:300].rstrip(".") or "nothing"
        raise FabricError(f"'{command}' ended with status {answer.rc} and printed: {reported}. Run it on this host.")
    text = answer.stdout.strip()
    try:
        decoded = json.loads(text) if text else []
    except ValueError:
        decoded = None
    if not isinstance(decoded, list):
        raise FabricError(
            f"'{command}' did not answer in JSON but: {' '.join(text.split())[:200]}. "
            "It needs iproute2 4.19 or later, not BusyBox's ip."
        )
    return [cast("dict[str, Any]", entry) for entry in decoded if isinstance(entry, dict)]


def parse_interfaces(links: list[dict[str, Any]], sysfs: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the interfaces in ``ip -j -d address`` in the kernel's order; ``sysfs`` adds speed and driver by name."""
    return [
        {
            "name": link["ifname"],
            "mac": link.get("address"),
            "mtu": int(link.get("mtu", 0)),
            "state": str(link.get("operstate", "UNKNOWN")).lower(),
            "kind": _kind(link, sysfs.get(link["ifname"], {})),
            "parent": _parent(link),
            "master": link.get("master"),
            "members": [other["ifname"] for other in links if other.get("master") == link["ifname"]],
            "speed_mbps": parse_speed(str(sysfs.get(link["ifname"], {}).get("speed", ""))),
            "driver": sysfs.get(link["ifname"], {}).get("driver") or None,
            "pci_address": pci_address(sysfs.get(link["ifname"], {}).get("pci_path", "")),
            "numa_node": numa_node(sysfs.get(link["ifname"], {}).get("numa_node", "")),
            "offloads": sysfs.get(link["ifname"], {}).get("offloads"),
            "addresses": _addresses(link.get("addr_info", [])),
        }
        for link in links
        if "ifname" in link
    ]


def _info_kind(link: dict[str, Any]) -> str | None:
    kind = (link.get("linkinfo") or {}).get("info_kind")
    return str(kind) if kind else None


def _parent(link: dict[str, Any]) -> str | None:
    if _info_kind(link) not in STACKED_KINDS:
        return None
    # A VXLAN's stands among its own settings instead.
    parent = link.get("link") or link["linkinfo"].get("info_data", {}).get("link")
    return str(parent) if parent else None


def _kind(link: dict[str, Any], sysfs: dict[str, Any]) -> str:
    """Return what the kernel calls this kind of interface, ``physical`` for plain hardware."""
    named = _info_kind(link)
    if named:
        return named
    link_type = str(link.get("link_type", ""))
    if link_type in ("loopback", "infiniband"):
        return link_type
    return "physical" if sysfs.get("hardware") else "virtual"


def _addresses(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for entry in entries:
        address, prefix = entry.get("local"), entry.get("prefixlen")
        if address is None or prefix is None:
            continue
        found.append(
            {
                "address": address,
                "prefix": prefix,
                "subnet": str(ipaddress.ip_network(f"{address}/{prefix}", strict=False)),
                "family": entry.get("family", "inet6" if ":" in address else "inet"),
                "scope": entry.get("scope", "global"),
            }
        )
    return found


def parse_speed(text: str) -> int | None:
    """Return Mbit/s, or None where the kernel knows none (down, virtual: empty, -1, or -1 read as unsigned)."""
    try:
        speed = int(text)
    except ValueError:
        return None
    return speed if 0 < speed < 2**32 - 1 else None


def parse_routes(routes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the IPv4 routes of every table. A host's ``dst`` gets its /32; the default route's stays ``default``."""
    found = []
    for route in routes:
        if "dst" not in route or route.get("type") in NOT_DESTINATIONS:
            continue
        # A route over several next hops names device and gateway in each of them only.
        hop = (route.get("nexthops") or [{}])[0]
        destination = str(route["dst"])
        if destination != "default" and "/" not in destination:
            destination += "/32"
        found.append(
            {
                "dst": destination,
                "dev": route.get("dev", hop.get("dev")),
                "gateway": route.get("gateway", hop.get("gateway")),
                "metric": int(route.get("metric", 0)),
                "table": str(route.get("table", "main")),
            }
        )
    return found


def default_interface(routes: list[dict[str, Any]]) -> str | None:
    """Return the interface of the default route that the kernel prefers: lowest metric, the earliest of equals."""
    usable = [route for route in routes if route["dst"] == "default" and route["table"] == "main" and route["dev"]]
    return str(min(usable, key=lambda route: route["metric"])["dev"]) if usable else None


def borrow_speeds(interfaces: list[dict[str, Any]], infiniband: list[dict[str, Any]]) -> None:
    """Give interfaces that report no speed that of what carries them: the RDMA port (IPoIB), or the interface below."""
    by_name = {interface["name"]: interface for interface in interfaces}
    for device in infiniband:
        if device["switch_management"]:
            continue
        rates = [port["rate_gbps"] for port in device["ports"] if port["rate_gbps"] and port["state"] == "active"]
        for name in device["interfaces"] if rates else []:
            if name in by_name and by_name[name]["speed_mbps"] is None:
                by_name[name]["speed_mbps"] = int(max(rates) * 1000)
    for interface in interfaces:
        below, seen = interface, set()
        while below["speed_mbps"] is None and below["parent"] in by_name and below["name"] not in seen:
            seen.add(below["name"])
            below = by_name[below["parent"]]
        interface["speed_mbps"] = below["speed_mbps"]


def interface_of(interfaces: list[dict[str, Any]], subnet: str) -> str | None:
    """Return the name of the first interface with an address inside ``subnet``, or None."""
    network = ipaddress.ip_network(subnet)
    for interface in interfaces:
        for entry in interface["addresses"]:
            if ipaddress.ip_address(entry["address"]) in network:
                return str(interface["name"])
    return None


def gather_fabric(io: FabricIO, gpu: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what ``fabric_info`` returns. What cannot be read is named in ``problems``; the rest is still there.

    ``gpu`` is what ``gpu_info`` found; without it no distances to GPUs are returned.
    """
    problems: list[str] = []
    links: list[dict[str, Any]] = []
    routes: list[dict[str, Any]] = []
    try:
        links = parse_json(io.ip("-j", "-d", "address", "show"), "ip -j -d address show")
        routes = parse_json(io.ip("-j", "-4", "route", "show", "table", "all"), "ip -j -4 route show table all")
    except FabricError as error:
        problems.append(str(error))
    interfaces = parse_interfaces(
        links, {link["ifname"]: io.interface(link["ifname"]) for link in links if "ifname" in link}
    )
    parsed_routes = parse_routes(routes)
    raw = io.infiniband()
    infiniband = parse_infiniband(raw)
    borrow_speeds(interfaces, infiniband)
    gpus = gpu or {}
    paths = {entry["address"]: io.pci_path(entry["address"]) for entry in gpus.get("pci_devices") or []} if raw else {}
    for device, source in zip(infiniband, raw):
        device["gpu_distances"] = gpu_distances(device, source["pci_path"], gpus, paths)
    return {
        "interfaces": interfaces,
        "routes": parsed_routes,
        "default_interface": default_interface(parsed_routes),
        "infiniband": infiniband,
        "problems": problems,
    }
