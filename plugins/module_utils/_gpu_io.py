# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that looks for NVIDIA devices, driver and tools on a host. Reads only."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Protocol

from ansible_collections.swarmspeed.cluster.plugins.module_utils._command_io import (
    CommandResult,
    find_program,
    run_program,
)

SMI_TIMEOUT = 60.0
"""Seconds. Without persistence mode nvidia-smi initialises every GPU first, which takes seconds for each."""

NVIDIA_VENDOR = "0x10de"


class GpuIO(Protocol):
    """What gathering may ask of a host; tests hand in a fake."""

    def pci_devices(self) -> list[dict[str, str]]:
        """Return NVIDIA's PCI devices: ``address``, and sysfs' ``class``, ``device``, ``driver``, ``numa_node``."""

    def driver_text(self) -> str:
        """Return the text of ``/proc/driver/nvidia/version``, empty where the kernel module is not loaded."""

    def library_name(self) -> str | None:
        """Return the file name that ``libnvidia-ml.so.1`` leads to, such as ``libnvidia-ml.so.550.163.01``, or None."""

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        """Run nvidia-smi, or return None where it is not installed."""


class SystemGpuIO:
    """This host. ``root`` stands before every path read and exists for tests."""

    def __init__(self, root: str = "/") -> None:
        self._root = Path(root)

    def pci_devices(self) -> list[dict[str, str]]:
        bus = self._root / "sys/bus/pci/devices"
        found = []
        for device in sorted(bus.iterdir()) if bus.is_dir() else []:
            if _read(device / "vendor") != NVIDIA_VENDOR:
                continue
            found.append(
                {
                    "address": device.name,
                    "class": _read(device / "class"),
                    "device": _read(device / "device"),
                    "driver": link_name(device / "driver"),
                    "numa_node": _read(device / "numa_node"),
                }
            )
        return found

    def driver_text(self) -> str:
        return _read(self._root / "proc/driver/nvidia/version")

    def library_name(self) -> str | None:
        # Debian and Ubuntu, then where NVIDIA's own installer and container images put it.
        for directory in (f"usr/lib/{platform.machine()}-linux-gnu", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64"):
            library = self._root / directory / "libnvidia-ml.so.1"
            if library.exists():
                return Path(os.path.realpath(library)).name
        return None

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        program = find_program("nvidia-smi")
        return run_program([program, *arguments], SMI_TIMEOUT) if program else None


def link_name(path: Path) -> str:
    """Return the last part of what a symbolic link points to, empty where there is none."""
    try:
        return path.readlink().name
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
