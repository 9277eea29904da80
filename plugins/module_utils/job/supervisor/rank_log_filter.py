# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the leader hears of a rank: everything of rank 0, of the others what warns or fails, and how far they are.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections.abc import Mapping

from .loud_lines import Loud, speaks
from .progress import counts

STEP_INTERVAL = 2.0
"""Seconds between two lines of one rank that are passed on for their figures alone."""


class RankLogFilter:
    """The ranks of one node, in one attempt."""

    def __init__(self) -> None:
        self._loud: dict[int, Loud] = {}
        self._reported: dict[int, float] = {}
        self._final_sent: set[int] = set()
        self.signs = 0
        """Lines so far that neither warn nor fail: a library that warns while it tries again makes no progress."""

    def on_line(self, rank: int | None, line: str, now: float) -> tuple[list[str], str]:
        """The lines to pass on for the log, and a line to pass on for its figures, or an empty one."""
        if rank is None or rank == 0:
            self.signs += not speaks(line)
            return [line], line if rank == 0 and counts(line) else ""
        loud = self._loud.setdefault(rank, Loud()).feed(line)
        self.signs += not loud
        step = ""
        if counts(line) and now - self._reported.get(rank, -STEP_INTERVAL) >= STEP_INTERVAL:
            self._reported[rank] = now
            step = line
        return loud, step

    def final_lines(self, exits: Mapping[int, int]) -> list[tuple[int, str]]:
        """The last lines of each rank that has failed by now, if not passed on yet; once for each rank."""
        failed = [rank for rank, code in exits.items() if code and rank in self._loud and rank not in self._final_sent]
        self._final_sent.update(failed)
        return [(rank, line) for rank in failed for line in self._loud[rank].before()]
