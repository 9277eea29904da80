# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether the CUDA of an image runs on a driver, in words.

An image states its CUDA in CUDA_VERSION in its environment (NVIDIA's images and what is built from them), else by
NVIDIA_REQUIRE_CUDA. A driver runs every CUDA of its own major version (minor version compatibility) and all older ones:
https://docs.nvidia.com/deploy/cuda-compatibility/
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

OK, NOTE, TOO_NEW, UNKNOWN = "ok", "note", "too_new", "unknown"


def image_cuda(environment: Iterable[str]) -> tuple[int, int] | None:
    """Return the CUDA version that an image's environment (``NAME=value``) names, or None."""
    values = dict(entry.partition("=")[::2] for entry in environment if "=" in entry)
    for text in (values.get("CUDA_VERSION", ""), *re.findall(r"cuda>=([\d.]+)", values.get("NVIDIA_REQUIRE_CUDA", ""))):
        found = version(text)
        if found:
            return found
    return None


def version(text: Any) -> tuple[int, int] | None:
    """Read ``12.8`` or ``12.8.1``; None where it is not a version."""
    match = re.match(r"\s*(\d{1,3})\.(\d{1,3})", str(text or ""))
    return (int(match[1]), int(match[2])) if match else None


def cuda_verdict(environment: Iterable[str], driver_cuda: Any, image: str, driver: Any) -> dict[str, str]:
    """Return ``level`` (``ok``, ``note``, ``too_new``, ``unknown``) and ``text``.

    ``driver_cuda`` is the newest CUDA that the driver knows, as gpu_info finds it.
    """
    wanted, known = image_cuda(environment), version(driver_cuda)
    if wanted is None:
        return {"level": UNKNOWN, "text": f"the image {image} does not state which CUDA it has"}
    has = f"the image {image} has CUDA {wanted[0]}.{wanted[1]}"
    if known is None:
        return {"level": UNKNOWN, "text": f"{has}, but the driver does not report which CUDA it supports"}
    knows = f"driver {driver} supports CUDA up to {known[0]}.{known[1]}"
    if wanted <= known:
        return {"level": OK, "text": f"{has}, and {knows}"}
    if wanted[0] == known[0]:
        return {
            "level": NOTE,
            "text": f"{has}, and {knows}: it runs, but not what is compiled at run time (PTX)",
        }
    return {
        "level": TOO_NEW,
        "text": f"{has}, but {knows} (Failed: CUDA driver version is insufficient for CUDA runtime version)",
    }
