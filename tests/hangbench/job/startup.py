# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Hangs before the first step: in the rendezvous, in the creation of groups, in the first collective."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from .skeleton import FAULTY, PARAMETERS, RANK, STEPS, finish, hang_begins, model, request_fault, start, train_step

HOW = PARAMETERS["how"]


def import_plugins() -> None:
    while True:
        time.sleep(10)


def tokenize_corpus(work: int) -> None:
    """Compute on one processor for about ``work`` tenths of a second."""
    square = torch.rand(256, 256)
    for dummy in range(work * 100):
        square = torch.nn.functional.normalize(square @ square)


def download_weights() -> None:
    while True:
        time.sleep(5)


def before() -> None:
    """Do what goes wrong before the ranks have joined."""
    if RANK != FAULTY:
        return
    if HOW == "network":
        request_fault()
    else:
        hang_begins()
    if HOW == "import":
        import_plugins()
    tokenize_corpus(int(PARAMETERS.get("work", 0)))
    os.environ.update(PARAMETERS.get("environment", {}))


def broadcast_weights(dist: Any) -> None:
    dist.broadcast(torch.ones(1000), 0)


def main_rank_first(dist: Any) -> None:
    """Let rank 0 prepare the data first; the faulty rank leaves out its half of the barrier."""
    if RANK != FAULTY:
        dist.barrier()
    else:
        hang_begins()


def create_groups(dist: Any) -> None:
    if HOW == "members_only":
        if RANK != FAULTY:
            dist.new_group([rank for rank in range(dist.get_world_size()) if rank != FAULTY])
        else:
            hang_begins()
        dist.new_group()
    elif HOW == "group_order":
        groups = [[0, 1, 2], [0, 1]]
        if RANK == FAULTY:
            groups.reverse()
            hang_begins()
        for ranks in groups:
            group = dist.new_group(ranks)
            if RANK in ranks:
                dist.all_reduce(torch.ones(1), group=group)


def main() -> None:
    if HOW in ("import", "environment", "absent", "network"):
        before()
    dist = start()
    if HOW == "download" and RANK == FAULTY:
        hang_begins()
        download_weights()
    if HOW == "main_first":
        main_rank_first(dist)
    create_groups(dist)
    broadcast_weights(dist)
    network = model()
    for step in range(STEPS):
        train_step(dist, network, step)
    finish(dist)


if __name__ == "__main__":
    main()
