# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The smoke test: what runs in a container, and whether its answers show CUDA on all GPUs of the host.

``nvidia-smi -L`` needs NVML alone, which works without /dev/nvidia-uvm. So CUDA itself is asked where the image has
Python, and elsewhere whether that device file is there. CUDA sees a single MIG instance (MIG user guide), so the GPUs
that it counts are the host's slots. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.gpu.explain import ENOUGH

UVM = "/dev/nvidia-uvm"
PROGRAM = """\
import ctypes
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
print("CUDA", cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)), count.value)
"""
"""cuInit and cuDeviceGetCount of the driver's API: neither makes a context, so nothing is taken of a GPU's memory."""
NOT_THERE = (126, 127)
"""How ``docker run`` ends where the image does not have the program (docker run, "Exit status")."""

_LISTED = re.compile(r"^GPU [0-9]+:", re.MULTILINE)
_ANSWER = re.compile(r"^CUDA ([0-9]{1,4}) ([0-9]{1,4})\s*$", re.MULTILINE)
_MEANS = {
    3: "CUDA_ERROR_NOT_INITIALIZED",
    100: "CUDA_ERROR_NO_DEVICE",
    304: "CUDA_ERROR_OPERATING_SYSTEM: a device file cannot be opened",
    802: "CUDA_ERROR_SYSTEM_NOT_READY: the NVLink fabric is not ready, as without NVIDIA's fabric manager",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: the driver's library and its kernel module differ",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: the image's compatibility library does not run on this GPU",
    999: f"CUDA_ERROR_UNKNOWN, as where {UVM} is missing or cannot be opened",
}
"""CUresult in cuda.h, as far as cuInit returns it."""
_MOST = 600


def problem(
    listed: Mapping[str, Any],
    cuda: Mapping[str, Any],
    node: Mapping[str, Any],
    *,
    image: str,
    gpus: int,
    slots: int,
) -> str:
    """Return what the container does not have, empty where it has everything.

    ``listed`` is what ``nvidia-smi -L`` returned, ``cuda`` what ``PROGRAM`` did, and ``node`` what ``test -c`` of the
    device file did; the last two have no ``rc`` where they were not run.
    """
    where = f"a container of {image}"
    if listed.get("rc") not in ENOUGH:
        return f"nvidia-smi in {where} ended with {listed.get('rc')} and printed: {_reported(listed)}"
    seen = len(_LISTED.findall(str(listed.get("stdout") or "")))
    if seen < max(1, gpus):
        return f"nvidia-smi in {where} lists {seen} of the host's {gpus} GPUs: {_reported(listed)}"
    if cuda.get("rc") is not None and cuda["rc"] not in NOT_THERE:
        return _of_cuda(where, slots, cuda)
    if node.get("rc") != 0:
        ended = f"test -c ended with {node.get('rc')}: {_reported(node)}"
        return f"{where} has no {UVM}, so CUDA does not start there ({ended})"
    return ""


def _of_cuda(where: str, slots: int, cuda: Mapping[str, Any]) -> str:
    answer = _ANSWER.search(str(cuda.get("stdout") or ""))
    if cuda["rc"] != 0 or not answer:
        return f"CUDA could not be queried in {where}: {_reported(cuda)}"
    result, count = int(answer[1]), int(answer[2])
    if result:
        means = f" ({_MEANS[result]})" if result in _MEANS else ""
        return f"CUDA does not start in {where}: cuInit returned {result}{means}"
    if count < max(1, slots):
        return f"CUDA in {where} has {count} of the host's {slots} GPUs"
    return ""


def _reported(answer: Mapping[str, Any]) -> str:
    return str(answer.get("stderr") or answer.get("stdout") or "nothing").strip()[-_MOST:]
