# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""RDMA devices from the texts of sysfs: ports, GIDs, and how far each device is from each GPU.

Sources: the kernel's Documentation/ABI/stable/sysfs-class-infiniband (state, rate, gids, gid_attrs); nvidia-smi(1) for
the words of a distance; RFC 4291, 2.5.5.2, for IPv4 addresses inside GIDs. For ``switch_management``: NVIDIA's fabric
manager user guide, "Systems Using Fourth Generation NVSwitches", and siderolabs/extensions#893 (an HGX B200, on which
mlx5_8 to mlx5_11 are such devices, besides eight HCAs).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Nearest first: one PCIe switch, several, the same host bridge, the same NUMA node, another one."""

INFINIBAND = "infiniband"
"""The link layer of a port that is no RoCE's."""

VPD_LONGEST = 32768
"""Bytes that the Vital Product Data of a PCI device can have: its address is of 15 bits (PCI 3.0, appendix I)."""

_SWITCH_MANAGEMENT = b"SW_MNG"
"""What the Vital Product Data says of a device that leads to NVSwitches (``SMDL=SW_MNG``), and to no network."""

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", re.ASCII)
_ROCE = {"RoCE v2": "roce_v2", "IB/RoCE v1": "roce_v1"}


def parse_infiniband(devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return RDMA devices. sysfs gives ``4: ACTIVE`` and ``400 Gb/sec (4X NDR)``; here ``active`` and 400.0."""
    return [
        {
            "name": device["name"],
            "interfaces": device["interfaces"],
            "numa_node": numa_node(device["numa_node"]),
            "pci_address": pci_address(device["pci_path"]),
            "switch_management": _SWITCH_MANAGEMENT in device["vpd"],
            "ports": [_port(port) for port in device["ports"] if port["port"].isdigit()],
        }
        for device in devices
    ]


def switch_management(infiniband: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the RDMA devices by which the NVSwitches of HGX B200 and later are managed: no GPU's data leaves there."""
    return [str(device["name"]) for device in infiniband if device.get("switch_management")]


def _port(port: dict[str, Any]) -> dict[str, Any]:
    layer = port["link_layer"].lower()
    return {
        "port": int(port["port"]),
        "state": _after_colon(port["state"]),
        "physical_state": _after_colon(port["phys_state"]),
        "rate_gbps": _rate(port["rate"]),
        "link_layer": layer,
        "gids": [_gid(entry, layer) for entry in port["gids"]],
    }


def _gid(entry: dict[str, Any], layer: str) -> dict[str, Any]:
    # On InfiniBand the kernel says "IB/RoCE v1" too, where no RoCE is meant.
    kind = "infiniband" if layer == INFINIBAND else _ROCE.get(entry["type"])
    try:
        mapped = ipaddress.IPv6Address(entry["gid"]).ipv4_mapped
    except ValueError:
        mapped = None
    return {
        "index": int(entry["index"]),
        "gid": entry["gid"],
        "type": kind,
        "interface": entry["interface"] or None,
        "address": str(mapped) if mapped else None,
    }


def numa_node(text: str) -> int | None:
    """Return a NUMA node, or None where the firmware names none (the kernel says -1)."""
    return int(text) if text.isdecimal() and text.isascii() else None


def _after_colon(text: str) -> str:
    return text.split(":", 1)[-1].strip().lower()


def _rate(text: str) -> float | None:
    try:
        return float(text.split(maxsplit=1)[0])
    except (IndexError, ValueError):
        return None


def pci_address(path: str) -> str | None:
    """Return the PCI address in a device's path below /sys/devices, that of the last PCI device on the way, or None."""
    found = [part for part in path.split("/") if _ADDRESS.fullmatch(part)]
    return found[-1] if found else None


def _way(path: str) -> tuple[str, list[str]] | None:
    """Return the host bridge and the PCI devices below it on the way to a device."""
    parts = path.split("/")
    root = next((part for part in parts if _ROOT.fullmatch(part)), None)
    return (root, [part for part in parts if _ADDRESS.fullmatch(part)]) if root else None


def pci_distance(first: str, second: str, same_node: bool | None) -> str | None:
    """Return how far two devices are apart, by their paths below /sys/devices, in nvidia-smi's words, or None.

    A PCIe switch is an upstream bridge with one bridge for each of its ports below it: two devices on one switch have
    the upstream bridge in common, and each a port of its own. ``same_node``: whether they are on one NUMA node.
    """
    one, other = _way(first), _way(second)
    if one is None or other is None:
        return None
    if one[0] != other[0]:
        return None if same_node is None else "NODE" if same_node else "SYS"
    shared = 0
    while shared < min(len(one[1]), len(other[1])) and one[1][shared] == other[1][shared]:
        shared += 1
    if shared == 0:
        return "PHB"
    return "PIX" if max(len(one[1]), len(other[1])) - shared <= 2 else "PXB"


def gpu_distances(
    device: Mapping[str, Any], path: str, gpu: Mapping[str, Any], paths: Mapping[str, str]
) -> dict[str, str]:
    """Return the distance of an RDMA device from each GPU by the GPU's PCI address.

    Where nvidia-smi gave its matrix, that counts; else the ways through the PCI bridges do. ``gpu`` is what
    ``gpu_info`` found; ``paths`` are the GPUs' below /sys/devices.
    """
    reported = ((gpu.get("topology") or {}).get("nics") or {}).get(device["name"]) or {}
    indexes = {entry.get("address"): str(entry.get("index")) for entry in gpu.get("gpus") or []}
    found: dict[str, str] = {}
    for entry in gpu.get("pci_devices") or []:
        address = entry["address"]
        distance = reported.get(indexes.get(address, ""))
        if distance not in DISTANCES:
            nodes = (device["numa_node"], entry.get("numa_node"))
            # A machine without NUMA names no node for any device.
            same = nodes[0] == nodes[1] if (nodes[0] is None) == (nodes[1] is None) else None
            distance = pci_distance(path, paths.get(address, ""), same)
        if distance:
            found[address] = distance
    return found
