# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an NVIDIA device is by its PCI numbers alone: no driver and no tool needed.

Sources: pci.ids of 22 August 2026 for the chip behind each device number; NVIDIA's driver installation guide, chapter
"Kernel Modules", for which flavour drives which generation; NVIDIA's "Unix graphics feature deprecation schedule" for
the last branch of a generation; for compute capabilities the list of NVIDIA's GPUs (developer.nvidia.com/cuda-gpus) and
the programming guide, section "Compute Capabilities" (2026-11-23). For vGPUs: gpu-feature-discovery
(NVIDIA/k8s-device-plugin, internal/vgpu), and the PCI Local Bus Specification 3.0, 6.7, for the list of capabilities.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

OPEN, PROPRIETARY = "open", "proprietary"

DISPLAY_CLASSES = ("0x0300", "0x0302")
"""PCI classes of GPUs: VGA controller (workstation cards) and 3D controller (data centre cards)."""

BRIDGE_CLASS = "0x0680"
"""PCI class of NVSwitch: a bridge of another kind. NVSwitches of the fourth generation (B200) are no PCI devices."""

NOT_FOR_US = frozenset({"vfio-pci", "pci-stub"})
"""Kernel drivers that hold a device for a virtual machine: such a GPU is not a slot of this host, nor a fault."""


@dataclass(frozen=True)
class Generation:
    """A family of GPUs. ``last_branch`` is the last driver branch that knows it, None where none has dropped it."""

    name: str
    flavours: tuple[str, ...]
    last_branch: int | None = None


GENERATIONS = {
    generation.name: generation
    for generation in (
        Generation("Kepler", (PROPRIETARY,), 470),
        Generation("Maxwell", (PROPRIETARY,), 580),
        Generation("Pascal", (PROPRIETARY,), 580),
        Generation("Volta", (PROPRIETARY,), 580),
        Generation("Turing", (OPEN, PROPRIETARY)),
        Generation("Ampere", (OPEN, PROPRIETARY)),
        Generation("Ada", (OPEN, PROPRIETARY)),
        Generation("Hopper", (OPEN, PROPRIETARY)),
        Generation("Grace Hopper", (OPEN,)),
        Generation("Blackwell", (OPEN,)),
        Generation("Rubin", (OPEN,)),
    )
}

_RANGES: tuple[tuple[int, int, str, str | None], ...] = (
    (0x0FC0, 0x0FFF, "Kepler", "3.0"),
    (0x1000, 0x102C, "Kepler", "3.5"),
    (0x102D, 0x102D, "Kepler", "3.7"),  # GK210: K80
    (0x102E, 0x103F, "Kepler", "3.5"),
    (0x1180, 0x11FF, "Kepler", "3.0"),
    (0x1280, 0x133F, "Kepler", "3.5"),
    (0x1340, 0x13BF, "Maxwell", "5.0"),
    (0x13C0, 0x143F, "Maxwell", "5.2"),
    (0x15C0, 0x15FF, "Pascal", "6.0"),
    (0x1600, 0x167F, "Maxwell", "5.2"),
    (0x1700, 0x173F, "Pascal", "6.0"),
    (0x1740, 0x17BF, "Maxwell", "5.0"),
    (0x17C0, 0x17FF, "Maxwell", "5.2"),
    (0x1B00, 0x1D7F, "Pascal", "6.1"),
    (0x1D80, 0x1DFF, "Volta", "7.0"),
    (0x1E00, 0x1FFF, "Turing", "7.5"),
    (0x2080, 0x20FF, "Ampere", "8.0"),
    (0x2180, 0x21FF, "Turing", "7.5"),
    (0x2200, 0x223F, "Ampere", "8.6"),
    (0x2300, 0x233F, "Hopper", "9.0"),
    (0x2340, 0x234F, "Grace Hopper", "9.0"),
    (0x2350, 0x23FF, "Hopper", "9.0"),
    (0x2400, 0x25FF, "Ampere", "8.6"),
    (0x2680, 0x28FF, "Ada", "8.9"),
    (0x2900, 0x297F, "Blackwell", "10.0"),
    (0x2980, 0x29FF, "Blackwell", None),  # GB102
    (0x2B00, 0x2B7F, "Blackwell", None),  # GB10B: Thor, which CUDA 12 called 10.1 and CUDA 13 calls 11.0
    (0x2B80, 0x2DFF, "Blackwell", "12.0"),
    (0x2E00, 0x2E7F, "Blackwell", "12.1"),  # GB20B: GB10 of DGX Spark
    (0x2F00, 0x2F7F, "Blackwell", "12.0"),
    (0x3000, 0x30FF, "Rubin", None),
    (0x3180, 0x31FF, "Blackwell", "10.3"),
    (0x3200, 0x337F, "Blackwell", None),
)
"""First and last device number, generation, compute capability. NVIDIA gives each chip a block of numbers, so the ends
are those of the block, not of the last product sold. The capability is None where CUDA's list has no product of the
chip yet: it is never guessed, as images are built for it."""

_STARTS = [first for first, dummy, dummy2, dummy3 in _RANGES]


def _range(device_id: str) -> tuple[int, int, str, str | None] | None:
    try:
        number = int(device_id, 16)
    except ValueError:
        return None
    place = bisect_right(_STARTS, number) - 1
    return _RANGES[place] if place >= 0 and number <= _RANGES[place][1] else None


def generation_of(device_id: str) -> Generation | None:
    """Return the generation of a PCI device number such as ``0x2330``, or None where the table does not know it."""
    found = _range(device_id)
    return GENERATIONS[found[2]] if found else None


def capability_of(device_id: str) -> str | None:
    """Return the compute capability of a PCI device number, such as ``9.0``, or None where the table does not know it.

    It is the same with and without a driver, which what an image is built for must be.
    """
    found = _range(device_id)
    return found[3] if found else None


def display_devices(devices: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return those PCI devices that are GPUs; the rest are audio, USB and NVSwitch functions."""
    return [_display_device(device) for device in devices if device["class"].startswith(DISPLAY_CLASSES)]


def _display_device(device: dict[str, str]) -> dict[str, Any]:
    generation = generation_of(device["device"])
    return {
        "address": device["address"],
        "class": device["class"],
        "device_id": device["device"],
        "driver": device["driver"] or None,
        "numa_node": _numa_node(device["numa_node"]),
        "cpu_affinity": device.get("cpus") or None,
        "generation": generation.name if generation else None,
        "flavours": list(generation.flavours) if generation else None,
        "last_branch": generation.last_branch if generation else None,
        "vgpu": device.get("vgpu") == "yes",
    }


def nvswitches(devices: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return those PCI devices that are NVSwitches."""
    return [
        {"address": device["address"], "device_id": device["device"], "driver": device["driver"] or None}
        for device in devices
        if device["class"].startswith(BRIDGE_CLASS)
    ]


def sysfs_address(bus_id: str) -> str | None:
    """Return nvidia-smi's ``00000000:3B:00.0`` as sysfs writes it, ``0000:3b:00.0``; None if it is not an address."""
    domain, separator, rest = bus_id.strip().lower().partition(":")
    try:
        return f"{int(domain, 16):04x}:{rest}" if separator and rest else None
    except ValueError:
        return None


PCI_CONFIG_BYTES = 256
"""How much of a device's configuration space is read: all that capabilities are in. Others than root see 64 bytes."""
_STATUS, _HAS_CAPABILITIES, _FIRST, _VENDOR_SPECIFIC = 0x06, 0x10, 0x34, 0x09


def is_vgpu(config: bytes) -> bool:
    """Return whether a GPU is the part of one that a hypervisor gives to a guest (vGPU), by its configuration space.

    Its vendor-specific capability carries the letters VF before the records of the host's driver. The list of
    capabilities is the device's: one that is broken or runs in a circle ends the search.
    """
    if len(config) < PCI_CONFIG_BYTES or not config[_STATUS] & _HAS_CAPABILITIES:
        return False
    seen: set[int] = set()
    place = config[_FIRST]
    while place and place not in seen and place + 5 <= PCI_CONFIG_BYTES:
        seen.add(place)
        if config[place] == _VENDOR_SPECIFIC:
            return config[place + 2] >= 5 and config[place + 3 : place + 5] == b"VF"
        place = config[place + 1]
    return False


def _numa_node(text: str) -> int | None:
    # The kernel says -1 where the firmware names no node.
    return int(text) if text.isdecimal() and text.isascii() else None


def parse_secure_boot(variable: bytes | None) -> bool | None:
    """Return whether Secure Boot is on, from the EFI variable: four bytes of attributes, then 1 or 0 (UEFI, 3.3)."""
    return variable[4] == 1 if variable is not None and len(variable) >= 5 else None
