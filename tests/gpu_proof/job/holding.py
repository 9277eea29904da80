# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Hold 2 GiB of the first GPU until standard input ends, as a process that another job left over does."""

from __future__ import annotations

import sys

import torch

if __name__ == "__main__":
    held = torch.ones(2 * 1024**3, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    print("holding", flush=True)
    sys.stdin.read()
