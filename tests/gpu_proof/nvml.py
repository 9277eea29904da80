# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Ask NVML itself, through nvidia-ml-py, what gpu_info learned from nvidia-smi, sysfs and procfs; and compare the two.

Everything that NVML has a function for is compared. What a device does not support is None on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ctypes import byref
from itertools import combinations
from typing import Any

MEBIBYTE = 1024**2
HIDDEN = frozenset({"uuid", "address"})
"""Compared, and never written down: they say which machine it was."""

TOLERANCES = {
    "memory_bytes": (MEBIBYTE, "1 MiB: nvidia-smi shows whole MiB"),
    "power_limit_watts": (0.01, "0.01 W: nvidia-smi shows two decimals"),
}

_ARCHITECTURES = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
}
"""NVML_DEVICE_ARCH_… of nvml.h. Grace Hopper is 9 too."""
_UNCORRECTED, _VOLATILE, _AGGREGATE = 1, 0, 1
_FABRIC = {1: "Not Started", 2: "In Progress", 3: "Completed"}
"""NVML_GPU_FABRIC_STATE_…; 0 is not supported."""
_LEVELS = {10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""NVML_TOPOLOGY_…, as ``nvidia-smi topo -m`` calls them."""
_WORDS = 32
"""Of 64 processors each, in a mask of processors."""


def read(nvml: Any) -> dict[str, Any]:
    """Return what NVML says, in the form of gpu_info. ``nvml`` is nvidia-ml-py's module pynvml, initialised."""

    def ask(name: str, *arguments: Any) -> Any:
        try:
            return getattr(nvml, name)(*arguments)
        except nvml.NVMLError as error:
            if getattr(error, "value", None) == nvml.NVML_ERROR_NOT_SUPPORTED:
                return None
            raise

    cuda = ask("nvmlSystemGetCudaDriverVersion_v2")
    handles = [ask("nvmlDeviceGetHandleByIndex", index) for index in range(ask("nvmlDeviceGetCount"))]
    levels = {
        f"{first}-{second}": _LEVELS.get(ask("nvmlDeviceGetTopologyCommonAncestor", handles[first], handles[second]))
        for first, second in combinations(range(len(handles)), 2)
    }
    return {
        "topology": levels,
        "driver.version": text(ask("nvmlSystemGetDriverVersion")),
        "cuda_version": f"{cuda // 1000}.{cuda % 1000 // 10}",
        "gpus": [{**_device(ask, handle), **_place(ask, handle, nvml)} for handle in handles],
    }


def _device(ask: Callable[..., Any], handle: Any) -> dict[str, Any]:
    capability = ask("nvmlDeviceGetCudaComputeCapability", handle)
    limit, memory = ask("nvmlDeviceGetPowerManagementLimit", handle), ask("nvmlDeviceGetMemoryInfo", handle)
    ecc, mig = ask("nvmlDeviceGetEccMode", handle), ask("nvmlDeviceGetMigMode", handle)
    remapped, persistence = ask("nvmlDeviceGetRemappedRows", handle), ask("nvmlDeviceGetPersistenceMode", handle)
    return {
        "name": text(ask("nvmlDeviceGetName", handle)),
        "uuid": text(ask("nvmlDeviceGetUUID", handle)),
        "memory_bytes": memory.total if memory else None,
        "compute_capability": ".".join(map(str, capability)),
        "address": _address(text(ask("nvmlDeviceGetPciInfo", handle).busId)),
        "generation": _ARCHITECTURES.get(ask("nvmlDeviceGetArchitecture", handle)),
        "persistence": None if persistence is None else bool(persistence),
        "power_limit_watts": None if limit is None else limit / 1000,
        "ecc.enabled": bool(ecc[0]) if ecc else None,
        "ecc.uncorrected_volatile": ask("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _VOLATILE),
        "ecc.uncorrected_aggregate": ask("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _AGGREGATE),
        "ecc.repair_pending": bool(remapped[2]) if remapped else None,
        "ecc.repair_failed": bool(remapped[3]) if remapped else None,
        "mig.enabled": bool(mig[0]) if mig else None,
        "mig.pending": bool(mig[1]) if mig else None,
    }


def _place(ask: Callable[..., Any], handle: Any, nvml: Any) -> dict[str, Any]:
    """Return where a GPU is: its part in an NVLink fabric, and the processors near it."""
    fabric = nvml.c_nvmlGpuFabricInfo_t()
    answered = ask("nvmlDeviceGetGpuFabricInfo", handle, byref(fabric)) is not None
    mask = ask("nvmlDeviceGetCpuAffinity", handle, _WORDS)
    near = {64 * word + bit for word, bits in enumerate(mask or ()) for bit in range(64) if bits >> bit & 1}
    return {"fabric_state": _FABRIC.get(fabric.state) if answered else None, "cpu_affinity": ranges(near) or None}


def ranges(numbers: set[int]) -> str:
    """Return ``0-3,8`` as sysfs writes lists of processors."""
    starts = sorted(number for number in numbers if number - 1 not in numbers)
    ends = sorted(number for number in numbers if number + 1 not in numbers)
    return ",".join(f"{start}-{end}" if end > start else str(start) for start, end in zip(starts, ends))


def _topology_rows(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Compare how two GPUs are connected but for NVLink, of which the common ancestor on PCIe says nothing."""
    matrix = (ours.get("topology") or {}).get("gpus") or {}
    for pair, level in theirs["topology"].items():
        first, second = pair.split("-")
        found = (matrix.get(first) or {}).get(second)
        if found and not found.startswith("NV"):
            yield _row(f"topology {pair}", found, level)


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each field: ours, NVML's, whether they agree, and the tolerance where there is one."""
    rows = [
        _row("driver.version", ours["driver"]["version"], theirs["driver.version"]),
        _row("cuda_version", ours["cuda_version"], theirs["cuda_version"]),
        _row("gpus", len(ours["gpus"]), len(theirs["gpus"])),
    ]
    if not any(gpu["mig.enabled"] for gpu in theirs["gpus"]):
        rows.append(_row("slots", ours["slots"], len(theirs["gpus"])))
    for index, (gpu, device) in enumerate(zip(ours["gpus"], theirs["gpus"])):
        for field, value in device.items():
            found: Any = gpu
            for key in field.split("."):
                found = found[key]
            # sysfs may know no processors near a GPU, of which NVML then names all
            if field != "cpu_affinity" or found is not None:
                rows.append(_row(f"gpus[{index}].{field}", found, value, field))
    return [*rows, *_topology_rows(ours, theirs)]


def text(value: str | bytes) -> str:
    """Return a text: some releases of nvidia-ml-py give bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _row(name: str, ours: Any, theirs: Any, field: str = "") -> dict[str, Any]:
    near, why = TOLERANCES.get(field, (0, ""))
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (ours, theirs))
    equal = abs(ours - theirs) <= near if numbers else ours == theirs
    shown = ("hidden", "hidden") if field in HIDDEN else (ours, theirs)
    return {"field": name, "ours": shown[0], "nvml": shown[1], "equal": equal, "tolerance": why}


def _address(found: str) -> str:
    """Return ``00000000:3B:00.0`` as sysfs has it, ``0000:3b:00.0``."""
    domain, dummy, rest = found.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"
