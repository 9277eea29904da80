# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a machine has, as torch sees it. Names no host, no path and no serial number. Usage: machine.py RESULT."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import torch


def nvcc() -> str | None:
    """Return the release of the CUDA compiler on the PATH, or beside /usr/local/cuda."""
    program = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if program is None:
        return None
    printed = subprocess.run([program, "--version"], text=True, capture_output=True, check=False, timeout=30).stdout
    release = re.search(r"release (\d+\.\d+)", printed)
    return release.group(1) if release else None


def found() -> dict[str, object]:
    """Return versions and devices."""
    gpus = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    version = torch.cuda.nccl.version() if gpus else None
    return {
        "gpus": [
            {"name": gpu.name, "memory_bytes": gpu.total_memory, "sm": f"{gpu.major}.{gpu.minor}"} for gpu in gpus
        ],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda_of_torch": torch.version.cuda,
        "nccl_of_torch": ".".join(map(str, version)) if isinstance(version, tuple) else None,
        "nvcc": nvcc(),
        "compiler": shutil.which("g++") is not None,
        **{name.replace("-", "_"): metadata.version(name) for name in ("deepspeed", "ansible-core", "nvidia-ml-py")},
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(found()), encoding="utf-8")
