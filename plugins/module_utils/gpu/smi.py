# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads what nvidia-smi, procfs and the fabric manager print. Whatever the text, nothing here raises.

Sources: nvidia-smi(1) for the query fields and the words of each value; the NVIDIA driver's README, chapter "The /proc
interface"; the document types nvsmi_device_v10 to v13 for the elements of ``nvidia-smi -q -x``, some of which have
changed their names (power limit, ECC counters, recovery): both are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from .pci import sysfs_address

QUERY_FIELDS = ("index", "uuid", "memory.total", "compute_cap", "name")
"""The name is last, so that a comma in it would do no harm."""

VERSION = r"(?<!\d)\d{1,9}(?:\.\d{1,9}){1,4}"

ROW_START = re.compile(r"^\d{1,6},\s*GPU-", re.ASCII)
"""How a row of the query begins."""

_BROKEN = re.compile(r"\[[^]]*(lost|error|requires reset)[^]]*\]|ERR!", re.IGNORECASE)
"""As against ``[N/A]`` and ``[Not Supported]``, which say that a healthy GPU has no such value."""

_LOST = re.compile(r"\b(is lost|requires reset)\b", re.IGNORECASE)
_UNREADABLE = re.compile(r"ERR!|^\s*Unknown Error\s*$")
_SENSORS = frozenset({"gpu_temp", "power_draw", "instant_power_draw", "average_power_draw", "gpu_util", "sm_clock"})
_MIG_ROW = re.compile(r"^\s*MIG\s+(\S+)\s+Device\s+(\d{1,6}):\s+\(UUID:\s*(MIG-[^)\s]+)\)", re.ASCII)
_GPU_ROW = re.compile(r"^\s*GPU\s+\d+:.*\(UUID:\s*(GPU-[^)\s]+)\)")


@dataclass(frozen=True)
class Gpu:
    """One GPU that answers. ``memory_bytes`` is None where it shares the host's memory."""

    index: int
    name: str
    uuid: str
    memory_bytes: int | None
    compute_capability: str | None


@dataclass(frozen=True)
class MigInstance:
    """One part of a GPU in MIG mode. ``profile`` and ``uuid`` come from ``nvidia-smi -L``."""

    index: int
    gpu_instance: int | None
    compute_instance: int | None
    memory_bytes: int | None
    profile: str | None = None
    uuid: str | None = None


@dataclass(frozen=True)
class Details:
    """What ``nvidia-smi -q -x`` reports of one GPU. None is what this GPU or this driver does not report."""

    uuid: str | None = None
    address: str | None = None
    device_id: str | None = None
    architecture: str | None = None
    persistence: bool | None = None
    power_limit_watts: float | None = None
    ecc: bool | None = None
    ecc_volatile: int | None = None
    ecc_aggregate: int | None = None
    repair_pending: bool | None = None
    repair_failed: bool | None = None
    mig: bool | None = None
    mig_pending: bool | None = None
    instances: tuple[MigInstance, ...] = ()
    fabric_state: str | None = None
    fabric_status: str | None = None
    recovery: str | None = None
    license: str | None = None
    lost: str | None = None
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """What ``nvidia-smi -q -x`` reports of a host."""

    cuda_version: str | None
    gpus: tuple[Details, ...]


def parse_driver(text: str) -> dict[str, bool | str | None]:
    """Return ``loaded``, ``version`` and ``flavour`` from the text of /proc/driver/nvidia/version."""
    version = re.search(rf"Kernel Module\s+(?:for\s+\S+\s+)?({VERSION})", text, re.ASCII)
    flavour = "open" if "Open Kernel Module" in text else "proprietary"
    return {
        "loaded": bool(text.strip()),
        "version": version.group(1) if version else None,
        "flavour": flavour if version else None,
    }


def parse_library(name: str | None) -> str | None:
    """Return the version at the end of a library's file name, or None."""
    found = re.search(rf"\.so\.({VERSION})$", name or "", re.ASCII)
    return found.group(1) if found else None


def parse_fabric_manager(text: str) -> str | None:
    """Return the version in the answer of ``nv-fabricmanager --version``, or None."""
    found = re.search(rf"version is\s*:\s*({VERSION})", text, re.ASCII)
    return found.group(1) if found else None


def parse_gpus(text: str, fields: tuple[str, ...] = QUERY_FIELDS) -> tuple[list[Gpu], list[str]]:
    """Return the usable GPUs of a query's CSV answer, in order, and the rows of GPUs that are listed but broken."""
    gpus, broken = [], []
    for line in text.splitlines():
        if not ROW_START.match(line):
            continue  # a warning or an error between the rows
        values = dict(zip(fields, (value.strip() for value in line.split(",", len(fields) - 1))))
        if len(values) < len(fields) or _BROKEN.search(line):
            broken.append(line.strip())
            continue
        capability = values.get("compute_cap", "")
        gpus.append(
            Gpu(
                index=int(values["index"]),
                name=values["name"],
                uuid=values["uuid"],
                memory_bytes=_mebibytes(values["memory.total"]),
                compute_capability=capability if re.fullmatch(VERSION, capability, re.ASCII) else None,
            )
        )
    return sorted(gpus, key=lambda gpu: gpu.index), broken


def parse_report(text: str) -> Report | None:
    """Return what ``nvidia-smi -q -x`` reports, or None where the text is not a complete document."""
    start, end = text.find("<nvidia_smi_log"), text.rfind("</nvidia_smi_log>")
    if start < 0 or end < 0:
        return None
    try:
        # Without the prologue: nothing is defined there that the elements need, and so nothing there can expand.
        root = ElementTree.fromstring(text[start : end + len("</nvidia_smi_log>")])
    except (ElementTree.ParseError, ValueError):
        return None
    cuda = re.fullmatch(VERSION, _text(root, "cuda_version") or _text(root, "cuda_umd_version") or "", re.ASCII)
    return Report(cuda.group(0) if cuda else None, tuple(_details(gpu) for gpu in root.findall("gpu")))


def _details(gpu: ElementTree.Element) -> Details:
    lost, unreadable = _faults(gpu)
    return Details(
        uuid=_text(gpu, "uuid"),
        address=sysfs_address(_text(gpu, "pci/pci_bus_id") or gpu.get("id") or ""),
        device_id=_device_id(_text(gpu, "pci/pci_device_id")),
        architecture=_text(gpu, "product_architecture"),
        persistence=_switch(_text(gpu, "persistence_mode")),
        power_limit_watts=_watts(
            _text(gpu, "gpu_power_readings/current_power_limit") or _text(gpu, "power_readings/power_limit")
        ),
        ecc=_switch(_text(gpu, "ecc_mode/current_ecc")),
        ecc_volatile=_uncorrected(gpu, "volatile"),
        ecc_aggregate=_uncorrected(gpu, "aggregate"),
        repair_pending=_any(
            _yes(_text(gpu, path))
            for path in (
                "remapped_rows/remapped_row_pending",
                "retired_pages/pending_retirement",
                "retired_pages/pending_blacklist",
                "remapped_banks/bank_remapper_pending",
            )
        ),
        repair_failed=_yes(_text(gpu, "remapped_rows/remapped_row_failure")),
        mig=_switch(_text(gpu, "mig_mode/current_mig")),
        mig_pending=_switch(_text(gpu, "mig_mode/pending_mig")),
        instances=tuple(_instances(gpu)),
        fabric_state=_text(gpu, "fabric/state"),
        fabric_status=_text(gpu, "fabric/status"),
        recovery=_recovery(gpu),
        license=_license(gpu),
        lost=lost,
        unreadable=unreadable,
    )


def _text(element: ElementTree.Element, path: str) -> str | None:
    """Return an element's text, None where it is missing or says that there is no such value."""
    text = " ".join((element.findtext(path) or "").split())
    return None if text in ("", "N/A", "[N/A]", "None", "Not Supported", "[Not Supported]") else text


def _switch(text: str | None) -> bool | None:
    return {"Enabled": True, "Disabled": False}.get(text or "")


def _yes(text: str | None) -> bool | None:
    return {"Yes": True, "No": False}.get(text or "")


def _any(answers: Iterator[bool | None]) -> bool | None:
    known = [answer for answer in answers if answer is not None]
    return any(known) if known else None


def _number(text: str | None) -> int | None:
    found = re.match(r"\d{1,15}(?![\d.])", text or "", re.ASCII)
    return int(found.group(0)) if found else None


def _mebibytes(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else number * 1024 * 1024


def _watts(text: str | None) -> float | None:
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) W", text or "", re.ASCII)
    return float(found.group(1)) if found else None


def _device_id(text: str | None) -> str | None:
    # The device number stands before the vendor's: 233010DE.
    found = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{4})10DE", text or "", re.IGNORECASE)
    return f"0x{found.group(1).lower()}" if found else None


def _uncorrected(gpu: ElementTree.Element, kind: str) -> int | None:
    """Return the sum of the errors that ECC saw and could not correct."""
    counters = gpu.find(f"ecc_errors/{kind}")
    if counters is None:
        return None
    found = [_number(counter.text) for counter in counters if "uncorrectable" in counter.tag]
    found += [_number(counters.findtext("double_bit/total"))]  # before Turing
    known = [number for number in found if number is not None]
    return sum(known) if known else None


def _recovery(gpu: ElementTree.Element) -> str | None:
    # Before driver 570 there were two questions to answer with Yes or No.
    action = _text(gpu, "gpu_recovery_action")
    if action is None and _yes(_text(gpu, "gpu_reset_status/reset_required")):
        return "Reset"
    if action is None and _yes(_text(gpu, "gpu_reset_status/drain_and_reset_recommended")):
        return "Drain and Reset"
    return action


def _license(gpu: ElementTree.Element) -> str | None:
    # Of a vGPU alone: a whole GPU that is passed through may name a licence that computing does not need.
    virtual = _text(gpu, "gpu_virtualization_mode/virtualization_mode") == "VGPU"
    return _text(gpu, "vgpu_software_licensed_product/license_status") if virtual else None


def _instances(gpu: ElementTree.Element) -> Iterator[MigInstance]:
    for number, device in enumerate(gpu.findall("mig_devices/mig_device")):
        index = _number(_text(device, "index"))
        yield MigInstance(
            index=number if index is None else index,
            gpu_instance=_number(_text(device, "gpu_instance_id")),
            compute_instance=_number(_text(device, "compute_instance_id")),
            memory_bytes=_mebibytes(_text(device, "fb_memory_usage/total")),
        )


def _faults(gpu: ElementTree.Element) -> tuple[str | None, tuple[str, ...]]:
    """Return what is said in place of values when a GPU is gone, and the sensors that cannot be read."""
    lost, unreadable = None, set()
    for element in gpu.iter():
        text = (element.text or "").strip()
        if lost is None and _LOST.search(text):
            lost = text[:100]
        elif element.tag in _SENSORS and _UNREADABLE.search(text):
            unreadable.add(element.tag)
    return lost, tuple(sorted(unreadable))


def parse_mig(text: str) -> dict[tuple[str, int], tuple[str, str]]:
    """Return profile and uuid of each MIG instance in ``nvidia-smi -L``, by its GPU's uuid and its number there."""
    found: dict[tuple[str, int], tuple[str, str]] = {}
    owner = None
    for line in text.splitlines():
        gpu, instance = _GPU_ROW.match(line), _MIG_ROW.match(line)
        if gpu:
            owner = gpu.group(1)
        elif instance and owner:
            found[(owner, int(instance.group(2)))] = (instance.group(1), instance.group(3))
    return found
