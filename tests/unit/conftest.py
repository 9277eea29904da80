# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What tests of several modules share."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

Seconds = Callable[[Callable[[], object]], float]


@pytest.fixture
def seconds() -> Seconds:
    """Measures a piece of work, for comparisons of two sizes in one test; an absolute time would say nothing."""

    def measured(work: Callable[[], object]) -> float:
        """The best of five, as another process may have had the processor; no search of what other tests left."""
        best = float("inf")
        gc.collect()
        gc.disable()
        try:
            for dummy in range(5):
                began = time.process_time()
                work()
                best = min(best, time.process_time() - began)
        finally:
            gc.enable()
        return best

    return measured
