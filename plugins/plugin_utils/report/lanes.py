# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Ranks over time: a lane for each with the collectives that it entered last, and the one that it waits in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..core.values import mapping, number
from .curves import Axis, px
from .heat import clipped
from .text import sequence, short

WIDTH, LANE = 720, 20
LEFT, TOP, BOTTOM = 168, 24, 22
WAITING = 150
"""Pixels of the time after the last collective that any rank entered: not to scale, as it is far longer than a step."""
SHOWN = 12
"""Collectives of the rank that is furthest that are to be seen at least."""
SHORTEST_S = 0.001


def lanes(timeline: Any, blamed: Collection[Any], nodes: Mapping[int, str]) -> dict[str, Any] | None:
    """The drawing of a finding's timeline, or None where it has none. Pixels, and words."""
    ranks = [one for one in map(mapping, sequence(mapping(timeline).get("ranks"))) if _marks(one)]
    if not ranks:
        return None
    last = [max(_marks(one)) for one in ranks]
    furthest = max(ranks, key=lambda one: max(_marks(one)))
    begin = min(*last, sorted(_marks(furthest))[-SHOWN:][0])
    split = WIDTH - WAITING
    # Room on the left, so that the first mark is not on the border.
    across = Axis(min(begin * 1.04, -SHORTEST_S), 0.0, LEFT + 8, split)
    rows, waiting = [], []
    for place, one in enumerate(ranks):
        rank = int(one["rank"])
        opened = [at for at in _numbers(one.get("open")) if at >= across.low]
        if opened:
            waiting.append(rank)
        rows.append(
            {
                "y": TOP + place * LANE + LANE // 2,
                "label": f"rank {rank}",
                "node": clipped(nodes.get(rank, "")),
                "level": "bad" if rank in blamed else "",
                "done": [px(across.at(at)) for at in _numbers(one.get("done")) if at >= across.low],
                "open": px(across.at(min(opened))) if opened else None,
            }
        )
    waited = number(mapping(timeline).get("waited"))
    bottom = TOP + len(rows) * LANE
    return {
        "width": WIDTH,
        "height": bottom + BOTTOM,
        "left": LEFT,
        "split": split,
        "top": TOP,
        "bottom": bottom,
        "rows": rows,
        "ticks": [{"at": px(across.at(at)), "text": short(abs(at)) if at else "0"} for at in across.ticks(5)],
        "waited": f"then {waited:.0f} s" if waited is not None else "then",
        "summary": f"Collectives that {len(rows)} ranks entered last, and {len(waiting)} of them wait in",
    }


def _numbers(value: Any) -> list[float]:
    return [float(one) for one in sequence(value) if number(one) is not None]


def _marks(one: Mapping[str, Any]) -> list[float]:
    return _numbers(one.get("done")) + _numbers(one.get("open"))
