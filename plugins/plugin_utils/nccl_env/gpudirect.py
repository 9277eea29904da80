# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""GPUDirect RDMA: whether data can go from GPU to HCA without a copy in the host's memory. Pure.

It is judged by the open kernel module and dma_buf. The older way, the module nvidia_peermem, is deprecated, and needs a
kernel or an OFED that has peer memory. Sources: NVIDIA's GPU operator documentation, "GPUDirect RDMA" (open modules,
Linux 5.12 or later, CUDA 11.7 or later); NVIDIA/nccl#1474. That NCCL may use it is not that it does: NCCL leaves it out
where GPU and HCA are far apart (NCCL_NET_GDR_LEVEL).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.fabric.rdma import switch_management

NEEDS = (
    "the open kernel module (nvidia_driver_flavour: open) and a kernel with dma_buf (Linux 5.12 or later), not "
    "nvidia_peermem, which is deprecated"
)
FIRST_KERNEL = (5, 12)
"""RDMA drivers of the kernel take memory by dma_buf since then."""


def gpudirect(facts: Mapping[str, Any]) -> str:
    """Return ``possible``, or ``not possible`` and why, of a host; empty where it has no GPU driver or no RDMA."""
    driver = _mapping(_mapping(facts.get("gpu")).get("driver"))
    devices = [_mapping(device) for device in _mapping(facts.get("fabric")).get("infiniband") or []]
    if not driver.get("flavour") or len(devices) == len(switch_management(devices)):
        return ""
    lacking = []
    if driver["flavour"] != "open":
        lacking.append("the kernel module is not the open one")
    release = re.match(r"(\d{1,4})\.(\d{1,4})", str(_mapping(facts.get("system")).get("kernel")))
    if release is None or tuple(map(int, release.groups())) < FIRST_KERNEL:
        lacking.append("the kernel has no dma_buf for RDMA")
    return f"not possible: {' and '.join(lacking)}" if lacking else "possible (open kernel module, dma_buf)"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
