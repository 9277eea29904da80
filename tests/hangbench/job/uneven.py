# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Ranks with different numbers of batches: what a rank does when it has no more, while the others go on."""

from __future__ import annotations

from typing import Any

import torch

from .skeleton import (
    FAULTY,
    PARAMETERS,
    RANK,
    STEPS,
    WORLD,
    average,
    finish,
    gradients,
    hang_begins,
    model,
    progress,
    start,
    train_step,
)

BATCHES = STEPS - (int(PARAMETERS.get("missing", 1)) if RANK == FAULTY else 0)


def out_of_batches() -> None:
    if RANK == FAULTY:
        hang_begins()


def evaluate_alone(network: Any) -> None:
    """Evaluate without collectives, over and over, as a job does that evaluates until it is stopped."""
    with torch.no_grad():
        while True:
            network(torch.randn(256, 64)).sum()


def share_epoch_metrics(dist: Any) -> None:
    dist.all_gather([torch.empty(8) for dummy in range(WORLD)], torch.ones(8))


def wait_for_next_epoch(dist: Any) -> None:
    dist.distributed_c10d._get_default_store().get("next-epoch")


def plain(dist: Any, network: Any) -> None:
    """Train on the batches that this rank has, then do what a job does at the end of an epoch."""
    for step in range(BATCHES):
        train_step(dist, network, step)
    out_of_batches()
    if PARAMETERS["then"] == "metrics":
        share_epoch_metrics(dist)
    elif PARAMETERS["then"] == "evaluate":
        evaluate_alone(network)
    elif PARAMETERS["then"] == "store":
        wait_for_next_epoch(dist)


def accumulated(dist: Any, network: Any) -> None:
    """Average every second batch: the last, incomplete pair is left out."""
    for batch in range(BATCHES):
        loss = gradients(network)
        if batch % 2 == 1:
            average(dist, network)
            progress(batch, loss)
    out_of_batches()


def data_parallel(dist: Any, network: Any) -> None:
    """Train with DistributedDataParallel without its join()."""
    parallel = torch.nn.parallel.DistributedDataParallel(network)
    for step in range(BATCHES):
        loss = parallel(torch.randn(16, 64)).square().mean()
        loss.backward()
        progress(step, loss)
    out_of_batches()


def main() -> None:
    dist = start()
    network = model()
    {"accumulate": accumulated, "ddp": data_parallel}.get(PARAMETERS["then"], plain)(dist, network)
    finish(dist)


if __name__ == "__main__":
    main()
