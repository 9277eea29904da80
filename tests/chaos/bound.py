# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How often something may fail at most, given how often it did: a one-sided bound of 95 % confidence.

With no failure in n rounds that is 1 - 0.05^(1/n), for which 3/n is the customary shorthand (the rule of three); with
failures it is the upper bound of Clopper and Pearson. Both take the rounds as independent draws from the same faults.
"""

from __future__ import annotations

import math

CONFIDENCE = 0.95


def rule_of_three(rounds: int) -> float:
    """Return the bound for no failure; of fewer than three rounds nothing can be said."""
    return min(1.0, 3 / rounds) if rounds else 1.0


def upper(failures: int, rounds: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest rate at which so few failures would still be seen with a chance of 1 - ``confidence``."""
    if not 0 <= failures <= rounds:
        raise ValueError(f"{failures} failures of {rounds} rounds")
    if failures == rounds:
        return 1.0
    low, high = failures / rounds, 1.0
    for dummy in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most(failures, rounds, middle) > 1 - confidence else (low, middle)
    return high


def bound(failures: int, rounds: int) -> float:
    """Return what the page shows: the rule of three where nothing failed, else Clopper and Pearson."""
    return upper(failures, rounds) if failures else rule_of_three(rounds)


def _at_most(failures: int, rounds: int, rate: float) -> float:
    """Return the chance of at most so many failures."""
    return math.fsum(
        math.comb(rounds, count) * rate**count * (1 - rate) ** (rounds - count) for count in range(failures + 1)
    )
