# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keep every GPU busy for a time, and print steps and a loss. Launched by the role deepspeed_launch.

Usage: computing.py --seconds 120
"""

from __future__ import annotations

import argparse
import time

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator

WIDTH = 4096
ROUNDS = 200
"""Products of matrices in a step: of bf16 on an H100 about 40 ms."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--local_rank", type=int, default=-1)
    seconds = parser.parse_args().seconds
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    on_gpu = get_accelerator().device_name().startswith("cuda")
    width = WIDTH if on_gpu else WIDTH // 16
    numbers = torch.randn(width, width, device=get_accelerator().current_device_name(), dtype=torch.bfloat16)
    began, step = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        for dummy in range(ROUNDS):
            numbers = torch.nn.functional.normalize(numbers @ numbers)
        total = numbers.float().sum()
        dist.all_reduce(total)
        step += 1
        if step % 20 == 1:
            print(f"step {step} loss {abs(total.item()):.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
