# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How much a run of the tests searches: with ``--slow`` everything, without it a part."""

from __future__ import annotations

PART, LEAST = 10, 20
"""Without ``--slow`` one of so many examples is tried, but no fewer than ``LEAST``."""

whole = False
"""Whether ``--slow`` was given: tests/conftest.py says so before any test is imported."""


def examples(count: int, least: int = LEAST) -> int:
    """Return how many of ``count`` examples to try; ``least`` for a test that shows nothing with fewer."""
    return count if whole else min(count, max(least, count // PART))
