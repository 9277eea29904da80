# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Between which ranks packets are lost: what one end of a connection sent, compared with what reached the other.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

RETRANSMITS = 3
"""Unanswered retransmissions of one segment: Linux waits 0.2 s before the first and twice as long before each next."""
CONNECTS = 2
"""The same for connecting, where it waits 1 s before the first."""
LOST = 3
"""Segments that were sent and did not arrive; one or two may be under way."""
CONNECTING = "SYN_SENT"
UNANSWERED_MS = 3000
"""Milliseconds without any answer after which unacknowledged data is lost, too: where this node itself drops what it
sends, the kernel counts no retransmissions."""


@dataclass(frozen=True)
class Link:
    source: int | None
    """None: from every other rank."""
    target: int | None
    lost: int = 0
    whole: bool = True
    """Whether both ends were examined."""


def lost(places: Mapping[int, Any]) -> list[Link]:
    """Return directed links over which packets are lost now."""
    ends: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
    for rank, place in places.items():
        for one in place.seen.get("sockets", []):
            if len(one.get("local", ())) == 2 and len(one.get("remote", ())) == 2:
                ends.setdefault((*one["local"], *one["remote"]), (rank, one))
    addresses = addresses_of(ends.values())
    found: dict[tuple[int, int], Link] = {}
    for (host, port, other_host, other_port), (rank, one) in ends.items():
        connecting = one.get("state") == CONNECTING
        again = one.get("retransmits", 0) >= (CONNECTS if connecting else RETRANSMITS)
        if not (one.get("send") or connecting) or not (again or one.get("since_ack", 0) >= UNANSWERED_MS):
            continue
        other_rank, other = ends.get((other_host, other_port, host, port), (None, None))
        if other is None or other_rank is None:
            if not again:
                continue
            unique = addresses.get(other_host, set())
            if len(unique) == 1 and rank not in unique:
                target = next(iter(unique))
                found.setdefault((rank, target), Link(rank, target, one.get("retransmits", 0), whole=False))
            continue
        for source, target, sent, arrived in ((rank, other_rank, one, other), (other_rank, rank, other, one)):
            missing = sent.get("segments_out", 0) - arrived.get("segments_in", 0)
            old = found.get((source, target))
            if source != target and missing >= LOST and (old is None or old.lost < missing):
                found[source, target] = Link(source, target, missing)
    return sorted(found.values(), key=lambda link: (link.source or 0, link.target or 0))


def addresses_of(ends: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, set[int]]:
    """Return the ranks that have each address."""
    found: dict[str, set[int]] = {}
    for rank, one in ends:
        found.setdefault(str(one["local"][0]), set()).add(rank)
    return found


def common(links: Iterable[Link]) -> Link | None:
    """Return the one link that explains all: one direction, all packets to a rank, or all from it."""
    pairs = [(link.source, link.target) for link in links]
    sources, targets = {pair[0] for pair in pairs}, {pair[1] for pair in pairs}
    if not pairs:
        return None
    if len(pairs) == 1:
        return Link(*pairs[0])
    if len(targets) == 1:
        return Link(None, next(iter(targets)))
    if len(sources) == 1:
        return Link(next(iter(sources)), None)
    both = {frozenset(pair) for pair in pairs}
    if len(both) == 1:  # both ways
        return Link(*pairs[0])  # the links are sorted
    shared = frozenset.intersection(*both)
    return Link(None, next(iter(shared))) if len(shared) == 1 else Link(*pairs[0])
