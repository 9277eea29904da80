# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Healthy training with one long pause of a legitimate kind, in the middle of quick steps.

``seconds`` is how long the pause is to last. What takes as long as it takes (a compilation) is not prolonged; where a
real pause depends on storage or data that a test does not have, it is prolonged by work of the same form.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

from .skeleton import (
    PARAMETERS,
    PRIVATE,
    RANK,
    STEPS,
    WORLD,
    average,
    finish,
    gradients,
    model,
    progress,
    start,
    train_step,
)

SECONDS = float(PARAMETERS.get("seconds", 10))
PAUSE = PARAMETERS["pause"]
AT = STEPS // 2


@contextlib.contextmanager
def pausing(seconds: float = SECONDS) -> Iterator[float]:
    """Mark the pause for the runner; give the moment at which it is to end."""
    written = PRIVATE / f"new-pause-{RANK}"
    written.write_text(json.dumps({"begins": time.time(), "seconds": seconds}))
    written.rename(PRIVATE / f"pause-{RANK}")
    yield time.monotonic() + seconds


def compute(until: float) -> None:
    square = torch.rand(128, 128)
    while time.monotonic() < until:
        square = torch.nn.functional.normalize(square @ square)


def write_in_parts(until: float, name: str) -> None:
    """Write a checkpoint as slow storage takes it: a part, a flush, a wait."""
    with (PRIVATE / f"{name}-{RANK}.pt").open("wb") as file:
        while time.monotonic() < until:
            file.write(os.urandom(1 << 20))
            file.flush()
            os.fsync(file.fileno())
            time.sleep(0.3)
            file.seek(0)


class Slow(Dataset):  # type: ignore[misc]
    """Samples whose first one in each worker takes long, as opening an archive does."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.opened = seconds, False

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        if not self.opened:
            time.sleep(self.seconds)
            self.opened = True
        return torch.ones(64) * index


def batches(seconds: float) -> Iterator[torch.Tensor]:
    return iter(DataLoader(Slow(seconds), batch_size=2, num_workers=1, multiprocessing_context="fork"))


def compilation(dist: Any, network: Any) -> None:
    """Compile a deep model when it is first called; without a C++ compiler, which not every machine has."""
    network = torch.nn.Sequential(*(model() for dummy in range(PARAMETERS["layers"])))
    for layer in network:
        layer[2] = torch.nn.Linear(64, 64)
    compiled = torch.compile(network, backend="aot_eager")
    for step in range(STEPS):
        with pausing() if step == 0 else contextlib.nullcontext():
            loss = gradients(compiled)
        average(dist, network)
        progress(step, loss)


def first_batch(dist: Any, network: Any) -> None:
    with pausing():
        loaded = batches(SECONDS if PARAMETERS["slow"] == "all" or RANK == 0 else 0)
        next(loaded)
        for step in range(STEPS):
            next(loaded, None)
            train_step(dist, network, step)


def preparation(dist: Any, network: Any) -> None:
    """Let rank 0 prepare the data while the others wait in the first collective."""
    if RANK == 0:
        with pausing() as until:
            compute(until) if PARAMETERS["busy"] else time.sleep(SECONDS)
    dist.barrier()
    steps(dist, network, lambda step: None)


def steps(dist: Any, network: Any, pause: Any) -> None:
    for step in range(STEPS):
        if step == AT:
            pause(step)
        train_step(dist, network, step)


def save_by_one(dist: Any, network: Any) -> None:
    def save(step: int) -> None:
        if RANK == 0:
            with pausing() as until:
                write_in_parts(until, "checkpoint")
        dist.barrier()

    steps(dist, network, save)


def save_by_all(dist: Any, network: Any) -> None:
    def save(step: int) -> None:
        with pausing() as until:
            write_in_parts(until + RANK, "shard")

    steps(dist, network, save)


def evaluate_by_one(dist: Any, network: Any) -> None:
    def evaluate(step: int) -> None:
        if RANK == 0:
            with pausing() as until, torch.no_grad():
                compute(until)
        dist.broadcast(torch.ones(1), 0)

    steps(dist, network, evaluate)


def evaluate_by_all(dist: Any, network: Any) -> None:
    """Evaluate with collectives and without a line in the log."""

    def evaluate(step: int) -> None:
        with pausing() as until:
            going_on = torch.ones(1)
            while going_on.item() > 0:
                compute(time.monotonic() + 0.2)
                going_on = torch.tensor([float(RANK == 0 and time.monotonic() < until)])
                dist.all_reduce(going_on)

    steps(dist, network, evaluate)


def loader_restart(dist: Any, network: Any) -> None:
    """Start the workers again at each epoch; in one of them that takes long."""
    for epoch in range(3):
        with pausing() if epoch == 1 else contextlib.nullcontext():
            loaded = batches(SECONDS if epoch == 1 else 0.2)
            for number, dummy in enumerate(loaded):
                train_step(dist, network, epoch * 8 + number)


def growing_steps(dist: Any, network: Any) -> None:
    """Train on sequences that become longer: each step takes longer than the last one."""
    for step in range(STEPS):
        with pausing() if step == STEPS - 1 else contextlib.nullcontext():
            compute(time.monotonic() + SECONDS * (step + 1) ** 2 / STEPS**2)
            train_step(dist, network, step)


def silent_steps(dist: Any, network: Any) -> None:
    """Train on without a line, as with a large logging interval."""
    for step in range(STEPS):
        if step == AT:
            with pausing() as until:
                going_on = torch.ones(1)
                while going_on.item() > 0:
                    gradients(network)
                    average(dist, network)
                    time.sleep(0.2)
                    going_on = torch.tensor([float(RANK == 0 and time.monotonic() < until)])
                    dist.all_reduce(going_on)
        train_step(dist, network, step)


def straggler(dist: Any, network: Any) -> None:
    """One rank is slow in some steps, and the others wait for it."""
    for step in range(STEPS):
        if step in (AT, AT + 2) and RANK == WORLD - 1:
            with pausing() as until:
                compute(until) if PARAMETERS["busy"] else time.sleep(SECONDS)
        train_step(dist, network, step)


def pipeline(dist: Any, network: Any) -> None:
    """A pipeline whose last stage computes long in one step."""
    for step in range(STEPS):
        if RANK > 0:
            dist.recv(torch.empty(64), RANK - 1)
        if step == AT and RANK == WORLD - 1:
            with pausing() as until:
                compute(until)
        if RANK < WORLD - 1:
            dist.send(torch.ones(64), RANK + 1)
        train_step(dist, network, step)


def main() -> None:
    dist = start()
    globals()[PAUSE](dist, model())
    finish(dist)


if __name__ == "__main__":
    main()
