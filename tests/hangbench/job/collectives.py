# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Data-parallel training in which one rank skips, reorders or mismatches a collective."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .skeleton import (
    AT,
    FAULTY,
    PARAMETERS,
    RANK,
    STEPS,
    WORLD,
    average,
    due,
    finish,
    gradients,
    hang_begins,
    model,
    progress,
    start,
    train_step,
)

FAULT = PARAMETERS["fault"]


def share_metrics(dist: Any, values: int = 8) -> None:
    dist.all_gather([torch.empty(values) for dummy in range(WORLD)], torch.ones(values))


def synchronise_statistics(dist: Any) -> None:
    dist.broadcast(torch.ones(4), 0)


def step_unless_bad_loss(dist: Any, network: Any, step: int) -> None:
    """Skip the update, and with it the all_reduce, where this rank's loss is not a number."""
    loss = gradients(network) * (math.nan if due(step) else 1)
    if torch.isnan(loss):
        hang_begins()
    else:
        average(dist, network)
    share_metrics(dist)
    progress(step, loss)


def step_ignoring_errors(dist: Any, network: Any, step: int) -> None:
    try:
        loss = gradients(network)
        if due(step):
            raise ValueError("could not decode a sample")
        average(dist, network)
        progress(step, loss)
    except ValueError as error:
        print(f"[rank{RANK}] warning: {error}, the batch is skipped", flush=True)
        hang_begins()
    dist.barrier()


def step_with_early_stopping(dist: Any, network: Any, step: int) -> bool:
    train_step(dist, network, step)
    if due(step):
        print(f"[rank{RANK}] early stopping: no improvement", flush=True)
        hang_begins()
    return due(step)


def step_with_cached_statistics(dist: Any, network: Any, step: int) -> None:
    """Broadcast statistics unless this rank believes that it has them."""
    if due(step):
        hang_begins()
    else:
        synchronise_statistics(dist)
    train_step(dist, network, step)


def step_in_another_order(dist: Any, network: Any, step: int) -> None:
    """Share metrics and gradients, in the order in which this rank's callbacks were registered."""
    calls: list[Callable[[], None]] = [lambda: share_metrics(dist), lambda: train_step(dist, network, step)]
    if due(step):
        calls.reverse()
        hang_begins()
    for call in calls:
        call()


def step_with_reordered_hooks(dist: Any, network: Any, step: int) -> None:
    loss = gradients(network)
    calls: list[Callable[[], None]] = [lambda: synchronise_statistics(dist), lambda: average(dist, network)]
    if due(step):
        calls.reverse()
        hang_begins()
    for call in calls:
        call()
    progress(step, loss)


def step_with_asynchronous_order(dist: Any, network: Any, step: int) -> None:
    """Start two collectives and wait for both; the faulty rank starts them the other way round."""
    loss = gradients(network)
    flat = torch.ones(1000)
    pieces = [torch.empty(1000) for dummy in range(WORLD)]
    if due(step):
        hang_begins()
        works = [dist.all_gather(pieces, flat, async_op=True), dist.all_reduce(flat.clone(), async_op=True)]
    else:
        works = [dist.all_reduce(flat.clone(), async_op=True), dist.all_gather(pieces, flat, async_op=True)]
    for work in works:
        work.wait()
    progress(step, loss)


def step_by_buckets(dist: Any, network: Any, step: int) -> None:
    """All_reduce gradients by buckets of a number of bytes: a larger tensor has more of them."""
    loss = gradients(network)
    size, kind = 4000, torch.float32
    if due(step):
        size = 5000 if FAULT == "shape" else size
        kind = torch.float64 if FAULT == "dtype" else kind
        hang_begins()
    flat = torch.ones(size, dtype=kind)
    whole, width = flat.numel() * flat.element_size(), 4000
    for begin in range(0, whole, width):
        reduce_bucket(dist, torch.ones(min(width, whole - begin) // 4))
    share_metrics(dist)
    progress(step, loss)


def reduce_bucket(dist: Any, bucket: Any) -> None:
    dist.all_reduce(bucket)


def step_with_a_root(dist: Any, network: Any, step: int) -> None:
    """Broadcast from, or reduce to, the rank that this one believes to be the root."""
    loss = gradients(network)
    root = (FAULTY if due(step) else 0) if step == AT else 0
    if due(step):
        hang_begins()
    if FAULT == "broadcast_root":
        dist.broadcast(torch.ones(50000), root)
    else:
        dist.reduce(torch.ones(50000), root)
    train_step(dist, network, step)
    progress(step, loss)


def step_with_another_operation(dist: Any, network: Any, step: int) -> None:
    loss = gradients(network)
    if due(step):
        hang_begins()
        dist.broadcast(torch.ones(5000), 0)
    else:
        average(dist, network)
    progress(step, loss)


STEP = {
    "bad_loss": step_unless_bad_loss,
    "swallowed": step_ignoring_errors,
    "early_stop": step_with_early_stopping,
    "cached": step_with_cached_statistics,
    "callbacks": step_in_another_order,
    "hooks": step_with_reordered_hooks,
    "asynchronous": step_with_asynchronous_order,
    "shape": step_by_buckets,
    "dtype": step_by_buckets,
    "broadcast_root": step_with_a_root,
    "reduce_root": step_with_a_root,
    "operation": step_with_another_operation,
}


def main() -> None:
    dist = start()
    network = model()
    for step in range(STEPS):
        if STEP[FAULT](dist, network, step):
            break
    finish(dist)


if __name__ == "__main__":
    main()
