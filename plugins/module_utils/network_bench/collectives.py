# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Collectives of a network benchmark over sizes of messages, within a time.

Runs inside the containers of the benchmark, mounted beside rank.py; standard library and torch, Python 3.8.

Bus bandwidth is what NCCL's own tests call so: bytes a second, times a factor for what an operation moves, so that it
can be compared with the speed of a link whatever the number of ranks.
Factors: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from .pairs import Store, Trouble, first_line

OPS = ("all_reduce", "all_gather", "reduce_scatter")
REPETITIONS = 50
"""More than this many do not make a median better."""
HANG_SECONDS = 30.0
"""Seconds beyond the time of all collectives after which one that does not end counts as hung."""


def factor(op: str, world: int) -> float:
    """Bus bandwidth over bytes a second, for a number of ranks."""
    return (2 if op == "all_reduce" else 1) * (world - 1) / world


def elements(size: int, world: int) -> int:
    """How many float32 make a message of about this many bytes that all ranks can share evenly."""
    return max(size // 4 // world, 1) * world


def repetitions(seconds: float, share: float, moved: float, most: float) -> int:
    """How often an operation is timed again.

    ``seconds``: what the first time took. ``share``: seconds there are for all of it. ``moved``: bytes that a rank
    sends each time. ``most``: how many it may.
    """
    return max(0, min(REPETITIONS, int(share / max(seconds, 1e-6)), int(most / max(moved, 1.0))) - 1)


def collectives(
    requested: Mapping[str, Any], store: Store, rank: int, slot: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Time every operation for every size, the small ones first.

    ``slot``: number of the GPU with NCCL. ``report`` is called with what is being done. Raises Trouble that names it.
    What torch raises for an operation that a backend lacks is noted, and the others go on.
    """
    import torch  # noqa: PLC0415  # not on the controller, and only after the environment is set
    import torch.distributed as dist  # noqa: PLC0415

    world, seconds = sum(int(number) for number in requested["slots"]), float(requested["collective_seconds"])
    device = torch.device("cpu")
    if requested["backend"] == "nccl":
        device = torch.device("cuda", slot)
        torch.cuda.set_device(device)
    dist.init_process_group(
        requested["backend"],
        store=dist.PrefixStore("world", store),
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=seconds + HANG_SECONDS),
    )
    measured: list[dict[str, Any]] = []
    unsupported: dict[str, str] = {}
    cases = [(size, op) for size in requested["sizes"] for op in OPS]
    last: dict[str, float] = {}
    stopped, end = "", time.monotonic() + seconds
    for number, (size, op) in enumerate(cases):
        if op in unsupported:
            continue
        report(f"{op} of {size} bytes")
        count = elements(size, world)
        share = (end - time.monotonic()) / (len(cases) - number)
        # A message four times as long takes about four times as long: twice, to warm up and to be timed.
        if not _agreed(store, f"go/{number}", rank, int(8 * last.get(op, 0.0) < end - time.monotonic())):
            stopped = f"no messages from {size} bytes on: {op} takes too long for the time there is"
            break
        run = operation(op, count, world, device)
        try:
            timed(run, device)
        except RuntimeError as error:
            if "support" not in str(error):
                raise Trouble(f"{op} of {size} bytes: {first_line(error)}") from error
            unsupported[op] = first_line(error)
            continue
        taken = [timed(run, device)]
        moved = count * 4 * factor(op, world)
        more = repetitions(taken[0], share, moved, requested["collective_bytes"] / len(cases))
        for dummy in range(_agreed(store, f"more/{number}", rank, more)):
            taken.append(timed(run, device))
        slowest = torch.tensor([statistics.median(taken)], dtype=torch.float64, device=device)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        last[op] = float(slowest.item())
        measured.append({"op": op, "bytes": count * 4, "seconds": last[op], "repetitions": len(taken)})
    dist.destroy_process_group()
    return {"measured": measured, "unsupported": unsupported, "stopped": stopped, "world_size": world}


def _agreed(store: Store, key: str, rank: int, value: int) -> int:
    """What rank 0 has decided: clocks and times differ between ranks, and all must do the same."""
    if rank == 0:
        store.set(f"agreed/{key}", str(value))
    return int(store.get(f"agreed/{key}"))


def operation(op: str, count: int, world: int, device: Any) -> Callable[[], object]:
    """Return a collective over ``count`` float32 in all, ready to be called."""
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    whole = torch.zeros(count, dtype=torch.float32, device=device)
    part = torch.zeros(count // world, dtype=torch.float32, device=device)
    if op == "all_reduce":
        return lambda: dist.all_reduce(whole)
    # Torch 2.13 has new names for both, and says so at each call of the old ones.
    if op == "all_gather":
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        return lambda: gather(whole, part)
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    return lambda: scatter(part, whole)


def timed(run: Callable[[], object], device: Any) -> float:
    """Seconds that a collective takes, until its result is there."""
    begun = time.monotonic()
    run()
    if device.type == "cuda":
        import torch  # noqa: PLC0415

        torch.cuda.synchronize(device)
    return time.monotonic() - begun
