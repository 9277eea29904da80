# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What some work costs: how its time grows with its size, as an absolute time says nothing, and its memory."""

from __future__ import annotations

import contextlib
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator

Work = Callable[[], object]
ROUNDS = 5
"""How often a piece of work is timed at most: the best counts, as another process may have had the processor."""
SHORTEST = 1e-4
"""Seconds; what takes less is counted as this much, as a clock says little of it."""


def assert_growth(small: Work, large: Work, less_than: float) -> None:
    """Assert that the large work takes less than so many times the time of the small one."""
    limit = less_than * max(SHORTEST, min(seconds(small) for dummy in range(ROUNDS)))
    best = float("inf")
    for dummy in range(ROUNDS):
        best = min(best, seconds(large))
        if best < limit:
            return
    raise AssertionError(f"takes {best:.4f} s, not below {limit:.4f} s, {less_than} times what the small work takes")


def seconds(work: Work) -> float:
    """Time of the processor, without a search for garbage, which goes through what other tests left."""
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


@contextlib.contextmanager
def peak_memory() -> Iterator[Callable[[], int]]:
    """Measure the most bytes that Python has at once for the work, what there was before left out."""
    found = [0]
    tracemalloc.start()
    try:
        yield lambda: found[0]
    finally:
        found[0] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
