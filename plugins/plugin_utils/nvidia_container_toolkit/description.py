# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether the CDI description of a host's GPUs is that of the GPUs which the host has.

The toolkit describes the device files that it finds when it runs. Without /dev/nvidia-uvm, which the kernel module does
not create (nvidia-container-toolkit, commit 8269969f), nvidia-smi works in a container and CUDA does not. GPUs are
named by index and UUID by default, MIG instances likewise, and a GPU in MIG mode only by its instances
(pkg/nvcdi/lib-nvml.go and namer.go of 1.18.2). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...module_utils.gpu.cdi import DESCRIPTION
from .access import CDI_DEVICE

CONTROL = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""Without the first no program reaches the driver, without the second CUDA does not start (cuInit returns 999)."""
_ALL = CDI_DEVICE.partition("=")[2]
_BY_UUID = ("GPU-", "MIG-")
_SHOWN = 4


def faults(described: Any, gpu: Mapping[str, Any]) -> list[str]:
    """Return what of the description does not fit, in words; none where nothing was gathered of it."""
    if not isinstance(described, Mapping):
        return []
    names, nodes = _texts(described, "names"), _texts(described, "nodes")
    found = []
    lacking = [node for node in CONTROL if node not in nodes]
    if lacking:
        found.append(f"{DESCRIPTION} lacks {' and '.join(lacking)}, so CUDA does not start in containers")
    if _ALL not in names:
        found.append(f"{DESCRIPTION} has no device {CDI_DEVICE}, which containers request")
    return found + _device_faults(names, nodes, gpu)


def fitting(gpu: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``node_facts`` would find in a description of these GPUs, as far as it is compared."""
    numbers = range(len(_gpus(gpu)))
    return {
        "names": sorted({_ALL, *_expected(gpu)}),
        "nodes": sorted({*CONTROL, *(f"/dev/nvidia{number}" for number in numbers)}),
    }


def _device_faults(names: set[str], nodes: set[str], gpu: Mapping[str, Any]) -> list[str]:
    expected = _expected(gpu)
    named = {name for name in names if name.startswith(_BY_UUID)}
    if not named or not expected:  # named otherwise by choice, or nothing answers on the host
        files = [node for node in nodes if node.removeprefix("/dev/nvidia").isdigit()]
        there = len(_gpus(gpu))
        return [f"{DESCRIPTION} has {len(files)} of {there} GPUs"] if len(files) < there else []
    lacking, former = [one for one in expected if one not in named], sorted(named - set(expected))
    found = [f"{DESCRIPTION} lacks {_shown(lacking)}"] if lacking else []
    return found + ([f"{DESCRIPTION} has {_shown(former)}, which is no longer there"] if former else [])


def _expected(gpu: Mapping[str, Any]) -> list[str]:
    """Return the UUIDs by which containers get what this host computes on; those that are not known are left out."""
    found = []
    for one in _gpus(gpu):
        mig = one.get("mig")
        divided = isinstance(mig, Mapping) and mig.get("enabled") is True
        found += [entry.get("uuid") for entry in mig.get("instances") or []] if divided and mig else [one.get("uuid")]
    return [uuid for uuid in found if isinstance(uuid, str) and uuid.startswith(_BY_UUID)]


def _gpus(gpu: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    gpus = gpu.get("gpus")
    return [one for one in gpus if isinstance(one, Mapping)] if isinstance(gpus, list) else []


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _texts(described: Mapping[str, Any], name: str) -> set[str]:
    values: Iterable[Any] = described.get(name) or ()
    return {value for value in values if isinstance(value, str)}
