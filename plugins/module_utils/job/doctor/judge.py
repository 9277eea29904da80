# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Say from the examinations of all nodes which rank did not come, to which collective, and why. A pure function.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import histories, links, shape
from .causes import BUSY, CERTAIN, LIKELY, NOT_KNOWN, START, Cause, blocked, cause_of, collective_kind, works
from .histories import Wait
from .positions import ABSENT, ASKS, CODE, COLLECTIVE, DEAD, JOINING, PEER, STOPPED, STORE, Position, position
from .timeline import timeline
from .wording import apart, finding, names_of

AGREED = ("world_size", "hostname", "port", "master_addr", "master_port")
"""What all ranks must join with alike."""
MOST_RANKS = 65536
GONE = {DEAD, ABSENT, STOPPED}


def judge(examinations: Iterable[Mapping[str, Any]], job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the finding.

    ``job``: ``world_size``; ``nodes``, names by rank; ``log``, the last lines of ranks, ``[[time, rank, line], …]``.
    The finding: ``ranks`` that are to blame (none: no rank is), ``nodes`` they are on, ``collective`` that the others
    wait in (``operation``, ``sequence``, ``size``, ``group``, or None), ``does`` (``function``, ``file``, ``line``),
    ``kind``, ``link`` (``from``, ``to``, or None), ``sentence``, ``remedy``, ``confidence`` (certain, likely, not
    known), ``hang`` (False: the job has gone on meanwhile), ``works`` (what is waited for computes, reads or writes),
    ``timeline`` (when ranks entered their last collectives).
    """
    shaped = [shape.examination(one) for one in examinations]
    judgement = Judgement(shaped, job)
    found = judgement.result()
    return {**found, "timeline": timeline(shaped, judgement.places, found["ranks"])}


class Judgement:
    def __init__(self, examinations: Sequence[Mapping[str, Any]], job: Mapping[str, Any]) -> None:
        self.kernel = [line for one in examinations for line in one.get("kernel", []) if "line" in line]
        self.places: dict[int, Position] = {}
        for one in examinations:
            for seen in one.get("ranks", []):
                place = position(seen, str(one.get("node", "")))
                if place.rank >= 0:
                    self.places.setdefault(place.rank, place)
        size, nodes = job.get("world_size"), job.get("nodes")
        for rank in range(size if isinstance(size, int) and 0 < size <= MOST_RANKS else 0):
            node = nodes.get(rank, nodes.get(str(rank), "")) if isinstance(nodes, Mapping) else ""
            self.places.setdefault(rank, Position(rank, str(node), ABSENT))
        self.waits = histories.waits(self.places)
        self.edges = histories.edges(self.places, self.waits)

    def result(self) -> dict[str, Any]:
        if any(place.seen.get("moved") for place in self.places.values()):
            return finding([], self.places, None, None, hang=False)
        for find in (self._gone, self._network, self._joining, self._ends, self._mismatch, self._outside, self._apart):
            found = find()
            if found is not None:
                return found
        return finding([], self.places, self._waited(set()), None)

    # --- what may be found -------------------------------------------------------------------------------------------

    def _gone(self) -> dict[str, Any] | None:
        """Ranks that have ended, are stopped or are not there, while others wait.

        Where no stack could be read, it is not known whether they do.
        """
        lost = [rank for rank, place in self.places.items() if place.what in GONE]
        rest = [place for place in self.places.values() if place.rank not in lost]
        waited = any(place.waits for place in rest) or not any(place.frames for place in rest)
        return self._blame(lost) if lost and rest and waited else None

    def _network(self) -> dict[str, Any] | None:
        for rank, place in self.places.items():
            error = place.seen.get("name", {}).get("error")
            if error and place.what == JOINING:
                return self._unresolved(rank, place, str(error))
        found = links.common(links.lost(self.places))
        if found is None:
            return None
        return finding([], self.places, self._waited(set()), None, link=found)

    def _unresolved(self, rank: int, place: Position, error: str) -> dict[str, Any]:
        host = str(place.seen["name"].get("host", ""))
        cause = Cause(
            "network",
            f"cannot resolve {host}, the name of the node of rank 0 ({error})",
            f"Make {host} resolvable on its node: /etc/hosts, DNS.",
            CERTAIN,
            place.place,
        )
        return finding([rank], self.places, self._waited({rank}), cause, link=links.Link(rank, 0))

    def _joining(self) -> dict[str, Any] | None:
        """All ranks are joining, and do not meet: what they join with differs, or there are too few of them."""
        if not self.places or any(place.what != JOINING for place in self.places.values()):
            return None
        for name in AGREED:
            values = {rank: place.values[name] for rank, place in self.places.items() if name in place.values}
            odd = minority(values, usual=values.get(0))
            if odd:
                odd_value = ", ".join(sorted({str(values[rank]) for rank in odd}))
                others = next(str(value) for rank, value in values.items() if rank not in odd)
                cause = Cause(
                    "startup",
                    f"joins with {name} {odd_value}, the others with {others}",
                    "Give all ranks the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE.",
                    CERTAIN if len(odd) * 2 < len(values) else LIKELY,
                    self.places[odd[0]].place,
                )
                return finding(odd, self.places, self._waited(set(odd)), cause)
        for rank, place in self.places.items():
            joins_as = place.values.get("rank", -1)
            if isinstance(joins_as, int) and joins_as >= 0 and joins_as != rank:
                words, remedy = f"joins as rank {joins_as}", f"Leave RANK={rank} as the launcher has set it."
                cause = Cause("startup", words, remedy, CERTAIN, place.place)
                return finding([rank], self.places, self._waited({rank}), cause)
        odd = self._odd_groups(set(self.places))
        return self._parted(odd, CERTAIN if len(self.places) > 2 else LIKELY) if odd else self._unconnected()

    def _unconnected(self) -> dict[str, Any] | None:
        """Ranks that have no connection to the store of rank 0, where others have one."""
        sockets = {rank: place.seen.get("sockets", []) for rank, place in self.places.items()}
        ports = {
            one["local"][1]
            for one in sockets.get(0, [])
            if one.get("state") == "LISTEN" and len(one.get("local", ())) == 2
        }
        reached = {
            rank
            for rank, own in sockets.items()
            for one in own
            if one.get("state") == "ESTABLISHED" and len(one.get("remote", ())) == 2 and one["remote"][1] in ports
        }
        odd = sorted(rank for rank in self.places if rank != 0 and rank not in reached)
        if not odd or not reached - {0}:
            return None
        how = "has no connection to the store of rank 0"
        remedy = "Check that its node reaches MASTER_ADDR on MASTER_PORT; verify.yml tests every pair."
        cause = Cause("startup", how, remedy, LIKELY, self.places[odd[0]].place)
        return finding(odd, self.places, self._waited(set(odd)), cause)

    def _ends(self) -> dict[str, Any] | None:
        """Follow who waits for whom to the ranks that wait for none, or to a circle."""
        ends = histories.last_causes(self.places, self.edges)
        single = sorted(rank for end in ends if len(end) == 1 for rank in end if not self.places[rank].waits)
        if single and len(single) * 2 <= max(len(self.places), 2):
            return self._blame(single)
        for circle in (end for end in ends if len(end) > 1):
            found = self._in_circle(circle)
            if found is not None:
                return found
        alone = [rank for end in ends if len(end) == 1 for rank in end if self.places[rank].waits]
        return self._parted(alone, LIKELY) if alone and len(alone) * 2 <= len(self.places) else None

    def _in_circle(self, circle: set[int]) -> dict[str, Any] | None:
        """Of ranks that wait for one another, those are to blame that went another way than most, or than before."""
        for one in self.waits:
            parted = sorted(set(one.parted) & circle)
            within = len(one.group) - len(one.missing)
            if parted and len(parted) < within:
                return self._parted(parted, CERTAIN if one.sequence is not None else LIKELY, one)
        odd = self._odd_groups(circle)
        if odd:
            return self._parted(odd, CERTAIN if len(self.places) > 2 else LIKELY)
        asking = sorted(rank for rank in circle if self.places[rank].what == STORE)
        if asking and len(asking) * 2 < len(circle):
            return self._parted(asking, LIKELY)
        surprised = {rank: len(histories.surprises(self.places[rank].entries)) for rank in circle}
        most = max(surprised.values())
        chosen = sorted(rank for rank, count in surprised.items() if count == most)
        if most and len(chosen) * 2 <= len(circle):
            return self._parted(chosen, LIKELY)
        return self._parted(sorted(circle), NOT_KNOWN) if len(circle) < len(self.places) or len(circle) == 2 else None

    def _odd_groups(self, circle: set[int]) -> list[int]:
        """Return ranks that gave a name to another group than the others did: groups were created in another order."""
        names = {name for rank in circle for name in self.places[rank].groups}
        for name in sorted(names):
            odd = minority({rank: place.groups[name] for rank, place in self.places.items() if name in place.groups})
            if odd:
                return odd
        return []

    def _mismatch(self) -> dict[str, Any] | None:
        """All are in one collective, and it does not end: its root or its size differs."""
        for one in self.waits:
            sizes = {
                rank: str(entry.get("sizes"))
                for rank, place in self.places.items()
                for entry in place.entries
                if (entry["group"], entry["sequence"]) == (one.name, one.sequence) and not entry.get("p2p")
            }
            odd = minority(sizes, usual=sizes.get(0)) if one.operation in ALIKE and not one.missing else []
            if odd:
                other = next(size for rank, size in sizes.items() if rank not in odd)
                how = f"calls it with sizes {sizes[odd[0]]}, and others with {other}"
                sure = CERTAIN if len(odd) * 2 < len(sizes) else LIKELY
                cause = Cause("mismatched_collective", how[:200], SAME, sure, self.places[odd[0]].place)
                return finding(odd, self.places, one, cause)
            for name in ("src", "group_src", "dst", "group_dst"):
                values = {
                    rank: self.places[rank].values[name]
                    for rank in one.ranks
                    if name in self.places[rank].values and self.places[rank].operation == one.operation
                }
                odd = minority(values, usual=0)
                if odd:
                    odd_value = values[odd[0]]
                    other = next(value for rank, value in values.items() if rank not in odd)
                    how = f"calls it with root {odd_value}, and others with root {other}"
                    cause = Cause("mismatched_collective", how, SAME, LIKELY, self.places[odd[0]].place)
                    return finding(odd, self.places, one, cause)
        return None

    def _outside(self) -> dict[str, Any] | None:
        """Without stacks and recorder: the rank whose main thread does something else than those of most."""
        if any(place.frames or place.entries for place in self.places.values()):
            return None
        does = {}
        for rank, place in self.places.items():
            main: Mapping[str, Any] = next(iter(place.seen.get("tasks", [])), {})
            busy = main.get("state") == "R" or main.get("cpu", 0) >= BUSY
            does[rank] = "computes" if busy else f"{main.get('state')} {main.get('call')}"
        odd = minority(does)
        if not odd or len(odd) * 2 >= len(does) or does[odd[0]].split()[-1] in ASKS:
            return None
        cause = cause_of(self.places[odd[0]], self.kernel)
        cause.confidence = LIKELY
        return finding(odd, self.places, self._waited(set(odd)), cause)

    def _apart(self) -> dict[str, Any] | None:
        """No rank waits for another one: each is in code of its own, and at most the file system holds them all."""
        if (
            not self.places
            or self.waits
            or not all(place.frames and place.what == CODE for place in self.places.values())
        ):
            return None
        stuck = [rank for rank, place in self.places.items() if blocked(place.seen) and not works(place.seen)]
        return apart(self.places, stuck)

    # --- blame -----------------------------------------------------------------------------------------------------

    def _blame(self, ranks: list[int]) -> dict[str, Any]:
        cause, *others = [cause_of(self.places[rank], self.kernel) for rank in ranks]
        cause.works = cause.works and all(other.works for other in others)
        waited = self._waited(set(ranks))
        first = self._before_first(waited)
        if first and (cause.kind == "own_code" or self.places[ranks[0]].what == ABSENT):
            cause.kind = "startup"
            if self.places[ranks[0]].what == ABSENT:
                cause.words, cause.remedy = "was not started, or its node does not answer", START
        return finding(ranks, self.places, waited, cause)

    def _parted(self, ranks: list[int], confidence: str, wait: Wait | None = None) -> dict[str, Any]:
        """Blame ranks that are in another collective than the others."""
        place = self.places[ranks[0]]
        waited = wait or self._waited(set(ranks))
        skipped = waited is not None and waited.sequence is not None
        kind = "startup" if self._before_first(waited) else collective_kind(place, skipped)
        if place.what == PEER:
            kind = "reordered_collective"
        elif kind != "startup" and self._same_function(place, waited):
            kind = "mismatched_collective"
        instead = place.operation or (wait.parted.get(ranks[0], "") if wait else "")
        opened = next((entry for entry in reversed(place.entries) if not entry.get("done")), None)
        number = f" {opened['sequence']}" if opened is not None and place.what == COLLECTIVE else ""
        group = f" of ranks {names_of(self._group_of(place, opened))}" if opened is not None and number else ""
        does = f"is in {instead or 'another collective'}{number}{group} instead"
        if place.what == STORE:
            does = f"waits for {place.operation} instead"
        cause = Cause(kind, does, SAME_ORDER, confidence, place.place)
        return finding(ranks, self.places, waited, cause)

    def _same_function(self, place: Position, waited: Wait | None) -> bool:
        """Whether it and those that wait call their collectives in the same function: it is that call that differs."""
        others = [self.places[rank].place for rank in (waited.ranks if waited else ()) if rank in self.places]
        own = (place.place.get("file"), place.place.get("function"))
        return (
            bool(others)
            and own[1] not in (None, "<module>")
            and all((other.get("file"), other.get("function")) == own for other in others)
        )

    def _group_of(self, place: Position, entry: Mapping[str, Any]) -> Sequence[int]:
        return place.groups.get(str(entry.get("group")), ()) or sorted(self.places)

    def _before_first(self, waited: Wait | None) -> bool:
        """Whether it is the rendezvous, or no collective was complete before."""
        if waited is not None and waited.operation in ("init_process_group", "new_group"):
            return True
        return (
            waited is not None
            and not any(entry.get("done") for place in self.places.values() for entry in place.entries)
            and any(place.recorded for place in self.places.values())
        )

    def _waited(self, ranks: set[int]) -> Wait | None:
        """Return what others wait in for these ranks."""
        peers = [place for place in self.places.values() if place.what == PEER and place.peer in ranks]
        # A recv cannot end without its peer; a send sometimes can.
        for place in sorted(peers, key=lambda place: (place.rank in ranks, place.operation != "recv")):
            return Wait(place.operation, None, (), ranks=[place.rank], missing=sorted(ranks - {place.rank}))
        able = [one for one in self.waits if not ranks or ranks & set(one.missing)]
        expected = {
            one for rank in ranks for some in histories.surprises(self.places[rank].entries)[:1] for one in some
        }
        for one in sorted(able, key=lambda one: (one.name, one.operation) not in expected):
            return one
        joining = [rank for rank, place in self.places.items() if place.what == JOINING and rank not in ranks]
        if joining:
            return Wait(self.places[joining[0]].operation, None, (), ranks=joining, missing=sorted(ranks))
        # Without a recorder, the stacks say which collective it is, not which number it has.
        names = Counter(
            (place.operation, place.groups.get(place.group, ()))
            for rank, place in self.places.items()
            if rank not in ranks and place.what in {COLLECTIVE, PEER}
        )
        if not names:
            return None
        (name, group), _count = names.most_common(1)[0]
        own = [rank for rank, place in self.places.items() if place.operation == name and rank not in ranks]
        return Wait(name, None, tuple(group), ranks=own, missing=sorted(ranks))


ALIKE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")
"""Collectives whose input has the same size on all ranks."""
SAME = "Have every rank call that collective with the same root, size and type."
SAME_ORDER = (
    "Have every rank call the same collectives in the same order: look for a condition, an exception or a count that "
    "differs."
)


def minority(values: Mapping[int, Any], usual: Any = None) -> list[int]:
    """Return the ranks whose value fewer have than another one; of two halves those that have not the usual one."""
    counts = Counter(values.values())
    if len(counts) < 2:
        return []
    most = max(counts.values())
    leading = [value for value, count in counts.items() if count == most]
    if len(leading) > 1:
        if usual not in leading:
            return []
        leading = [usual]
    return sorted(rank for rank, value in values.items() if value != leading[0])
