# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a host's NVIDIA devices, driver and GPUs are, from the texts that sysfs, procfs and nvidia-smi give.

Sources: nvidia-smi(1) for the query fields; the NVIDIA driver's README, chapter "The /proc interface", for
``/proc/driver/nvidia/version``. Drivers from 610 on say "CUDA UMD Version" where earlier ones say "CUDA Version".
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils._command_io import TIMED_OUT, CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils._gpu_io import GpuIO

DISPLAY_CLASSES = ("0x0300", "0x0302")
"""PCI classes of GPUs: VGA controller (workstation cards) and 3D controller (data centre cards)."""

NOT_FOR_US = frozenset({"vfio-pci", "pci-stub"})
"""Kernel drivers that hold a device for a virtual machine: such a GPU is no slot of this host, and that is no fault."""

QUERY_FIELDS = ("index", "uuid", "memory.total", "compute_cap", "name")
"""The name is last, so that a comma in it would do no harm."""

_UNKNOWN_FIELD = "is not a valid field to query"
_MISMATCH = "Driver/library version mismatch"
_VERSION = r"\d+(?:\.\d+)+"
_ROW_START = re.compile(r"^\d+,\s*GPU-")
_BROKEN = re.compile(r"\[[^]]*(lost|error)[^]]*\]|ERR!", re.IGNORECASE)
"""As against ``[N/A]`` and ``[Not Supported]``, which say that a healthy GPU has no such value."""

_REMEDIES = (
    (
        "couldn't communicate with the NVIDIA driver",
        "the kernel module is not loaded or was not built for the running kernel. Look at `dkms status`, then "
        "`modprobe nvidia`; after an installation, reboot",
    ),
    (
        _MISMATCH,
        "the loaded kernel module and the libraries are of different versions, as after an upgrade without a reboot. "
        "Reboot this host",
    ),
    (
        "No devices were found",
        "the driver is loaded but took no GPU. Look at `dmesg | grep NVRM`; the usual reasons are a driver branch that "
        "does not know this GPU, and the wrong flavour of kernel module (open or proprietary) for its generation",
    ),
    (
        "Unable to determine the device handle",
        "a GPU does not answer and may have fallen off the bus. Look at `dmesg | grep Xid`, then power the host off "
        "and on",
    ),
    (
        "Insufficient Permissions",
        "this account may not use the driver. Run with privileges (become: true)",
    ),
    (
        "couldn't find libnvidia-ml.so",
        "the driver's management library is missing. Install it in the driver's version (Debian: libnvidia-ml1, "
        "Ubuntu: libnvidia-compute-<branch>-server)",
    ),
)
"""What nvidia-smi says, and what that means with the way out."""


@dataclass(frozen=True)
class Gpu:
    """One GPU that can be used. ``memory_bytes`` is None where it shares the host's memory."""

    index: int
    name: str
    uuid: str
    memory_bytes: int | None
    compute_capability: str | None


def display_devices(devices: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Return those PCI devices that are GPUs; the rest are audio, USB and NVSwitch functions."""
    return [
        {
            "address": device["address"],
            "class": device["class"],
            "device_id": device["device"],
            "driver": device["driver"] or None,
            "numa_node": _numa_node(device["numa_node"]),
        }
        for device in devices
        if device["class"].startswith(DISPLAY_CLASSES)
    ]


def _numa_node(text: str) -> int | None:
    # The kernel says -1 where the firmware names no node.
    return int(text) if text.isdigit() else None


def parse_driver(text: str) -> dict[str, Any]:
    """Return ``loaded``, ``version`` and ``flavour`` from the text of /proc/driver/nvidia/version."""
    version = re.search(rf"Kernel Module\s+(?:for\s+\S+\s+)?({_VERSION})", text)
    flavour = "open" if "Open Kernel Module" in text else "proprietary"
    return {
        "loaded": bool(text.strip()),
        "version": version.group(1) if version else None,
        "flavour": flavour if version else None,
    }


def parse_library(name: str | None) -> str | None:
    """Return the version at the end of a library's file name, or None."""
    found = re.search(rf"\.so\.({_VERSION})$", name or "")
    return found.group(1) if found else None


def parse_cuda(text: str) -> str | None:
    """Return the newest CUDA version the driver supports, from ``nvidia-smi --version`` or the head of its table."""
    found = re.search(rf"CUDA(?: UMD)? Version\s*:\s*({_VERSION})", text)
    return found.group(1) if found else None


def parse_gpus(text: str, fields: tuple[str, ...] = QUERY_FIELDS) -> tuple[list[Gpu], list[str]]:
    """Return the usable GPUs of a query's CSV answer, in order, and the rows of GPUs that are listed but broken."""
    gpus, broken = [], []
    for line in text.splitlines():
        if not _ROW_START.match(line):
            continue  # a warning or an error between the rows
        values = dict(zip(fields, (value.strip() for value in line.split(",", len(fields) - 1))))
        if len(values) < len(fields) or _BROKEN.search(line):
            broken.append(line.strip())
            continue
        memory, capability = values["memory.total"], values.get("compute_cap", "")
        gpus.append(
            Gpu(
                index=int(values["index"]),
                name=values["name"],
                uuid=values["uuid"],
                memory_bytes=int(memory) * 1024 * 1024 if memory.isdigit() else None,
                compute_capability=capability if re.fullmatch(_VERSION, capability) else None,
            )
        )
    return sorted(gpus, key=lambda gpu: gpu.index), broken


def explain(answer: CommandResult) -> str | None:
    """Return what is wrong, with cause and remedy, or None where nvidia-smi is content."""
    for said, meaning in _REMEDIES:
        if said.lower() in answer.text.lower():
            return f"nvidia-smi says '{_line_with(answer.text, said)}': {meaning}."
    if answer.rc == TIMED_OUT:
        return (
            f"nvidia-smi gave {answer.stderr}: the driver hangs, often on a GPU that has failed. "
            "Look at `dmesg | grep -e Xid -e NVRM`, then reboot this host."
        )
    if answer.rc != 0:
        said = " ".join(answer.text.split())[:300].rstrip(".") or "nothing"
        return (
            f"nvidia-smi ended with status {answer.rc} and said: {said}. "
            "Run nvidia-smi on this host and look at `dmesg | grep -e Xid -e NVRM`."
        )
    return None


def _line_with(text: str, part: str) -> str:
    return next(line.strip()[:300] for line in text.splitlines() if part.lower() in line.lower())


@dataclass(frozen=True)
class _Reading:
    """What nvidia-smi told: ``answer`` is None where it is not installed, ``broken`` are rows of GPUs that failed."""

    answer: CommandResult | None = None
    gpus: tuple[Gpu, ...] = ()
    broken: tuple[str, ...] = ()
    cuda_version: str | None = None


def gather_gpu(io: GpuIO) -> dict[str, Any]:
    """Return what ``gpu_info`` promises. Runs no command on a host without an NVIDIA GPU."""
    devices = display_devices(io.pci_devices())
    ours = [device for device in devices if device["driver"] not in NOT_FOR_US]
    reading = _read_smi(io) if ours else _Reading()
    # Only now: on some hosts it is the first use that loads the kernel module.
    driver = _driver(io, reading.answer)
    return {
        "present": bool(devices),
        "pci_devices": devices,
        "driver": driver,
        "cuda_version": reading.cuda_version,
        "gpus": [asdict(gpu) for gpu in reading.gpus],
        "slots": len(reading.gpus),
        "problems": _problems(ours, driver, reading) if ours else [],
    }


def _read_smi(io: GpuIO) -> _Reading:
    fields: tuple[str, ...] = QUERY_FIELDS
    answer = _ask(io, fields)
    if answer is not None and _UNKNOWN_FIELD in answer.text:
        fields = tuple(field for field in QUERY_FIELDS if field != "compute_cap")  # older drivers do not know it
        answer = _ask(io, fields)
    if answer is None:
        return _Reading()
    gpus, broken = parse_gpus(answer.stdout, fields)
    return _Reading(answer, tuple(gpus), tuple(broken), _cuda_version(io) if gpus else None)


def _ask(io: GpuIO, fields: tuple[str, ...]) -> CommandResult | None:
    return io.nvidia_smi(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def _cuda_version(io: GpuIO) -> str | None:
    # Older drivers know no --version, and say it only in the head of their table.
    for arguments in (("--version",), ()):
        answer = io.nvidia_smi(*arguments)
        found = parse_cuda(answer.stdout) if answer is not None else None
        if found:
            return found
    return None


def _driver(io: GpuIO, answer: CommandResult | None) -> dict[str, Any]:
    driver = parse_driver(io.driver_text())
    said = answer.text if answer is not None else ""
    named = re.search(rf"NVML library version:\s*({_VERSION})", said)
    library = parse_library(io.library_name()) or (named.group(1) if named else None)
    matches: bool | None = None
    if _MISMATCH.lower() in said.lower():
        matches = False
    elif driver["version"] and library:
        matches = driver["version"] == library
    return {
        "loaded": driver["loaded"],
        "version": driver["version"],
        "flavour": driver["flavour"],
        "library_version": library,
        "matches": matches,
    }


def _problems(devices: list[dict[str, Any]], driver: dict[str, Any], reading: _Reading) -> list[str]:
    """Return every problem of a host that has GPUs, each with its cause and the way out."""
    addresses = ", ".join(device["address"] for device in devices)
    nouveau = [device["address"] for device in devices if device["driver"] == "nouveau"]
    problems = []
    if nouveau:
        problems.append(
            f"The nouveau driver holds {', '.join(nouveau)}, so NVIDIA's driver cannot. "
            "Blacklist nouveau, rebuild the initramfs and reboot."
        )
    if not driver["loaded"]:
        problems.append(
            f"NVIDIA's kernel module is not loaded, but this host has NVIDIA GPUs at {addresses}. "
            "Install the driver (role nvidia_driver); where it is installed, look at `dkms status` and reboot."
        )
    if reading.answer is None:
        if driver["loaded"]:
            problems.append(
                "The driver is loaded but nvidia-smi is not installed, so no GPU can be counted. Install it in the "
                "driver's version (Debian: nvidia-smi, Ubuntu: nvidia-utils-<branch>-server)."
            )
        return problems
    said = explain(reading.answer)
    if said:
        problems.append(said)
    elif driver["matches"] is False:
        problems.append(
            f"The loaded kernel module is {driver['version']} but the libraries are {driver['library_version']}: "
            "programs started from now on fail. Reboot this host."
        )
    problems += [
        f"A GPU is listed but broken: {row}. Look at `dmesg | grep Xid`, then reboot this host."
        for row in reading.broken
    ]
    answering = len(reading.gpus) + len(reading.broken)
    if 0 < answering < len(devices):
        problems.append(
            f"Only {answering} of {len(devices)} NVIDIA GPUs ({addresses}) answer. "
            "Look at `dmesg | grep -e Xid -e NVRM`; one that has fallen off the bus comes back with a power cycle."
        )
    if reading.gpus and reading.cuda_version is None:
        problems.append(
            "nvidia-smi names no CUDA version: the driver's CUDA library is missing. Install it in the driver's "
            "version (Debian: libcuda1, Ubuntu: libnvidia-compute-<branch>-server)."
        )
    return problems
