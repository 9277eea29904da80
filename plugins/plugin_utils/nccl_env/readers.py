# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Names that begin with NCCL_ or TORCH_NCCL_ and that NCCL itself does not read: who does, and what to do. Pure.

Sources: NCCL's own source at the tags v2.3.7-1 to v2.30 (no such name in src/); PyTorch's ProcessGroupNCCL.hpp (its old
names are read beside the new ones); DeepSpeed's constants.py; Google's documentation of GPUDirect-TCPX and -TCPXO;
Mellanox/nccl-rdma-sharp-plugins; the release notes of NCCL for what has left.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Reader:
    """``text``, after the name, says who reads it; a ``plugin`` may well be in the image."""

    names: str
    text: str
    remedy: str
    plugin: bool = False


def _plugin(names: str, title: str) -> Reader:
    text = f"read by {title}, not by NCCL: without that plugin in the image there is no effect"
    return Reader(names, text, "keep it if the image has that plugin, else remove it", plugin=True)


_READERS = (
    Reader(
        r"TORCH_NCCL_\w+",
        "is read by PyTorch from the environment, and never from NCCL's file",
        "put it into nccl_env_environment",
    ),
    *(
        Reader(
            name,
            f"is not read by NCCL; it is the old name of PyTorch's TORCH_{name}, which it reads from the environment",
            f"put TORCH_{name} into nccl_env_environment instead",
        )
        for name in ("NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING")
    ),
    Reader(
        "NCCL_TIMEOUT",
        "is read by neither NCCL, which has no such time-out, nor PyTorch",
        "set DEEPSPEED_TIMEOUT, in minutes, in nccl_env_environment, or give a timeout to init_distributed in the"
        " script; the wait for an RDMA connection is nccl_env_timeout",
    ),
    Reader(
        r"NCCL_CHECKS?_DISABLE",
        "is not read by any NCCL since 2.3",
        "remove it; arguments are checked only with NCCL_CHECK_POINTERS: 1",
    ),
    Reader(
        r"NCCL_(LL|TREE|SINGLE_RING)_THRESHOLD|NCCL_RINGS",
        "is not read by any NCCL since 2.5",
        "remove it; NCCL chooses by itself, and NCCL_ALGO and NCCL_PROTO limit its choice",
    ),
    Reader(r"NCCL_IB_(CUDA_SUPPORT|GDR_LEVEL)", "is not read by any NCCL since 2.4", "set NCCL_NET_GDR_LEVEL"),
    _plugin(r"NCCL_(FASTRAK|SHIMNET)_\w+", "Google's plugin for GPUDirect-TCPXO"),
    _plugin(r"NCCL_GPUDIRECTTCPX_\w+", "Google's plugin for GPUDirect-TCPX"),
    _plugin(r"NCCL_(SHARP|UCX)_\w+|NCCL_IBEXT_DISABLE|NCCL_PLUGIN_P2P", "the plugin nccl-rdma-sharp of HPC-X"),
    _plugin(r"NCCL_TUNER_CONFIG_(FILE|PATH)", "the tuner plugin that NCCL_TUNER_PLUGIN names"),
)


def reader(name: str) -> Reader | None:
    """Who reads a name that NCCL does not read, or None where it does, or where that is not known."""
    return next((each for each in _READERS if re.fullmatch(each.names, name, re.ASCII)), None)
