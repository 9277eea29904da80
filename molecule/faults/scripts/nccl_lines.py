"""STAND-IN for a rank with NCCL: prints the lines that NCCL 2.26 would, of the interface that nccl_env chose.

The second rank prints another interface. There is no GPU here, and no NCCL.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

rank, world = int(os.environ["NODE_RANK"]), int(os.environ["WORLD_SIZE"])
settings = dict(line.split("=", 1) for line in Path("/etc/nccl.conf").read_text().splitlines() if "=" in line)
interface = "docker_gwbridge" if rank == 1 else settings["NCCL_SOCKET_IFNAME"].lstrip("=")
for line in (
    f"NET/Socket : Using [0]{interface}:10.0.0.{rank + 2}<0>",
    "Using network Socket",
    f"ncclCommInitRank comm 0x5a rank {rank} nranks {world} cudaDev 0 nvmlDev 0 busId 1 commId 0x7 - Init COMPLETE",
    "Connected all rings, use ring PXN 0 GDR 0",
):
    print(f"stand-in:{os.getpid()}:1 [0] NCCL INFO {line}", flush=True)
time.sleep(50)  # three readings of nvidia-smi, 10 s apart
