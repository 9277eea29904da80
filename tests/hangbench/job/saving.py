# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One rank saves or evaluates inside a condition, and what it calls there is a collective."""

from __future__ import annotations

from typing import Any

import torch

from .skeleton import AT, FAULTY, PARAMETERS, PRIVATE, RANK, STEPS, WORLD, finish, hang_begins, model, start, train_step


def write(network: Any, name: str) -> None:
    torch.save(network.state_dict(), PRIVATE / f"{name}-{RANK}.pt")


def gather_shards(dist: Any) -> None:
    dist.all_gather([torch.empty(512) for dummy in range(WORLD)], torch.ones(512))


def save_checkpoint(dist: Any, network: Any) -> None:
    """Save a sharded model: every rank must call it."""
    gather_shards(dist)
    write(network, "checkpoint")


def save_behind_barrier(dist: Any, network: Any) -> None:
    write(network, "barrier")
    dist.barrier()


def gather_optimizer(dist: Any) -> None:
    parts = [None] * WORLD
    dist.all_gather_object(parts, {"rank": RANK, "state": [0.0] * 64})


def evaluate(dist: Any, network: Any) -> None:
    correct = network(torch.randn(64, 64)).sum().detach()
    dist.reduce(correct, 0)


def broadcast_best(dist: Any) -> None:
    dist.broadcast(torch.ones(1), FAULTY)


def main() -> None:
    dist = start()
    network = model()
    how = PARAMETERS["how"]
    for step in range(STEPS):
        train_step(dist, network, step)
        if step == AT and RANK == FAULTY:
            hang_begins()
            if how == "sharded":
                save_checkpoint(dist, network)
            elif how == "barrier":
                save_behind_barrier(dist, network)
            elif how == "optimizer":
                gather_optimizer(dist)
            elif how == "evaluate":
                evaluate(dist, network)
            elif how == "best":
                broadcast_best(dist)
    finish(dist)


if __name__ == "__main__":
    main()
