# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What gpu_info may return."""

from __future__ import annotations

import re

from ...module_utils.common.reported import flag, number, short_text, whole, word
from .shape import NAME, by_name, count, listing, mapping, matching, names, optional, sentences, version

_CAPABILITY = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")

_PCI = mapping(
    {"address": word},
    {
        "class": word,
        "device_id": word,
        "driver": optional(word),
        "numa_node": optional(whole(-1, 4096)),
        "cpu_affinity": optional(short_text),
        "generation": optional(short_text),
        "flavours": optional(names),
        "last_branch": optional(count),
        "vgpu": flag,
    },
)

_MIG = mapping(
    {},
    {
        "enabled": optional(flag),
        "pending": optional(flag),
        "instances": listing(
            mapping({}, {"memory_bytes": optional(count), "uuid": optional(word), "profile": optional(short_text)}),
            1000,
        ),
    },
)

_GPU = mapping(
    {"index": count},
    {
        "name": optional(short_text),
        "uuid": optional(word),
        "memory_bytes": optional(count),
        "compute_capability": optional(matching(_CAPABILITY, "a compute capability such as 9.0")),
        "address": optional(word),
        "numa_node": optional(whole(-1, 4096)),
        "cpu_affinity": optional(short_text),
        "generation": optional(short_text),
        "persistence": optional(flag),
        "power_limit_watts": optional(number),
        "ecc": optional(mapping({}, {"enabled": optional(flag)})),
        "mig": optional(_MIG),
        "nvlink": optional(flag),
        "fabric_state": optional(short_text),
        "license": optional(short_text),
    },
)

_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}", re.ASCII)
_NODE = re.compile(r"/dev/[A-Za-z0-9_./-]{1,127}", re.ASCII)
CDI = mapping(
    {
        "names": listing(matching(_DEVICE, "a CDI device's name"), 4096),
        "nodes": listing(matching(_NODE, "a device file"), 4096),
    }
)

_LINKS = by_name(NAME, by_name(NAME, word))

GPU_INFO = mapping(
    {"present": flag, "slots": whole(0, 1024), "problems": sentences},
    {
        "gpus": listing(_GPU, 1024),
        "pci_devices": listing(_PCI, 4096),
        "nvswitches": listing(_PCI, 4096),
        "notes": sentences,
        "driver": mapping(
            {},
            {
                "loaded": flag,
                "version": optional(version),
                "flavour": optional(word),
                "library_version": optional(version),
                "matches": optional(flag),
                "nouveau_loaded": flag,
            },
        ),
        "cuda_version": optional(version),
        "topology": optional(mapping({}, {"gpus": _LINKS, "nics": _LINKS})),
        "fabric": mapping(
            {},
            {
                "state": optional(short_text),
                "manager_running": optional(flag),
                "manager_version": optional(version),
            },
        ),
        "secure_boot": optional(flag),
    },
)
