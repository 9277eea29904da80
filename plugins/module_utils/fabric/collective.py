# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Two seconds of all-reduce over all nodes: which interface Gloo or NCCL takes, seen on the sockets it has then.

A process of its own in each container, started by peer.py with the environment of the ranks. It imports torch,
waits for one line of JSON, reduces, prints one line and ends. It takes one thread, a megabyte of data and, with NCCL,
one GPU; beside a job that left no memory it does not try. Python 3.8.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

MARK = "SWARMSPEED_FABRIC "
MEMORY = 1 << 30
"""Bytes of memory, and of a GPU's, that must be free: torch takes a quarter of it, NCCL and CUDA's context half."""
PATIENCE = 40.0
"""Seconds for the others to come, and for a reduction."""
ELEMENTS = 1 << 18
"""A megabyte of float32."""
SIOCGIFADDR = 0x8915
ESTABLISHED = "01"


def decode(text: str) -> tuple[str, int]:
    """Address and port of an entry of /proc/net/tcp or tcp6 (of those that carry IPv4)."""
    address, port = text.split(":")
    return socket.inet_ntoa(struct.pack("=I", int(address[-8:], 16))), int(port, 16)


def connected(tables: list[str], inodes: set[str], but_port: int) -> list[str]:
    """Local addresses of the established sockets with these inodes, but those of the store at ``but_port``."""
    found: list[str] = []
    for table in tables:
        for line in table.splitlines()[1:]:
            words = line.split()
            if len(words) < 10 or words[3] != ESTABLISHED or words[9] not in inodes:
                continue
            (local, own_port), port = decode(words[1]), decode(words[2])[1]
            if but_port not in (own_port, port) and local not in found:
                found.append(local)
    return found


def own_addresses(but_port: int) -> list[str]:
    inodes = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            name = os.readlink(entry)  # noqa: PTH115 - Path has it from 3.9 on
        except OSError:
            continue
        if name.startswith("socket:["):
            inodes.add(name[8:-1])
    tables = [Path(f"/proc/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6")]
    return connected(tables, inodes, but_port)


def interface_of(address: str) -> str:
    """The interface that has an address; the address itself where none has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _index, name in socket.if_nameindex():
            try:
                packed = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue
            if socket.inet_ntoa(packed[20:24]) == address:
                return name
    return address


def available(meminfo: str) -> int:
    """Bytes that can be had without swapping."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return MEMORY


def reduce(torch: Any, requested: dict[str, Any]) -> dict[str, Any]:
    """Join the others, reduce for the time asked, and say what was seen."""
    dist = torch.distributed
    backend, rank, world = requested["backend"], requested["rank"], requested["world"]
    device = torch.device("cuda:0" if backend == "nccl" else "cpu")
    limit = timedelta(seconds=PATIENCE)
    began = time.monotonic()
    store = dist.TCPStore(requested["master"], requested["port"], world, rank == 0, timeout=limit)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=limit)
    data = torch.ones(ELEMENTS, dtype=torch.float32, device=device)
    joined, turns = time.monotonic(), 0
    over, wrong = False, False
    addresses: list[str] = []
    while not over:
        data.fill_(1.0)
        data[0] = 1.0 if time.monotonic() - joined >= requested["seconds"] else 0.0
        dist.all_reduce(data)
        # All see the same sum, and so end together.
        over, wrong, turns = float(data[0]) > 0, wrong or float(data[1]) != world, turns + 1
        addresses = addresses or own_addresses(requested["port"])
    ended = time.monotonic()
    dist.barrier()
    dist.destroy_process_group()
    if wrong:
        return {"ok": False, "said": f"the sum over {world} ranks is wrong"}
    return {
        "ok": True,
        "said": f"{turns} reductions of {ELEMENTS * 4 // 1024} KiB over {world} nodes",
        "interfaces": [interface_of(address) for address in addresses],
        "addresses": addresses,
        "joined": round(joined - began, 2),
        "seconds": round(ended - joined, 2),
    }


def why_not(torch: Any, backend: str) -> str:
    """Why nothing should be tried beside what runs here; empty where it can."""
    free = available(Path("/proc/meminfo").read_text(encoding="ascii"))
    if free < MEMORY:
        return f"only {free >> 20} MiB of memory are free"
    if backend == "nccl":
        if not torch.cuda.is_available():
            return "torch finds no GPU that it can use"
        free = torch.cuda.mem_get_info(0)[0]
        if free < MEMORY:
            return f"only {free >> 20} MiB are free on GPU 0"
    return ""


def main() -> None:
    """Import, wait for the word to begin, reduce, say how it went."""
    os.nice(5)
    answer: dict[str, Any] = {"ok": False}
    try:
        import torch.distributed  # noqa: PLC0415 - takes seconds, and may not be there

        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        requested = json.loads(line)
        torch.set_num_threads(1)
        reason = why_not(torch, requested["backend"])
        answer = {"ok": False, "tried": False, "said": reason} if reason else reduce(torch, requested)
        nccl = torch.cuda.nccl.version() if requested["backend"] == "nccl" else ()
        answer["nccl"] = ".".join(map(str, nccl))
    except Exception as error:
        words = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        answer = {"ok": False, "said": words[0][:400]}
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    os._exit(0)  # Gloo's threads sometimes abort a process that ends in the ordinary way


if __name__ == "__main__":
    main()
