# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""When each rank entered its last collectives: what the report draws beside who waits for whom.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from .positions import Position

MOST_RANKS = 64
"""Ranks of which it is kept: those to blame first."""
MOST_MARKS = 24
"""Collectives of a rank: the last ones."""
CLOCKS_S = 5.0
"""Seconds by which nodes may begin their examination apart; a node that is further away has another clock."""
OLDEST_S = 30 * 86400.0


def timeline(
    examinations: Sequence[Mapping[str, Any]], places: Mapping[int, Position], blamed: Iterable[int]
) -> dict[str, Any] | None:
    """Return when ranks entered collectives, in seconds before the last one that any of them entered.

    ``{waited, ranks: [{rank, done, open}, …]}``: ``waited`` seconds from that one to the examination; ``done`` and
    ``open`` those that are complete and those that are not. None where no recorder has a time.
    """
    began = {str(one.get("node", "")): one["time"] - one.get("took", 0) for one in examinations if "time" in one}
    if not began:
        return None
    usual = median(began.values())
    ages: dict[int, list[tuple[float, bool]]] = {}
    for rank, place in places.items():
        own = began.get(place.node, usual)
        # Clocks that are kept by NTP agree better than the moments at which processes of two nodes start.
        clock = own if abs(own - usual) > CLOCKS_S else usual
        found = ((clock - entry["at"], bool(entry.get("done"))) for entry in place.entries if "at" in entry)
        within = [one for one in found if -CLOCKS_S <= one[0] <= OLDEST_S]
        if within:
            ages[rank] = heapq.nsmallest(MOST_MARKS, within)
    if not ages:
        return None
    newest = min(own[0][0] for own in ages.values())
    accused = set(blamed)
    chosen = sorted(ages, key=lambda rank: (rank not in accused, rank))[:MOST_RANKS]
    rows = []
    for rank in sorted(chosen):
        marks = sorted((round(newest - age, 3), done) for age, done in ages[rank])
        complete, opened = [at for at, done in marks if done], [at for at, done in marks if not done]
        rows.append({"rank": rank, "done": complete, "open": opened})
    return {"waited": round(max(newest, 0.0), 1), "ranks": rows}
