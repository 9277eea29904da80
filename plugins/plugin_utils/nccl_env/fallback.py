# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""NCCL took sockets although HCAs were chosen for it: in words, for verify.yml, bench_network.yml and status.yml. Pure.

NCCL says so with NCCL_DEBUG=INFO alone, and goes on. Its lines, by src/misc/ibvsymbols.cc and src/transport/net_ib (as
printed on machines, in the issues named): ``Failed to open libibverbs.so[.1]`` (NVIDIA/nccl#1410), ``NET/IB : No device
found.`` (recorded on an H100 without HCAs), ``NCCL_IB_DISABLE set by environment to 1.`` (NVIDIA/nccl-tests#228).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

SOCKETS = "Socket"
"""What NCCL calls its transport over TCP."""
REMEDY = (
    "the image (without Docker, the host) needs libibverbs1 and ibverbs-providers, which this collection's own image "
    "has, and the container the devices in /dev/infiniband and memlock without a limit (--tags "
    "training_image,training_container); if sockets are wanted, nccl_env_environment: {NCCL_IB_DISABLE: 1}"
)
_CAUSES = (
    (re.compile(r"NCCL_IB_DISABLE set (?:by environment )?to 1\b"), "NCCL_IB_DISABLE=1 is in the ranks' environment"),
    (re.compile(r"Failed to open libibverbs\.so"), "there is no libibverbs"),
    (
        re.compile(r"NET/IB ?: No device found"),
        "libibverbs found none of them, because its drivers are missing from the image, or the devices from the "
        "container",
    ),
)


def fell_back(devices: Sequence[str], hcas: str) -> str:
    """Return ``NCCL fell back to sockets (eth0), and nccl_env chose the HCAs mlx5_0:1``."""
    return f"NCCL fell back to sockets ({listed(devices)}), but nccl_env chose the HCAs {hcas.lstrip('=')}"


def cause(log: Iterable[str]) -> str:
    """Return why, by what NCCL printed on one node; empty where it does not say."""
    lines = list(log)
    return next((words for pattern, words in _CAUSES if any(pattern.search(line[:4096]) for line in lines)), "")


def listed(devices: Sequence[str]) -> str:
    """Return interfaces or HCAs, the first eight."""
    return ", ".join(devices[:8]) + (f" and {len(devices) - 8} more" if len(devices) > 8 else "")
