# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that searches for NVIDIA devices, driver and tools on a host. Reads only."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from ..common.command_io import CommandResult, find_program, run_program
from .pci import PCI_CONFIG_BYTES, is_vgpu

SMI_TIMEOUT = 60.0
"""Seconds. Without persistence mode nvidia-smi initialises every GPU first, which takes seconds for each."""

FABRIC_MANAGER_TIMEOUT = 10.0
"""Seconds. It only prints its version."""

NVIDIA_VENDOR = "0x10de"

SMI_PLACES = ("/usr/lib/nvidia/current/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/opt/bin/nvidia-smi")
"""Where nvidia-smi is when it is on no PATH: Debian without its alternatives, container hosts."""

_SECURE_BOOT = "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


class GpuIO(Protocol):
    """What gathering may ask of a host; tests hand in a fake."""

    def pci_devices(self) -> list[dict[str, str]]:
        """Return NVIDIA's PCI devices.

        Each has its ``address`` and, as sysfs writes them, ``class``, ``device``, ``driver`` (empty: none),
        ``numa_node`` and ``cpus`` (the processors near it); and whether it is a ``vgpu``: ``yes`` or empty.
        """

    def driver_text(self) -> str:
        """Return the text of ``/proc/driver/nvidia/version``, empty where the kernel module is not loaded."""

    def module_loaded(self, name: str) -> bool:
        """Return whether a kernel module is loaded."""

    def library_name(self) -> str | None:
        """Return the file name that ``libnvidia-ml.so.1`` leads to, such as ``libnvidia-ml.so.550.163.01``, or None."""

    def secure_boot_variable(self) -> bytes | None:
        """Return the EFI variable SecureBoot with its four bytes of attributes, or None on a host without EFI."""

    def has_rdma(self) -> bool:
        """Return whether there are InfiniBand or RoCE devices."""

    def process_names(self) -> frozenset[str] | None:
        """Return the names of all processes (fifteen characters each), or None where they cannot all be seen."""

    def held_open(self) -> AbstractContextManager[None]:
        """Keep the GPUs initialised meanwhile, as a program that computes does."""

    def pause(self, seconds: float) -> None:
        """Wait."""

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        """Run nvidia-smi, or return None where it is not installed."""

    def fabric_manager(self) -> CommandResult | None:
        """Ask the fabric manager's program for its version, or return None where it is not installed."""


class SystemGpuIO:
    """This host. sysfs and procfs may be a recorded tree; ``root`` stands before the paths of libraries, for tests."""

    def __init__(self, sysfs_root: str = "/sys", proc_root: str = "/proc", root: str = "/") -> None:
        self._sysfs, self._proc, self._root = Path(sysfs_root), Path(proc_root), Path(root)

    def pci_devices(self) -> list[dict[str, str]]:
        found = []
        for device in _entries(self._sysfs / "bus/pci/devices"):
            if _read(device / "vendor") != NVIDIA_VENDOR:
                continue
            found.append(
                {
                    "address": device.name,
                    "class": _read(device / "class"),
                    "device": _read(device / "device"),
                    "driver": link_name(device / "driver"),
                    "numa_node": _read(device / "numa_node"),
                    "cpus": _read(device / "local_cpulist"),
                    "vgpu": "yes" if is_vgpu(beginning(device / "config", PCI_CONFIG_BYTES)) else "",
                }
            )
        return found

    def driver_text(self) -> str:
        return _read(self._proc / "driver/nvidia/version")

    def module_loaded(self, name: str) -> bool:
        return (self._sysfs / "module" / name).is_dir()

    def library_name(self) -> str | None:
        # Debian and Ubuntu, then where NVIDIA's own installer and container images put it.
        for directory in (f"usr/lib/{platform.machine()}-linux-gnu", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64"):
            library = self._root / directory / "libnvidia-ml.so.1"
            if library.exists():
                return Path(os.path.realpath(library)).name
        return None

    def secure_boot_variable(self) -> bytes | None:
        try:
            return (self._sysfs / _SECURE_BOOT).read_bytes()
        except OSError:
            return None

    def has_rdma(self) -> bool:
        return bool(_entries(self._sysfs / "class/infiniband"))

    def process_names(self) -> frozenset[str] | None:
        if not _read(self._proc / "1/comm"):
            return None  # hidepid: an unprivileged account sees its own processes only
        numbers = [entry for entry in _entries(self._proc) if entry.name.isdecimal()]
        return frozenset(_read(number / "comm") for number in numbers)

    @contextmanager
    def held_open(self) -> Iterator[None]:
        with ExitStack() as stack:
            for device in sorted((self._root / "dev").glob("nvidia[0-9]*")):
                with suppress(OSError):  # another process has it for itself, or it is gone
                    stack.callback(os.close, os.open(device, os.O_RDWR | os.O_CLOEXEC))
            yield

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        program = find_program("nvidia-smi") or next((place for place in SMI_PLACES if os.access(place, os.X_OK)), None)
        return run_program([program, *arguments], SMI_TIMEOUT) if program else None

    def fabric_manager(self) -> CommandResult | None:
        program = find_program("nv-fabricmanager")
        return run_program([program, "--version"], FABRIC_MANAGER_TIMEOUT) if program else None


def beginning(path: Path, size: int) -> bytes:
    """Return at most that many bytes of a file; empty where there is none, or the device does not answer."""
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError:
        return b""


def link_name(path: Path) -> str:
    """Return the last part of what a symbolic link points to, empty where there is none."""
    try:
        return path.readlink().name
    except OSError:
        return ""


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
