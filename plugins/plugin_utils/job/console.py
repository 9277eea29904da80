# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a job looks on the controller's console: its merged log, line by line, and now and then a line of figures.

The merged log has ``NODE: text`` for what a launcher prints and ``NODE: rank N: text`` for what a rank prints. Nothing
here redraws or sends control codes: the same lines suit a terminal and the log of a CI job.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...module_utils.job.launcher_log import plain

BAR_INTERVAL = 10.0
"""Seconds between two lines of a progress bar that redraws itself."""
PROGRESS_INTERVAL = 15.0
"""Seconds between two lines of figures; on a terminal the shorter one."""
PROGRESS_INTERVAL_TERMINAL = 5.0
SAME_WITHIN = 2.0
"""Seconds in which the same line of several ranks is shown once."""
LONGEST = 2000
"""Characters of a line that are shown."""
LONGEST_REST = 65536
"""Characters of a line without an end that are waited for."""

# Numbers have at most nine digits, as in launcher_log.
_RANK = re.compile(r"rank (\d{1,9}): ?")
_NODE = re.compile(r"([A-Za-z0-9._-]+): ")
_LEARN = re.compile(r"([A-Za-z0-9._-]+): (?:rank \d{1,9}: |\[\d{4}-\d\d-\d\d )")
_WORKERS = re.compile(r"Running on the following workers: (\S+)")
_ROUTINE = re.compile(
    r"\[INFO\] \[(?:launch|runner|multinode_runner)\.py:|\bcmd = |WORLD INFO DICT"
    r"|torch/distributed/run\.py:\d+\] (?:\*+$|$|Setting OMP_NUM_THREADS)"
)
_BAR = re.compile(r"\d{1,3}%\|[^|]*\|\s*(\d+)/(\d+)")
_VARIES = re.compile(r"^\[(?:rank|default)\d+\]:? ?|\[Rank \d+\]|\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?")
"""What differs between ranks in lines that say the same."""


class _Held:
    """A line of a rank; one of a rank other than 0 waits for the same line of other ranks."""

    def __init__(self, node: str, rank: int, text: str, since: float) -> None:
        self.node, self.rank, self.text, self.since = node, rank, text, since
        self.same = _VARIES.sub("", text)
        self.others: set[int] = set()

    def show(self) -> str:
        also = [str(rank) for rank in sorted(self.others)]
        return f"{self.node} rank {self.rank} | {_cut(self.text)}" + (
            f" (and rank{'s' if len(also) > 1 else ''} {', '.join(also)})" if also else ""
        )


class Console:
    """Turns pieces of the merged log into lines to show.

    ``hosts`` are the job's nodes; what is not known yet is learnt from the log. ``clock`` gives seconds. ``terminal``:
    somebody watches, so figures come more often. ``members`` ({name, slots, first_rank}) says where a rank runs.
    """

    def __init__(
        self,
        hosts: list[str],
        clock: Callable[[], float],
        terminal: bool = False,
        name: str = "",
        members: list[dict[str, Any]] | None = None,
    ) -> None:
        self.hosts = list(hosts)
        self._learn = not hosts
        self._clock, self._name = clock, name
        self._interval = PROGRESS_INTERVAL_TERMINAL if terminal else PROGRESS_INTERVAL
        self._node_of = {
            member["first_rank"] + place: str(member["name"])
            for member in members or []
            for place in range(len(member["slots"]))
        }
        self._rest = ""
        self._rest_bar_at = clock()
        self._bar_at: dict[tuple[str, int | None], float] = {}
        self._held: list[_Held] = []
        self._recent: dict[str, float] = {}  # what rank 0 said, and when
        self._echo: dict[int, int] = {}  # rank: lines of it that rank 0 had printed just before
        self._echo_since = 0.0
        self._reported: tuple[Any, ...] = ()
        self._reported_at: float | None = None

    def feed(self, text: str) -> list[str]:
        """Lines to show now. Call it with "" when nothing is new: lines may be waiting for those of other ranks."""
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        shown = [out for line in lines for out in self._line(line)]
        if "\r" in self._rest and self._clock() - self._rest_bar_at >= BAR_INTERVAL:
            self._rest_bar_at = self._clock()
            shown += self._line(self._rest)
            head = self._rest[: len(self._rest) - len(self._split(self._rest)[2])]
            self._rest = head  # what comes next belongs to the same rank
        elif len(self._rest) > LONGEST_REST and "\r" not in self._rest:
            shown += self._line(self._rest)
            self._rest = ""
        return [*shown, *self._due()]

    def finish(self) -> list[str]:
        """The last line, though nothing ended it, and what was waiting."""
        shown = self.feed("\n") if self._rest else []
        return [*shown, *self._due(everything=True)]

    def progress(self, figures: dict[str, Any] | None, now: float) -> list[str]:
        """One line of figures, when it is time and something has changed; else none."""
        figures = figures or {}
        key = tuple(figures.get(name) for name in ("step", "total", "loss", "bad_loss"))
        parts = self._parts(figures)
        if not parts or key in (self._reported, (None,) * 4):
            return []
        if self._reported_at is not None and now - self._reported_at < self._interval:
            return []
        self._reported, self._reported_at = key, now
        return [_cut((f"{self._name}: " if self._name else "") + ", ".join(parts))]

    def _parts(self, figures: dict[str, Any]) -> list[str]:
        step, total, loss = figures.get("step"), figures.get("total"), figures.get("loss")
        parts = []
        if step is not None:
            word = figures.get("unit") or "step"
            parts.append(f"{word} {step}" + (f" of {total} ({100 * step // total} %)" if total else ""))
        if loss is not None or figures.get("bad_loss"):
            parts.append(f"loss {_loss(loss) if loss is not None else figures['bad_loss']}")
        for key, word in (("samples_per_second", "samples/s"), ("tokens_per_second", "tokens/s")):
            if figures.get(key):
                parts.append(f"{_amount(figures[key])} {word}")
        if figures.get("seconds_left") and step is not None:
            parts.append(f"{duration(figures['seconds_left'])} left")
        slowest = figures.get("slowest_rank")
        if slowest is not None:
            node = self._node_of.get(slowest)
            parts.append(f"slowest rank {slowest}" + (f" ({node})" if node else ""))
        return parts

    def _split(self, raw: str) -> tuple[str, int | None, str]:
        """Node, rank and text of a line; no node where it is not one of the job's."""
        node = ""
        for dummy in range(2):  # twice: of a launcher over pdsh, whose lines name the node themselves
            learnt = _LEARN.match(raw) if self._learn else None
            if learnt and learnt.group(1) not in self.hosts:
                self.hosts.append(learnt.group(1))
            head = _NODE.match(raw)
            if not head or head.group(1) not in self.hosts:
                break
            node, raw = head.group(1), raw[head.end() :]
        rank = _RANK.match(raw) if node else None
        return (node, int(rank.group(1)), raw[rank.end() :]) if rank else (node, None, raw)

    def _line(self, raw: str) -> list[str]:
        workers = _WORKERS.search(raw) if self._learn else None
        if workers:
            self.hosts = workers.group(1).split(",")
        node, rank, rest = self._split(raw)
        text, now = plain(rest), self._clock()
        if rank is not None:
            self._node_of.setdefault(rank, node)
        if not text or (rank is None and _ROUTINE.search(text)) or self._too_soon(node, rank, text, now):
            return []
        if not node or rank is None:
            return [f"{node} | {_cut(text)}" if node else _cut(text)]
        line = _Held(node, rank, text, now)
        if rank == 0:
            also = [held for held in self._held if held.same == line.same]
            self._held = [held for held in self._held if held.same != line.same]
            self._recent[line.same] = now
            line.others = {other for held in also for other in (held.rank, *held.others)}
            return [line.show().replace(f"{node} rank 0 | ", f"{node} | ", 1)]
        if now - self._recent.get(line.same, -SAME_WITHIN - 1) <= SAME_WITHIN:
            self._echo_since = self._echo_since if self._echo else now
            self._echo[rank] = self._echo.get(rank, 0) + 1
            return []
        for held in self._held:
            if held.rank != rank and rank not in held.others and held.same == line.same:
                held.others.add(rank)
                return []
        self._held.append(line)
        return []

    def _too_soon(self, node: str, rank: int | None, text: str, now: float) -> bool:
        """A bar that stands in the log line by line is as quiet as one that redraws itself; its end is shown."""
        drawn = _BAR.search(text)
        if not drawn or drawn.group(1) == drawn.group(2):
            return False
        last = self._bar_at.get((node, rank))
        if last is not None and now - last < BAR_INTERVAL:
            return True
        self._bar_at[node, rank] = now
        return False

    def _due(self, everything: bool = False) -> list[str]:
        """Lines that have waited long enough."""
        now = self._clock()
        ready = 0
        while ready < len(self._held) and (everything or now - self._held[ready].since >= SAME_WITHIN):
            ready += 1
        shown = [held.show() for held in self._held[:ready]]
        self._held = self._held[ready:]
        if self._echo and (everything or now - self._echo_since >= SAME_WITHIN):
            for count in sorted(set(self._echo.values())):
                ranks = sorted(rank for rank, lines in self._echo.items() if lines == count)
                who = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(str(rank) for rank in ranks)}"
                shown.append(f"{who} | (the same {count} line{'s' if count > 1 else ''} as rank 0)")
            self._echo = {}
        if len(self._recent) > 100:
            self._recent = {same: when for same, when in self._recent.items() if now - when <= SAME_WITHIN}
        return shown


def _cut(text: str) -> str:
    return text[:LONGEST] + " …" if len(text) > LONGEST else text


def _loss(value: float) -> str:
    return f"{value:.4f}" if 0.001 <= abs(value) < 10000 or not value else f"{value:.3g}"


def _amount(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """``seconds`` in the two largest units that matter, such as 2 min 10 s."""
    left = max(1, round(seconds))
    if left >= 3600:
        left = round(left / 60) * 60
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
        elif parts:
            break
    return " ".join(parts[:2])
