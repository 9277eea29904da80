# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes each collective that a rank enters and leaves, so that the runner can compare a case's truth with it.

Only in verification: a run with a doctor calls torch's functions as they are.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d

OPERATIONS = (
    *("all_reduce", "broadcast", "reduce", "barrier", "all_gather", "all_gather_into_tensor", "gather", "scatter"),
    *("reduce_scatter_tensor", "all_to_all", "all_to_all_single"),
)
POINT_TO_POINT = ("send", "recv")
WITHOUT_NUMBER = ("init_process_group", "new_group")


def install(path: Path) -> None:
    trace = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    numbers: dict[tuple[int, ...], int] = {}

    def write(**entry: Any) -> None:
        os.write(trace, json.dumps(entry).encode() + b"\n")

    def traced(name: str, function: Any) -> Any:
        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            group = next((one for one in (*arguments, *options.values()) if isinstance(one, dist.ProcessGroup)), None)
            number, ranks = None, None
            if name not in WITHOUT_NUMBER:
                ranks = tuple(dist.get_process_group_ranks(group or dist.group.WORLD))
            if name in OPERATIONS and ranks is not None:
                number = numbers[ranks] = numbers.get(ranks, 0) + 1
            entry = {"operation": name, "sequence": number, "group": ranks}
            write(**entry)
            result = function(*arguments, **options)
            if hasattr(result, "wait") and options.get("async_op"):
                return Waited(result, lambda: write(**entry, left=True))
            write(**entry, left=True)
            return result

        return call

    for name in (*OPERATIONS, *POINT_TO_POINT, *WITHOUT_NUMBER):
        wrapped = traced(name, getattr(distributed_c10d, name))
        for module in (distributed_c10d, dist):
            setattr(module, name, wrapped)


class Waited:
    """A collective that was started: it is left when it was waited for."""

    def __init__(self, work: Any, left: Any) -> None:
        self._work, self._left = work, left

    def wait(self, *arguments: Any) -> Any:
        result = self._work.wait(*arguments)
        self._left()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)
