# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The finding and its one sentence.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .causes import CERTAIN, NOT_KNOWN, SLOW, Cause
from .histories import Wait
from .links import Link
from .positions import Position

LISTED = 8
"""Ranks that a sentence lists."""


def names_of(ranks: Iterable[int]) -> str:
    """Return ranks as a sentence has them: ``0, 1, 2``, long runs as ``0-63``."""
    own = sorted(ranks)
    if len(own) > 2 and own == list(range(own[0], own[-1] + 1)):
        return f"{own[0]}-{own[-1]}"
    shown = ", ".join(map(str, own[:LISTED]))
    return f"{shown} and {len(own) - LISTED} more" if len(own) > LISTED else shown


def who(ranks: Sequence[int], places: Mapping[int, Position]) -> str:
    if len(ranks) == 1:
        node = places[ranks[0]].node
        return f"Rank {ranks[0]}{f' on {node}' if node else ''}"
    return f"Ranks {names_of(ranks)}"


def awaited(wait: Wait | None) -> str:
    """Return the collective that others wait in."""
    if wait is None:
        return "what the others wait for"
    number = f" number {wait.sequence}" if wait.sequence is not None else ""
    size = sum(math.prod(one) for one in wait.sizes)
    values = f", {size} value{'s' if size > 1 else ''}" if size else ""
    group = f" of ranks {names_of(wait.group)}" if wait.group else ""
    if wait.operation in ("send", "recv"):
        return f"{wait.operation} of rank {names_of(wait.ranks)}"
    return f"{wait.operation or 'a collective'}{number}{group}{values}"


def collective(wait: Wait | None) -> dict[str, Any] | None:
    if wait is None or not wait.operation:
        return None
    return {
        "operation": wait.operation,
        "sequence": wait.sequence,
        "size": sum(math.prod(one) for one in wait.sizes),
        "group": list(wait.group) or None,
        "ranks": sorted(wait.ranks),
    }


def place_of(place: Mapping[str, Any]) -> str:
    if not place.get("function"):
        return ""
    name = str(place.get("file", "")).rpartition("/")[2]
    return f" in {place['function']} ({name}, line {place.get('line', 0)})"


def finding(
    ranks: Sequence[int],
    places: Mapping[int, Position],
    wait: Wait | None,
    cause: Cause | None,
    *,
    link: Link | None = None,
    hang: bool = True,
) -> dict[str, Any]:
    """Return the finding about a job that hangs, or does not."""
    kind = cause.kind if cause else "network" if link else ""
    confidence = cause.confidence if cause else CERTAIN if link else NOT_KNOWN
    waiting = f"; rank{'s' if len(wait.ranks) > 1 else ''} {names_of(wait.ranks)} wait" if wait and wait.ranks else ""
    waiting += "s" if wait and len(wait.ranks) == 1 else ""
    if not hang:
        sentence, remedy, confidence = "The job has gone on meanwhile: it does not hang.", "", CERTAIN
    elif cause is not None and len(ranks) > 1 and confidence == NOT_KNOWN:
        sentence = f"{who(ranks, places)} wait for one another, and which of them is to blame is not known{waiting}."
        remedy = cause.remedy
    elif cause is not None:
        come = "have not come" if len(ranks) > 1 else "has not come"
        slow = " It works, so it may only be slow." if cause.works else ""
        sentence = f"{who(ranks, places)} {come} to {awaited(wait)}: it {cause.words}{place_of(cause.place)}{waiting}."
        sentence += slow
        remedy = cause.remedy
    elif link is not None:
        sentence, remedy = _of_link(link, places, wait)
    else:
        where = f"; ranks {names_of(wait.ranks)} wait in {awaited(wait)}" if wait and wait.ranks else ""
        sentence = f"Not known which rank the others wait for{where}."
        remedy = unseen(places)
    return {
        "hang": hang,
        "ranks": sorted(ranks),
        "nodes": sorted({places[rank].node for rank in ranks if places[rank].node}),
        "collective": collective(wait),
        "does": dict(cause.place) if cause and cause.place else {},
        "kind": kind,
        "link": {"from": link.source, "to": link.target} if link else None,
        "sentence": sentence,
        "remedy": remedy,
        "confidence": confidence,
        "works": bool(cause and cause.works),
    }


def apart(places: Mapping[int, Position], stuck: Sequence[int]) -> dict[str, Any]:
    """Return the finding about ranks none of which waits for another one; ``stuck``: those that wait for a file."""
    shown = min(stuck or places)
    node = f" on {places[shown].node}" if places[shown].node else ""
    does = "waits for a file" if stuck else "is"
    slow = "" if stuck else " It may only be slow."
    return {
        **finding([], places, None, None),
        "sentence": f"No rank waits for another one: rank {shown}{node} {does}{place_of(places[shown].place)}.{slow}",
        "remedy": SLOW,
        "works": not stuck,
    }


def unseen(places: Mapping[int, Position]) -> str:
    """Return what would be needed to know more."""
    silent = [rank for rank, place in places.items() if not place.frames]
    if silent:
        reason = next((line for rank in silent for line in places[rank].seen.get("missing", [])), "")
        more = f" ({reason})" if reason else ""
        what = f"No stack of ranks {names_of(silent)} could be read{more}"
        return f"{what}; py-spy in the image and the capability SYS_PTRACE would show it."
    return "The evidence is in the job's folder, hangs/; stop.yml ends the job."


def _of_link(link: Link, places: Mapping[int, Position], wait: Wait | None) -> tuple[str, str]:
    def name(rank: int | None) -> str:
        if rank is None:
            return "what the others wait for"
        node = places[rank].node if rank in places else ""
        return f"rank {rank}{f' on {node}' if node else ''}"

    where = f"; ranks {names_of(wait.ranks)} wait in {awaited(wait)}" if wait and wait.ranks else ""
    sentence = f"No rank is to blame: packets from {name(link.source)} to {name(link.target)} are lost{where}."
    remedy = "Check the link, the switch and the firewall between these nodes; verify.yml tests every pair."
    return sentence, remedy
