# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""All pairs of nodes, in rounds in which each node is busy with one other at most.

The circle method of round-robin tournaments (Kirkman 1847): N nodes need N-1 rounds, N where N is odd, so that to try
all N(N-1)/2 pairs takes about as long as to try N of them one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence


def rounds(names: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Return the rounds: each pair of ``names`` in one, the earlier name first, no name twice in a round."""
    ring: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    place = {name: index for index, name in enumerate(names)}
    found = []
    for _round in range(len(ring) - 1):
        half = len(ring) // 2
        met = zip(ring[:half], reversed(ring[half:]))
        pairs = [(one, other) for one, other in met if one is not None and other is not None]
        found.append([(one, other) if place[one] < place[other] else (other, one) for one, other in pairs])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return [pairs for pairs in found if pairs]
