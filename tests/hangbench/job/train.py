# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Data-parallel training; the runner injects what goes wrong (a stopped rank, a cut network, a lost node)."""

from __future__ import annotations

import os
import signal
from typing import Any

import torch

from .skeleton import PARAMETERS, STEPS, due, finish, hang_begins, model, request_fault, start, train_step


def stop_itself() -> None:
    hang_begins()
    os.kill(os.getpid(), signal.SIGSTOP)


def leave_a_worker_and_die() -> None:
    """Die as a rank does that the kernel kills, while a forked worker keeps its sockets open."""
    if os.fork() == 0:
        signal.pause()
    hang_begins()
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_epoch(dist: Any, epoch: int) -> None:
    dist.distributed_c10d._get_default_store().get(f"epoch-{epoch}")


def augment(work: int) -> None:
    """Compute on one processor for about ``work`` tenths of a second."""
    batch = torch.rand(256, 256)
    for dummy in range(work * 100):
        batch = torch.nn.functional.normalize(batch @ batch)


def main() -> None:
    dist = start()
    network = model()
    for step in range(STEPS):
        if due(step):
            {"request": request_fault, "stop": stop_itself, "orphan": leave_a_worker_and_die}[PARAMETERS["how"]]()
        if PARAMETERS.get("store") and step == PARAMETERS["step"] and dist.get_rank() != PARAMETERS["rank"]:
            wait_for_epoch(dist, step)
        augment(int(PARAMETERS.get("work", 0)) if due(step) else 0)
        train_step(dist, network, step)
    finish(dist)


if __name__ == "__main__":
    main()
