# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a host's NVIDIA devices, driver and GPUs are: asks in the cheapest order and puts the answers together.

A host without an NVIDIA GPU costs no process and is not examined further. Where GPUs answer, nvidia-smi runs
twice; a third time for the topology where there are more GPUs than one or RDMA devices; once more for the names of MIG
instances where there are any, and once more with drivers before 510. ``nv-fabricmanager --version`` runs where there is
an NVLink fabric. Where its manager runs and GPUs have not joined it yet, nvidia-smi is asked again until they have.

A GPU asks for its place in the fabric when it is initialised, every five seconds until it has one
(NVIDIA/open-gpu-kernel-modules, ``gpuFabricProbeStart``). Without persistence mode each call of nvidia-smi initialises
it again and reads "In Progress", so the devices are kept open in between.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any

from ..common.command_io import CommandResult
from .explain import ENOUGH, MISMATCH
from .host_io import GpuIO
from .notes import find_notes
from .pci import GENERATIONS, NOT_FOR_US, capability_of, display_devices, generation_of, nvswitches, parse_secure_boot
from .problems import WAITING, Host, Reading, find_problems
from .smi import (
    QUERY_FIELDS,
    VERSION,
    Details,
    Gpu,
    parse_driver,
    parse_fabric_manager,
    parse_gpus,
    parse_library,
    parse_mig,
    parse_report,
)
from .topology import Topology, parse_topology

FABRIC_MANAGER = "nv-fabricmanager"[:15]
"""The process name: the kernel keeps fifteen characters of it."""

_UNKNOWN_FIELD = "is not a valid field to query"
_FABRIC_STATES = (*WAITING, "Completed")


PROBE_SECONDS, READY_SECONDS = 5, 15
"""Between two readings of the fabric, and in all where no one asks for more."""


def gather_gpu(io: GpuIO, fabric_wait: int = READY_SECONDS) -> dict[str, Any]:
    """Return what ``gpu_info`` returns. Runs no command on a host without an NVIDIA GPU.

    ``fabric_wait`` is for how many seconds GPUs may join an NVLink fabric whose manager runs.
    """
    found = io.pci_devices()
    devices, switches = display_devices(found), nvswitches(found)
    ours = [device for device in devices if device["driver"] not in NOT_FOR_US]
    our_switches = [switch for switch in switches if switch["driver"] not in NOT_FOR_US]
    reading = _read_smi(io) if ours else Reading()
    if _joining(reading) and FABRIC_MANAGER in (io.process_names() or ()):
        reading = _joined(io, reading, fabric_wait)
    topology = _topology(io, reading)
    # Only now: on some hosts it is the first use that loads the kernel module.
    driver = {
        **_driver(io, reading.answer),
        "nouveau_loaded": bool(devices) and io.module_loaded("nouveau"),
    }
    fabric = _fabric(io, our_switches if ours else [], reading)
    secure_boot = parse_secure_boot(io.secure_boot_variable()) if devices else None
    host = Host(ours, our_switches, driver, fabric, secure_boot, reading)
    return {
        "present": bool(devices),
        "pci_devices": devices,
        "nvswitches": switches,
        "driver": driver,
        "cuda_version": reading.cuda_version,
        "gpus": [_gpu_facts(gpu, details, devices, topology) for gpu, details in reading.known()],
        "topology": {"gpus": topology.gpus, "nics": topology.nics} if topology else None,
        "fabric": fabric,
        "secure_boot": secure_boot,
        "slots": count_slots(reading),
        "problems": find_problems(host) if ours else [],
        "notes": find_notes(host) if ours else [],
    }


def count_slots(reading: Reading) -> int:
    """Return how many ranks can compute here.

    A GPU is one slot. Where a GPU is divided into MIG instances, a CUDA process sees one instance and no other GPU
    (MIG user guide), so the host is one slot. A GPU in MIG mode without an instance is none.
    """
    details = [found for dummy, found in reading.known()]
    if any(found.mig and found.instances for found in details):
        return 1
    return sum(1 for found in details if not found.mig)


def _read_smi(io: GpuIO) -> Reading:
    fields: tuple[str, ...] = QUERY_FIELDS
    answer = _ask(io, fields)
    if answer is not None and _UNKNOWN_FIELD in answer.text:
        fields = tuple(field for field in QUERY_FIELDS if field != "compute_cap")  # drivers before 510
        answer = _ask(io, fields)
    if answer is None:
        return Reading()
    gpus, broken = parse_gpus(answer.stdout, fields)
    if not gpus:
        return Reading(answer, broken=tuple(broken))
    reported = io.nvidia_smi("-q", "-x") or CommandResult(0)
    report = parse_report(reported.stdout)
    if report is None:
        return Reading(answer, reported, tuple(gpus), tuple(broken))
    details = _with_mig_names(io, {found.uuid: found for found in report.gpus if found.uuid})
    # In a query a GPU that failed may look sound, as its name and memory are remembered.
    for gpu in gpus:
        lost = details.get(gpu.uuid, Details()).lost
        if lost:
            broken.append(f"{gpu.index}, {gpu.uuid}, {gpu.name}: {lost}")
    usable = tuple(gpu for gpu in gpus if not details.get(gpu.uuid, Details()).lost)
    return Reading(answer, None, usable, tuple(broken), details, report.cuda_version)


def _joining(reading: Reading) -> bool:
    return any(details.fabric_state in WAITING for dummy, details in reading.known())


def _joined(io: GpuIO, reading: Reading, seconds: int) -> Reading:
    """Return the first reading in which all GPUs have joined the fabric, or the last one."""
    with io.held_open():
        for _number in range(seconds // PROBE_SECONDS):
            io.pause(PROBE_SECONDS)
            reading = _read_smi(io)
            if not _joining(reading):
                break
    return reading


def _ask(io: GpuIO, fields: tuple[str, ...]) -> CommandResult | None:
    return io.nvidia_smi(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def _with_mig_names(io: GpuIO, details: dict[str, Details]) -> dict[str, Details]:
    if not any(found.instances for found in details.values()):
        return details
    listed = io.nvidia_smi("-L")
    names = parse_mig(listed.stdout) if listed is not None else {}
    named = {}
    for uuid, found in details.items():
        instances = []
        for instance in found.instances:
            profile, instance_uuid = names.get((uuid, instance.index), (None, None))
            instances.append(replace(instance, profile=profile, uuid=instance_uuid))
        named[uuid] = replace(found, instances=tuple(instances))
    return named


def _topology(io: GpuIO, reading: Reading) -> Topology | None:
    if not reading.gpus or (len(reading.gpus) == 1 and not io.has_rdma()):
        return None
    answer = io.nvidia_smi("topo", "-m")
    return parse_topology(answer.stdout) if answer is not None and answer.rc in ENOUGH else None


def _driver(io: GpuIO, answer: CommandResult | None) -> dict[str, Any]:
    driver = parse_driver(io.driver_text())
    reported = answer.text if answer is not None else ""
    named = re.search(rf"NVML library version:\s*({VERSION})", reported, re.ASCII)
    library = parse_library(io.library_name()) or (named.group(1) if named else None)
    matches: bool | None = None
    if MISMATCH.lower() in reported.lower():
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


def _fabric(io: GpuIO, switches: list[dict[str, Any]], reading: Reading) -> dict[str, Any]:
    states = {details.fabric_state for dummy, details in reading.known() if details.fabric_state in _FABRIC_STATES}
    wanted = bool(switches or states)
    names = io.process_names() if wanted else None
    version = io.fabric_manager() if wanted else None
    return {
        "state": next((state for state in _FABRIC_STATES if state in states), None),  # the least far
        "manager_running": FABRIC_MANAGER in names if names is not None else None,
        "manager_version": parse_fabric_manager(version.text) if version is not None else None,
    }


def _gpu_facts(gpu: Gpu, details: Details, devices: list[dict[str, Any]], topology: Topology | None) -> dict[str, Any]:
    device = next((device for device in devices if device["address"] == details.address), None)
    device_id = device["device_id"] if device else details.device_id or ""
    generation = generation_of(device_id)
    architecture = (details.architecture or "").split(" ", maxsplit=1)[0]  # "Ada Lovelace"
    number = str(gpu.index)
    links = topology.gpus.get(number, {}).values() if topology else ()
    affinity = topology.cpu_affinity.get(number) if topology else None
    return {
        **asdict(gpu),
        "compute_capability": gpu.compute_capability or capability_of(device_id),
        "address": details.address,
        "numa_node": device["numa_node"] if device else None,
        "cpu_affinity": (device["cpu_affinity"] if device else None) or affinity,
        "generation": generation.name if generation else architecture if architecture in GENERATIONS else None,
        "persistence": details.persistence,
        "power_limit_watts": details.power_limit_watts,
        "ecc": {
            "enabled": details.ecc,
            "uncorrected_volatile": details.ecc_volatile,
            "uncorrected_aggregate": details.ecc_aggregate,
            "repair_pending": details.repair_pending,
            "repair_failed": details.repair_failed,
        },
        "mig": {
            "enabled": details.mig,
            "pending": details.mig_pending,
            "instances": [asdict(instance) for instance in details.instances],
        },
        "nvlink": any(link.startswith("NV") for link in links) if topology else None,
        "fabric_state": details.fabric_state,
        "license": details.license,
    }
