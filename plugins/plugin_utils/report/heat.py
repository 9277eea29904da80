# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Heat maps of pairs: a colour says how a pair compares with the median of all, so noise stays calm and outliers show.

One SVG path for each colour, so that 64 × 64 cells take some ten kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from .curves import px
from .text import counted, domain, short

Pair = tuple[str, str]

STEPS = (0.8, 1.25, 1.6, 2.5, 4.0)
"""Slowness against the median at which the next colour begins."""
LEGEND = ("faster", "as most", "1.25 × slower", "1.6 ×", "2.5 ×", "4 × and more")
WRITTEN = 12
"""Nodes up to which each cell holds its number."""
_LABEL = 14  # characters of a node's name that stand beside a row


def step_of(slowness: float) -> int:
    """The colour of a pair, 0 (fast) to 5 (slow)."""
    return sum(slowness >= limit for limit in STEPS)


def cell_size(count: int) -> float:
    """Side of a cell in pixels."""
    for most, side in ((3, 56.0), (6, 50.0), (WRITTEN, 42.0), (24, 18.0), (40, 12.0)):
        if count <= most:
            return side
    return round(max(4.0, 480 / count), 1)


def clipped(name: str, most: int = _LABEL) -> str:
    """A name that is too long loses its middle, as ends distinguish nodes."""
    if len(name) <= most:
        return name
    return f"{name[: (most - 1) // 2]}…{name[-(most - 1 - (most - 1) // 2) :]}"


def heat_map(
    title: str,
    unit: str,
    nodes: Sequence[str],
    values: Mapping[Pair, float],
    *,
    high_is_good: bool,
    failed: Iterable[Pair] = (),
) -> dict[str, Any]:
    """Geometry and words of one map, rows from and columns to; ``values`` by (from, to) in ``unit``."""
    place = {name: index for index, name in enumerate(nodes)}
    known = {pair: value for pair, value in values.items() if pair[0] in place and pair[1] in place and value > 0}
    middle = median(known.values()) if known else 0.0
    side, tail = cell_size(len(nodes)), domain(nodes)
    rows = _labels(nodes, side, tail)
    broken = {pair for pair in failed if pair[0] in place and pair[1] in place}
    squares: dict[int, list[str]] = {}
    texts: list[dict[str, Any]] = []
    slowest: tuple[float, Pair] | None = None
    for pair, value in sorted(known.items(), key=lambda item: (place[item[0][0]], place[item[0][1]])):
        if pair in broken:
            continue
        slowness = middle / value if high_is_good else value / middle
        step = step_of(slowness)
        x, y = place[pair[1]] * side, place[pair[0]] * side
        squares.setdefault(step, []).append(_square(x, y, side))
        if len(nodes) <= WRITTEN:
            texts.append({"x": px(x + side / 2), "y": px(y + side / 2 + 4), "text": short(value), "step": step})
        if slowest is None or slowness > slowest[0]:
            slowest = (slowness, pair)
    return {
        "title": title,
        "unit": unit,
        "count": len(nodes),
        "side": side,
        "extent": px(side * len(nodes)),
        "paths": [{"step": step, "d": "".join(parts)} for step, parts in sorted(squares.items())],
        "failed": "".join(_cross(place[pair[1]] * side, place[pair[0]] * side, side) for pair in sorted(broken)),
        "texts": texts,
        "rows": rows,
        "left": max(104, round(30 + 7.2 * max((len(row["name"]) for row in rows), default=0))),
        "summary": _summary(unit, known, middle, slowest, broken, high_is_good=high_is_good),
        "data": {
            "names": list(nodes),
            "unit": unit,
            "side": side,
            "values": [[_value(known.get((one, other))) for other in nodes] for one in nodes],
            "failed": [[place[one], place[other]] for one, other in sorted(broken)],
        },
    }


def _value(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def _square(x: float, y: float, side: float) -> str:
    inner = px(side - (0.5 if side < 12 else 2))
    return f"M{px(x)} {px(y)}h{inner}v{inner}h-{inner}z"


def _cross(x: float, y: float, side: float) -> str:
    left, right, top, bottom = (px(at + side * share) for at in (x, y) for share in (0.25, 0.7))
    return f"M{left} {top}L{right} {bottom}M{right} {top}L{left} {bottom}"


def _labels(nodes: Sequence[str], side: float, tail: str) -> list[dict[str, Any]]:
    """Number and name of each row; of every fourth or eighth where rows are lower than a line of text."""
    every = 1 if side >= 12 else 4 if side >= 4 else 8
    return [
        {
            "number": index + 1,
            "name": clipped(name[: len(name) - len(tail)]),
            "whole": name,
            "at": px((index + 0.5) * side),
        }
        for index, name in enumerate(nodes)
        if index % every == 0
    ]


def _summary(
    unit: str,
    known: Mapping[Pair, float],
    middle: float,
    slowest: tuple[float, Pair] | None,
    broken: set[Pair],
    *,
    high_is_good: bool,
) -> str:
    reported = []
    if known and slowest:
        factor, pair = slowest
        worst = f"{pair[0]} → {pair[1]} with {short(known[pair])} {unit}"
        reported.append(f"Median {short(middle)} {unit} over {counted(len(known), 'pair')}.")
        if step_of(factor) > 1:
            how = "of the median" if high_is_good else "× the median"
            reported.append(f"Slowest: {worst}, {short(1 / factor if high_is_good else factor)} {how}.")
        else:
            reported.append(f"No pair stands out; the slowest is {worst}.")
    if broken:
        reported.append(f"{counted(len(broken), 'pair')} did not work (✕).")
    return " ".join(reported)
