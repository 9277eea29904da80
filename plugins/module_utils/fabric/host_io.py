# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that reads a host's network: two calls of ``ip`` at most, the rest from sysfs and the kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from ..common.command_io import CommandResult, find_program, run_program
from ..gpu.host_io import beginning, link_name
from .offloads_io import Features
from .rdma import INFINIBAND, VPD_LONGEST

IP_TIMEOUT = 20.0
"""Seconds."""


class FabricIO(Protocol):
    """What gathering may ask of a host; tests hand in a fake."""

    def ip(self, *arguments: str) -> CommandResult | None:
        """Run ``ip`` (iproute2), or return None where it is not installed."""

    def interface(self, name: str) -> dict[str, Any]:
        """Return what the kernel says of an interface.

        ``speed``, ``driver``, ``numa_node`` and ``pci_path`` (where its device is below /sys/devices) as text,
        ``hardware`` as bool, and ``offloads``: features by name, on or off, or None where it does not say.
        """

    def infiniband(self) -> list[dict[str, Any]]:
        """Return RDMA devices: ``name``, ``interfaces``, ``numa_node``, ``pci_path``, ``vpd``, and ``ports``.

        ``vpd`` is the beginning of the PCI device's Vital Product Data. It is empty where no port is InfiniBand's: each
        four bytes are a transaction with the device. A port has sysfs' own texts, and ``gids``: those that are set,
        with ``index``, ``gid``, ``type``, ``interface``.
        """

    def pci_path(self, address: str) -> str:
        """Return where a PCI device is below /sys/devices, through the bridges before it; empty where it is not."""


class SystemFabricIO:
    """This host. ``root`` stands before every path read and exists for tests."""

    def __init__(self, root: str = "/") -> None:
        self._sys = Path(root) / "sys"
        self._class = self._sys / "class"
        self._features = Features()

    def ip(self, *arguments: str) -> CommandResult | None:
        program = find_program("ip")
        return run_program([program, *arguments], IP_TIMEOUT) if program else None

    def interface(self, name: str) -> dict[str, Any]:
        directory = self._class / "net" / name
        return {
            "speed": _read(directory / "speed"),
            "driver": link_name(directory / "device/driver"),
            "hardware": (directory / "device").exists(),
            "numa_node": _read(directory / "device/numa_node"),
            "pci_path": _real(directory / "device"),
            "offloads": self._features.of(name),
        }

    def infiniband(self) -> list[dict[str, Any]]:
        return [_rdma_device(device) for device in _entries(self._class / "infiniband")]

    def pci_path(self, address: str) -> str:
        return _real(self._sys / "bus/pci/devices" / address)


def _rdma_device(device: Path) -> dict[str, Any]:
    ports = [
        {
            "port": port.name,
            **{key: _read(port / key) for key in ("state", "phys_state", "rate", "link_layer")},
            "gids": _gids(port),
        }
        for port in _entries(device / "ports")
    ]
    infiniband = any(str(port["link_layer"]).lower() == INFINIBAND for port in ports)
    return {
        "name": device.name,
        "interfaces": [entry.name for entry in _entries(device / "device/net")],
        "numa_node": _read(device / "device/numa_node"),
        "pci_path": _real(device / "device"),
        "vpd": beginning(device / "device/vpd", VPD_LONGEST) if infiniband else b"",
        "ports": ports,
    }


def _gids(port: Path) -> list[dict[str, str]]:
    """Return the entries of a GID table that are set. Of 256 most are zero, and their attributes cannot be read."""
    indexes = [entry.name for entry in _entries(port / "gids") if entry.name.isdecimal()]
    found = []
    for index in sorted(indexes, key=int):
        gid = _read(port / "gids" / index)
        if not gid.strip("0:"):
            continue
        found.append(
            {
                "index": index,
                "gid": gid,
                "type": _read(port / "gid_attrs/types" / index),
                "interface": _read(port / "gid_attrs/ndevs" / index),
            }
        )
    return found


def _real(path: Path) -> str:
    return os.path.realpath(path) if path.exists() else ""


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    # sysfs answers EINVAL for the speed of an interface that is down or has none.
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
