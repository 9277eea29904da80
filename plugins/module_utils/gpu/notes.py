# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is worth knowing of a host's GPUs but stops no training, nvidia-smi's warnings among it.

Source for MIG: NCCL's user guide, "Using MIG instances".
"""

from __future__ import annotations

from collections.abc import Iterator

from .explain import remarks
from .pci import sysfs_address
from .problems import Host, Reading, listed


def find_notes(host: Host) -> list[str]:
    """Return what is worth knowing but stops no training."""
    return list(_notes(host))


def _notes(host: Host) -> Iterator[str]:
    for device in host.devices:
        if device["generation"] is None:
            yield (
                f"The GPU at {device['address']} has a PCI number ({device['device_id']}) that is not in this "
                "collection's table, so its generation is unknown and the flavour of its driver was not checked."
            )
    known = list(host.reading.known())
    yield from _remarks(host.reading)
    idle = [gpu for gpu, details in known if details.persistence is False]
    if idle:
        yield (
            f"Persistence mode is off ({listed(idle)}): each program that starts waits for the GPU to be initialised. "
            "Where this collection installed the driver, nvidia_driver_persistence: true turns it on; elsewhere, start "
            "nvidia-persistenced without --no-persistence-mode, which Ubuntu's unit has, or `nvidia-smi -pm 1`."
        )
    for gpu, details in known:
        if details.ecc_aggregate and not details.ecc_volatile:
            yield f"GPU {gpu.index} has had memory errors in its life ({details.ecc_aggregate}), none lately."
        if details.mig is not None and details.mig_pending not in (None, details.mig):
            yield f"GPU {gpu.index} {'enters' if details.mig_pending else 'leaves'} MIG mode at its next reset."
    if len(known) == 1 and known[0][1].mig and known[0][1].instances:
        yield (
            f"GPU {known[0][0].index} is in MIG mode (instances: {len(known[0][1].instances)}). A CUDA process sees "
            "one of them and NCCL joins instances of one GPU only experimentally and over the host's memory (from 2.32 "
            "on), so this host counts as one slot: the first instance, or the one that CUDA_VISIBLE_DEVICES names."
        )


def _remarks(reading: Reading) -> Iterator[str]:
    """nvidia-smi's warnings. One that names a GPU does so by its address."""
    numbers = {details.address: gpu.index for gpu, details in reading.known() if details.address}
    for line in remarks(reading.answer) if reading.answer is not None else ():
        named = (sysfs_address(word.strip(".,;:()")) for word in line.split())
        found = next((numbers[address] for address in named if address in numbers), None)
        where = "" if found is None else f"GPU {found}: "
        advice = (
            " That alone keeps no GPU from computing; the infoROM holds serial number, ECC mode and counts of memory "
            "errors, so what is reported of these may be wrong. Have the server's vendor flash it or replace the GPU."
            if "inforom" in line.lower()
            else ""
        )
        yield f"{where}nvidia-smi says '{line}'.{advice}"
