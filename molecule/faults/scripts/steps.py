"""A training that does nothing but steps, and on one rank what it is asked for: fail, wait for ever, or eat memory."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int)
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--raise-on", type=int, default=-1)
    parser.add_argument("--hang-on", type=int, default=-1)
    parser.add_argument("--eat-on", type=int, default=-1)
    args = parser.parse_args()
    deepspeed.init_distributed("gloo")
    rank = dist.get_rank()
    kept = []
    for step in range(1, args.steps + 1):
        time.sleep(0.2)
        if step == 10 and rank in (args.raise_on, args.hang_on, args.eat_on):
            Path("made").write_text(str(time.time()))  # the test reads when
        if step == 10 and rank == args.raise_on:
            raise ValueError("a column is missing")
        if step == 10 and rank == args.hang_on:
            time.sleep(3600)
        if step >= 10 and rank == args.eat_on:
            kept.append(bytearray(os.urandom(1 << 20)) * 64)
        total = torch.ones(1)
        dist.all_reduce(total)
        if rank == 0:
            print(f"step {step}/{args.steps} loss {1 / step:.4f}", flush=True)
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # see examples/digits


if __name__ == "__main__":
    main()
