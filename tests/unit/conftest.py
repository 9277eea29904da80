# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What tests of several modules share."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.common.parameters import PASS_VARS

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


@pytest.fixture
def invocation_asked() -> dict[str, Any]:
    """Arguments with which a module returns its own as ``invocation``, for tests that look for secrets in there.

    ansible-core 2.21 does so only where its configuration says so; older releases always do, and know no such argument.
    """
    return {"_ansible_inject_invocation": True} if "inject_invocation" in PASS_VARS else {}
