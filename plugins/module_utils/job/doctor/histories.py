# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Compares what ranks entered, group by group: who waits for whom, and where the histories of two ranks part.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .positions import ABSENT, COLLECTIVE, DEAD, JOINING, PEER, STORE, Position, operation

CONTEXT = 8
"""Collectives before one that are compared with what came before."""
TAIL = 6
"""Last collectives of a rank that may be out of order."""
_PEERS = re.compile(r"(?:send|recv) \d{1,6}(?:->|<-)(\d{1,6})")


@dataclass
class Wait:
    """A collective that some ranks have entered and that is not complete."""

    operation: str
    sequence: int | None
    group: tuple[int, ...]
    sizes: list[list[int]] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    """Those in it."""
    missing: list[int] = field(default_factory=list)
    """Those that are not in it: behind, or in another one with the same number."""
    name: str = ""
    """The group's, as torch has it."""
    parted: dict[int, str] = field(default_factory=dict)
    """What those entered instead that have entered another one."""
    began: float = 0.0


def by_group(places: Mapping[int, Position]) -> dict[Any, dict[int, dict[int, dict[str, Any]]]]:
    """Return the entries by number, of each rank, of each group by name and members.

    Two ranks may give one name to different groups.
    """
    found: dict[Any, dict[int, dict[int, dict[str, Any]]]] = {}
    for rank, one in places.items():
        for name in {str(entry["group"]) for entry in one.entries} | set(one.groups):
            found.setdefault((name, tuple(one.groups.get(name, ()))), {})[rank] = {}
        for entry in one.entries:
            if not entry.get("p2p"):
                name = str(entry["group"])
                found[name, tuple(one.groups.get(name, ()))][rank][entry["sequence"]] = entry
    return found


def waits(places: Mapping[int, Position]) -> list[Wait]:
    """Return for each group the first collective that is not complete, the one that began first in front."""
    if not any(one.entries for one in places.values()):
        return _by_stacks(places)
    groups = sorted(by_group(places).items(), key=lambda item: str(item[0]))
    found = (_first_wait(places, group, histories) for group, histories in groups)
    return sorted((one for one in found if one is not None), key=lambda wait: wait.began)


def _by_stacks(places: Mapping[int, Position]) -> list[Wait]:
    """Return the collective that most are in where there is no recorder: it is taken for one of all ranks."""
    entered = {rank: one.operation for rank, one in places.items() if one.what == COLLECTIVE and one.operation}
    if not entered:
        return []
    (name, _count), *_rest = Counter(entered.values()).most_common()
    within = [rank for rank, other in entered.items() if other == name]
    parted = {rank: other for rank, other in entered.items() if other != name}
    missing = [rank for rank in sorted(places) if rank not in within]
    return [Wait(name, None, tuple(sorted(places)), ranks=within, missing=missing, parted=parted)]


def _first_wait(places: Mapping[int, Position], group: Any, histories: Mapping[int, Any]) -> Wait | None:
    members = list(group[1]) or sorted(places)
    opened = [
        (number, rank, entry)
        for rank, history in histories.items()
        for number, entry in history.items()
        if not entry.get("done") and not gone(places.get(rank))
    ]
    if not opened or len(members) < 2:
        return None
    number = min(one[0] for one in opened)
    entered = {
        rank: operation(str(history[number]["operation"])) for rank, history in histories.items() if number in history
    }
    names = Counter(entered.values())
    most = max(names.values())
    leading = sorted(name for name, count in names.items() if count == most)
    # Of two halves, that which the rank entered that began to wait first.
    opened.sort(key=lambda one: one[2].get("at") or 0)
    first = next((entered[one[1]] for one in opened if one[0] == number and entered[one[1]] in leading), leading[0])
    within = [rank for rank, name in entered.items() if name == first]
    example = histories[within[0]][number]
    began = min((histories[rank][number].get("at") or 0.0 for rank in within), default=0.0)
    waiting = [rank for rank in within if not histories[rank][number].get("done")]
    # Those that are further than their recorder goes back, and those of which only the stack is known.
    there = {rank for rank, history in histories.items() if history and min(history) > number}
    there |= {rank for rank, one in places.items() if one.operation == first and not one.recorded}
    return Wait(
        operation=first,
        sequence=number,
        group=tuple(members),
        sizes=example.get("sizes", []),
        ranks=waiting,
        missing=[rank for rank in members if rank not in within and rank not in there],
        name=group[0],
        parted={rank: name for rank, name in entered.items() if name != first},
        began=began,
    )


def gone(one: Position | None) -> bool:
    return one is None or one.what in {DEAD, ABSENT}


def edges(places: Mapping[int, Position], found: Sequence[Wait]) -> dict[int, set[int]]:
    """Return for each rank those that it waits for."""
    waiting: dict[int, set[int]] = {rank: set() for rank in places}
    for one in found:
        for rank in one.ranks:
            waiting[rank] |= set(one.missing) - {rank}
        # And they for those in the first one, as these cannot come.
        for rank, name in one.parted.items():
            if places[rank].what == COLLECTIVE and name:
                waiting[rank] |= set(one.ranks)
    idle = {rank for rank, place in places.items() if not place.waits}
    for rank, place in places.items():
        if place.what == PEER and place.peer is not None and place.peer in places:
            waiting[rank].add(place.peer)
        elif place.what == PEER and not peers_of(place):
            waiting[rank] |= idle - {rank}
        elif place.what == COLLECTIVE and not waiting[rank]:
            # No recorder says in which: it waits for the members that are in no collective.
            members = place.groups.get(place.group)
            waiting[rank] |= (idle & set(members) if members else idle) - {rank}
        elif place.what == JOINING:
            waiting[rank] |= {one for one, other in places.items() if other.what != JOINING} - {rank}
        elif place.what == STORE:
            waiting[rank] |= {one for one, other in places.items() if other.what != STORE} - {rank}
        waiting[rank] |= peers_of(place) & set(places)
    return waiting


def peers_of(place: Position) -> set[int]:
    """Return the ranks for which point-to-point communication waits that NCCL's recorder has: ``send 0->1``."""
    found = set()
    for entry in place.entries:
        matched = _PEERS.search(str(entry["operation"]))
        if matched and entry.get("p2p") and not entry.get("done"):
            members = place.groups.get(str(entry["group"]), ())
            peer = int(matched.group(1))
            found.add(members[peer] if peer < len(members) else peer)
    return found - {place.rank}


def last_causes(places: Mapping[int, Position], waiting: Mapping[int, set[int]]) -> list[set[int]]:
    """Return the sets of ranks at which all waiting ends: single ranks that wait for none, or circles."""
    circles = components(waiting)
    whole = {rank: number for number, circle in enumerate(circles) for rank in circle}
    ends = []
    for number, circle in enumerate(circles):
        outside = {other for rank in circle for other in waiting[rank] if whole.get(other) != number}
        waited_for = any(rank in waiting[other] for rank in circle for other in places if other not in circle)
        if not outside and (len(circle) > 1 or waited_for):
            ends.append(circle)
    return ends


def components(graph: Mapping[int, set[int]]) -> list[set[int]]:
    """Return the strongly connected components: Kosaraju's two passes, without recursion."""
    order: list[int] = []
    visited: set[int] = set()
    for start in graph:
        stack = [(start, iter(sorted(graph[start])))] if start not in visited else []
        visited.add(start)
        while stack:
            rank, rest = stack[-1]
            following = next((other for other in rest if other in graph and other not in visited), None)
            if following is None:
                order.append(rank)
                stack.pop()
            else:
                visited.add(following)
                stack.append((following, iter(sorted(graph[following]))))
    against: dict[int, set[int]] = {rank: set() for rank in graph}
    for rank, others in graph.items():
        for other in others:
            if other in against:
                against[other].add(rank)
    found, taken = [], set()
    for start in reversed(order):
        if start in taken:
            continue
        component, todo = set(), [start]
        while todo:
            rank = todo.pop()
            if rank not in taken:
                taken.add(rank)
                component.add(rank)
                todo += against[rank] - taken
        found.append(component)
    return found


def surprises(entries: Iterable[Mapping[str, Any]]) -> list[set[tuple[str, str]]]:
    """Return what was to be expected instead of those last collectives of a rank that never followed the same ones.

    A loop enters the same collectives again and again: each by group and operation.
    """
    made = [(str(entry.get("group")), operation(str(entry.get("operation")))) for entry in entries]
    found = []
    for place in range(max(2, len(made) - TAIL), len(made)):
        for length in range(min(CONTEXT, place - 1), 0, -1):
            context = made[place - length : place]
            followed = {made[at + length] for at in range(place - length) if made[at : at + length] == context}
            if followed:
                if made[place] not in followed:
                    found.append(followed)
                break
    return found
