# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pipeline, mixture of experts and nested groups, written by hand on four ranks."""

from __future__ import annotations

import time
from typing import Any

import torch

from .skeleton import AT, FAULTY, PARAMETERS, RANK, STEPS, WORLD, due, finish, hang_begins, progress, start

FAULT = PARAMETERS["fault"]
MICROBATCHES = 4
LARGE = 4_000_000
"""Elements that fill the buffers of a socket, so that a send waits for its recv."""


def receive_activation(dist: Any, source: int) -> Any:
    activation = torch.empty(256)
    dist.recv(activation, source)
    return activation


def send_activation(dist: Any, activation: Any, target: int) -> None:
    dist.send(activation, target)


def exchange_with(dist: Any, other: int, send_first: bool) -> None:
    """Exchange large boundaries with a neighbour: one sends first, the other receives first."""
    boundary = torch.ones(LARGE)
    if send_first:
        dist.send(boundary, other)
        dist.recv(boundary, other)
    else:
        dist.recv(boundary, other)
        dist.send(boundary, other)


def compile_stage() -> None:
    while True:
        time.sleep(1)


def pipeline_step(dist: Any, step: int) -> None:
    count, target = MICROBATCHES, RANK + 1
    if due(step):
        hang_begins()
        count -= FAULT == "microbatches"
        target = (RANK + 2) % WORLD if FAULT == "wrong_peer" else target
        if FAULT == "stage_sleeps":
            compile_stage()
    for number in range(count):
        activation = receive_activation(dist, RANK - 1) if RANK > 0 else torch.ones(256) * number
        if RANK < WORLD - 1:
            send_activation(dist, activation + 1, target)
    if FAULT == "both_send" and RANK in (1, 2):
        exchange_with(dist, 3 - RANK, RANK == 1 or due(step))
    dist.all_reduce(torch.ones(64))
    progress(step)


def expert_layer(dist: Any, tokens: Any) -> None:
    """Send tokens to the experts of all ranks, and back."""
    received = torch.empty_like(tokens)
    dist.all_to_all_single(received, tokens)
    dist.all_to_all_single(tokens, received * 2)


def balance_experts() -> None:
    while True:
        time.sleep(1)


def expert_step(dist: Any, step: int) -> None:
    tokens = torch.ones(WORLD * 2, 16)
    for layer in range(2):
        if due(step) and layer == 1:
            hang_begins()
            if FAULT in ("no_tokens", "layer_drop"):
                continue
            balance_experts()
        expert_layer(dist, tokens)
    dist.all_reduce(torch.ones(512))
    progress(step)


def reduce_in(dist: Any, group: Any) -> None:
    dist.all_reduce(torch.ones(512), group=group)


def nested_step(dist: Any, tensor: Any, data: Any, step: int) -> None:
    """Reduce in the tensor-parallel group, then in the data-parallel group, then in all ranks."""
    order = [tensor, data]
    if due(step):
        hang_begins()
        if FAULT == "nested_skip":
            order = [data]
        elif FAULT == "nested_world":
            order = [dist.group.WORLD, data]
        elif FAULT == "nested_wrong":
            order = [data, data]
    for group in order:
        reduce_in(dist, group)
    dist.all_gather([torch.empty(8) for dummy in range(WORLD)], torch.ones(8))
    progress(step)


def overlapping_step(dist: Any, groups: Any, step: int) -> None:
    """Reduce in each group of two neighbours, in the same order on all ranks but the faulty one."""
    mine = [group for ranks, group in groups if RANK in ranks]
    if due(step):
        hang_begins()
        mine.reverse()
    for group in mine:
        reduce_in(dist, group)
    progress(step)


def main() -> None:
    dist = start()
    pairs = []
    if FAULT == "nested_order":
        pairs = [(ranks, dist.new_group(ranks)) for ranks in ([0, 1], [1, 2], [0, 2])]
    elif FAULT.startswith("nested"):
        tensors = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        datas = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    for step in range(STEPS):
        if FAULT == "nested_order":
            overlapping_step(dist, pairs, step)
        elif FAULT.startswith("nested"):
            nested_step(dist, tensors[RANK // 2], datas[RANK % 2], step)
        elif FAULT in ("no_tokens", "layer_drop", "expert_sleeps"):
            expert_step(dist, step)
        else:
            pipeline_step(dist, step)
        time.sleep(0.1)
    finish(dist)


assert FAULTY >= 0 and AT >= 0

if __name__ == "__main__":
    main()
