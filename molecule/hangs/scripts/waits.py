"""A training that does nothing but steps. One rank waits in a function of its own until a file is there."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist

GO = Path("/tmp/hang-is-over")


def download_shard() -> None:
    """Stand in for a download that makes no progress."""
    while not GO.exists():
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int)
    parser.add_argument("--on", type=int)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()
    deepspeed.init_distributed("gloo")
    rank = dist.get_rank()
    for step in range(1, args.steps + 1):
        time.sleep(0.2)
        if step == 20 and rank == args.on:
            download_shard()
        dist.all_reduce(torch.ones(1))
        if rank == 0:
            print(f"step {step}/{args.steps} loss {1 / step:.4f}", flush=True)
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # see examples/digits


if __name__ == "__main__":
    main()
