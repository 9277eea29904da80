# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One all-reduce over all ranks, and which NCCL it ran in. Launched by the role deepspeed_launch.

Usage: collective.py --result FILE
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--result", required=True)
    parser.add_argument("--local_rank", type=int, default=-1)
    args = parser.parse_args()
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = torch.device(get_accelerator().current_device_name())
    numbers = torch.full((1 << 20,), float(rank + 1), device=device)
    dist.all_reduce(numbers)
    right = bool((numbers == ranks * (ranks + 1) / 2).all().item())
    if rank == 0:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        files = sorted({line.split()[-1] for line in maps if "libnccl" in line})
        version = torch.cuda.nccl.version() if torch.cuda.is_available() else None
        found = {
            "backend": dist.get_backend(),
            "ranks": ranks,
            "sum_is_right": right,
            "nccl_of_torch": ".".join(map(str, version)) if isinstance(version, tuple) else version,
            # beside torch's own packages, or some other library that LD_LIBRARY_PATH or LD_PRELOAD brought in
            "nccl_loaded": [Path(file).name for file in files],
            "nccl_from_torch_packages": all("/nvidia/nccl/" in file or "/torch/lib/" in file for file in files),
        }
        Path(args.result).write_text(json.dumps(found), encoding="utf-8")
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
