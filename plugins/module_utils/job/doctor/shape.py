# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What an examination may hold. What a rank, a container or another node hands over is brought into this form first.

A value of another type is left out, a long one is cut, control characters are removed.
Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Callable

MOST_RANKS = 4096
"""Ranks of one node, or of one group."""
WIDEST = 1 << 63

Shape = Callable[[Any], Any]
"""Returns the value in its form, or None."""


def text(longest: int = 200, lines: bool = False) -> Shape:
    def shaped(value: Any) -> Any:
        if not isinstance(value, str):
            return None
        cut = value[:longest]
        if cut.isprintable():
            return cut
        return "".join(
            one if one.isprintable() or (lines and one == "\n") else "\N{REPLACEMENT CHARACTER}" for one in cut
        )

    return shaped


def whole(value: Any) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) and -WIDEST <= value < WIDEST else None


def rank(value: Any) -> Any:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 20 else None


def ranks(value: Any) -> Any:
    """Return a list of ranks. In a large job each rank has one of all: this is what takes time."""
    if not isinstance(value, (list, tuple)):
        return None
    most = value[:MOST_RANKS]
    return [one for one in most if isinstance(one, int) and one is not True and one is not False and 0 <= one < 1 << 20]


def number(value: Any) -> Any:
    if isinstance(value, float) and math.isfinite(value) and abs(value) < WIDEST:
        return value
    return whole(value)


def flag(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def either(*shapes: Shape) -> Shape:
    def shaped(value: Any) -> Any:
        return next((found for found in (shape(value) for shape in shapes) if found is not None), None)

    return shaped


def listed(of: Shape, most: int) -> Shape:
    def shaped(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return None
        return [found for found in map(of, value[:most]) if found is not None]

    return shaped


def table(of: Shape, most: int) -> Shape:
    """Return the shape of a mapping whose keys are names."""
    name = text(100)

    def shaped(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return None
        kept = ((name(key), of(one)) for key, one in list(value.items())[:most] if isinstance(key, str))
        return {key: one for key, one in kept if one is not None}

    return shaped


def fields(**known: Shape) -> Shape:
    def shaped(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return None
        kept = {name: shape(value[name]) for name, shape in known.items() if name in value}
        return {name: one for name, one in kept.items() if one is not None}

    return shaped


FRAME = fields(function=text(120), file=text(300), line=whole, values=table(either(whole, text(), ranks), 24))
THREAD = fields(main=flag, daemon=flag, native=whole, name=text(60), idle=flag, frames=listed(FRAME, 64))
SIZES = listed(listed(whole, 16), 8)
ENTRY = fields(
    group=text(100),
    description=text(60),
    sequence=whole,
    operation=text(100),
    sizes=SIZES,
    outputs=SIZES,
    dtypes=listed(text(40), 8),
    state=text(20),
    done=flag,
    p2p=flag,
    at=number,
    site=listed(FRAME, 3),
)
GROUP = fields(ranks=ranks, description=text(60))
SOCKET = fields(
    local=listed(either(whole, text(60)), 2),
    remote=listed(either(whole, text(60)), 2),
    state=text(12),
    send=whole,
    receive=whole,
    retransmits=whole,
    segments_out=whole,
    segments_in=whole,
    acknowledged=whole,
    received=whole,
    since_ack=whole,
)
TASK = fields(
    tid=whole, name=text(60), state=text(1), cpu=number, wait=text(60), call=text(40), path=text(300),
    kernel=listed(text(80), 12),
)  # fmt: skip
CHILD = fields(pid=whole, parent=whole, name=text(60), state=text(1), signal=whole, code=whole, wait=text(60))
LOCK = fields(kind=text(20), holder=whole, waits=flag, holder_name=text(60))
RANK = fields(
    rank=rank,
    pid=whole,
    alive=flag,
    state=text(1),
    cpu=number,
    bytes=number,
    helpers=number,
    count=whole,
    tasks=listed(TASK, 64),
    children=listed(CHILD, 64),
    locks=listed(LOCK, 16),
    frozen=flag,
    throttled=number,
    cgroup=table(either(whole, text(100)), 24),
    source=text(20),
    threads=listed(THREAD, 48),
    groups=table(GROUP, 256),
    joined=flag,
    entries=listed(ENTRY, 2000),
    moved=flag,
    releases=table(text(40), 8),
    name=fields(host=text(), error=text()),
    sockets=listed(SOCKET, 1024),
    missing=listed(text(200), 8),
)
EXAMINATION = fields(
    version=whole,
    node=text(100),
    time=number,
    took=number,
    ranks=listed(RANK, MOST_RANKS),
    kernel=listed(fields(age=number, line=text(300)), 200),
    gpus=listed(table(either(number, text(60)), 12), 64),
    ras=text(65536, lines=True),
    pressure=table(number, 12),
    memory=table(whole, 8),
    disk=table(whole, 8),
    missing=listed(text(200), 32),
)


def examination(value: Any) -> dict[str, Any]:
    """Return an examination in its form, whatever was handed over."""
    found = EXAMINATION(value)
    return found if isinstance(found, dict) else {}
