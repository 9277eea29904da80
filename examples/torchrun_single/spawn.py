# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Start train.py's ranks by mp.spawn: one command, and a process for each GPU, or for each slot on CPUs.

NPROC_PER_NODE says how many; without it there is one for each GPU. Takes the arguments of train.py.
"""

from __future__ import annotations

import argparse
import os
import sys

import torch
from torch import multiprocessing
from train import arguments, run


def rank(number: int, world: int, args: argparse.Namespace) -> None:
    """Be one rank, in a process of its own."""
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE=str(world))
    code = run(args)
    sys.stdout.flush()
    # Not sys.exit: see train.py. Where it is not 0, spawn raises an error in the process that waits.
    os._exit(code)


def main() -> int:
    args = arguments()
    world = int(os.environ.get("NPROC_PER_NODE") or torch.cuda.device_count() or 1)
    if os.environ.get("NNODES", "1") != "1":
        raise SystemExit(
            "torchrun_single: spawn.py starts the ranks of one node. Remedy: one node in deepspeed_launch_include"
        )
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    print(f"torchrun_single: spawning {world} ranks", flush=True)
    multiprocessing.spawn(rank, args=(world, args), nprocs=world)
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
