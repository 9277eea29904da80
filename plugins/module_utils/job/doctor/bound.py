# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How long a job may be silent before it is examined, learned from the job itself.

Part of the supervisor's archive: standard library, Python 3.8 or later. No clock and no I/O: events go in, with their
times in seconds of one clock, and the bound and its reason come out.

How long a pause will be is not known before there was one like it. So a bound does not claim that the job hangs: it
says when to examine it. A pause that was legitimate after all is remembered, and the next one may take longer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from ..launcher_log import plain

START, STEP, CHECKPOINT, EVALUATION = "start", "step", "checkpoint", "evaluation"
LINE = "line"
"""Something was printed that neither reports a step nor announces a pause."""
COLLECTIVE = "collective"
"""The recorder's sequence numbers have moved, although nothing was printed."""

FLOOR = 60.0
"""Seconds that every pause may take, however quick the steps are: no script announces all of its pauses."""
FACTOR = 3.0
"""How much longer than the longest pause so far the next one may be."""
AGAIN = 1.5
"""The same for long pauses: from hang_after on, only this much more is waited."""
FEWEST = 3
"""Steps that must have been reported before anything is concluded from their pace; pauses, before from them."""
PAUSE = 4.0
"""Times a usual silence from which on one is a pause, such as a checkpoint that no line announces."""
PART = 0.1
"""The part of the time since the first step that the first pauses may take: they are the longer the rarer they are."""
RECENT = 31
"""Silences from which the usual one is computed."""
SHARE = 0.75
"""The part of the time until something ends the job in which it is examined at the latest."""
LONGEST = 4000
"""Characters of a line that are read."""

_PAUSES = {
    STEP: "after a step",
    CHECKPOINT: "while a checkpoint was saved",
    EVALUATION: "during an evaluation",
}
# As in progress.py, every repetition is bounded.
_SAVES = re.compile(
    r"\b(?:sav|writ|stor|dump)ing\b.{0,80}\b(?:checkpoints?|ckpt|models?|optimizers?|states?|weights|shards?|snapshot)"
    r"|\bcheckpoint\b.{0,80}\babout to be saved\b|\bsave_checkpoint\b",
    re.IGNORECASE,
)
_EVALUATES = re.compile(
    r"\b(?:evaluating|validating|running (?:an? )?(?:evaluation|validation|prediction)"
    r"|(?:begin|start)(?:s|ning|ing)? (?:of )?(?:the )?(?:evaluation|validation)|validation sanity check"
    r"|sanity checking|validation dataloader)\b",
    re.IGNORECASE,
)
_WORTH = re.compile(r"sav|writ|stor|dump|eval|valid|predict|sanity", re.IGNORECASE)


def announced(line: str) -> str:
    """The pause that a line announces, or an empty text. Cheap for the many lines that announce none."""
    if not _WORTH.search(line, 0, LONGEST):
        return ""
    text = plain(line[:LONGEST])
    return CHECKPOINT if _SAVES.search(text) else EVALUATION if _EVALUATES.search(text) else ""


class Bound(NamedTuple):
    """``seconds`` after which the silence since ``since`` is worth an examination, and why so many."""

    seconds: float
    why: str
    since: float

    def over(self, now: float) -> bool:
        return bool(self.seconds) and now - self.since > self.seconds


class Pace:
    """What one attempt of a job has shown of its pace.

    ``hang_after``: the bound as long as nothing is learned; 0: the job is never examined. ``ends_after``: seconds of
    silence after which something ends the job, such as deepspeed_launch_stall_timeout; 0 where nothing does.
    """

    def __init__(self, hang_after: float, now: float, ends_after: float = 0.0) -> None:
        self.hang_after = hang_after
        self.most = SHARE * ends_after
        """Seconds of silence after which it is examined at the latest; 0 where nothing ends it."""
        self.steps = 0
        self.last = now
        self._last_step = now
        self._longest_step = 0.0
        self._phase = START
        self._longest: dict[str, float] = {}
        """The longest silence of each phase."""
        self._known: set[str] = {STEP}
        """Phases of which the whole length was seen."""
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._pauses = 0
        self._first_step = now

    def note(self, kind: str, now: float) -> None:
        """Take an event in. Time does not run backwards: what seems earlier than the last event counts as now."""
        now = max(now, self.last)
        silence = now - self.last
        self._longest[self._phase] = max(self._longest.get(self._phase, 0.0), silence)
        self.last = now
        if self._phase != START:
            self._pauses += silence > PAUSE * self._usual() > 0
            self._recent.append(silence)
        if kind == LINE:
            return
        if self._phase != START:
            self._known.add(self._phase)
        if kind in (CHECKPOINT, EVALUATION):
            self._phase = kind if self.steps else START
            return
        self._first_step = self._first_step if self.steps else now
        if self.steps:
            self._longest_step = max(self._longest_step, now - self._last_step)
        self._phase, self._last_step, self.steps = STEP, now, self.steps + 1

    def bound(self) -> Bound:
        """For the silence, or the time without a step, that there is now."""
        if not self.hang_after:
            return Bound(0.0, "deepspeed_launch_hang_after is 0: the job is not examined", self.last)
        learned = self.steps >= FEWEST and self._phase in self._known
        seconds, why = self._learned() if learned else self._not_learned()
        found = [self._limited(seconds, why, self.last)]
        if learned:
            # Some thread may print whatever happens.
            seconds = max(2 * self.hang_after, FACTOR * self._longest_step)
            why = (
                f"lines are printed, but no step is reported, which took {in_words(self._longest_step)} at most so far"
            )
            found.append(Bound(round(seconds, 1), why, self._last_step))
        return min(found, key=lambda one: one.since + one.seconds)

    def _limited(self, seconds: float, why: str, since: float) -> Bound:
        if self.most and seconds > self.most:
            seconds, why = (
                self.most,
                f"{why}, but {100 * SHARE:.0f} % at most of the time after which silence ends the job",
            )
        return Bound(round(seconds, 1), why, since)

    def _not_learned(self) -> tuple[float, str]:
        longest = self._longest.get(self._phase, 0.0)
        if AGAIN * longest > self.hang_after:
            return AGAIN * longest, f"{AGAIN:g} times the longest silence so far ({in_words(longest)})"
        pause = {CHECKPOINT: "checkpoint", EVALUATION: "evaluation"}.get(self._phase)
        if not self.steps:
            reason = "no step has been reported yet"
        elif self.steps < FEWEST:
            reason = f"only {self.steps} of {FEWEST} steps have been reported from which the pace is learned"
        else:
            reason = f"this is the first {pause} that the log announces"
        return self.hang_after, f"deepspeed_launch_hang_after, as {reason}"

    def _usual(self) -> float:
        """The median of the recent silences; 0 as long as there are few."""
        recent = sorted(self._recent)
        return recent[len(recent) // 2] if len(recent) > FEWEST else 0.0

    def _learned(self) -> tuple[float, str]:
        longest = max(self._longest.get(self._phase, 0.0), self._longest.get(STEP, 0.0))
        silence = f"the longest silence {_PAUSES[self._phase]} so far ({in_words(longest)})"
        seconds, floor = FACTOR * longest, min(FLOOR, self.hang_after)
        trained = self.last - self._first_step
        first = min(PART * trained, self.hang_after) if self._pauses < FEWEST else 0.0
        if first > max(seconds, floor):
            return first, f"as it has trained for {in_words(trained)} and made {self._pauses} of {FEWEST} pauses so far"
        if seconds <= floor:
            return floor, f"as every pause may take as long, and {FACTOR:g} times {silence} is less"
        if seconds <= self.hang_after:
            return seconds, f"{FACTOR:g} times {silence}"
        if AGAIN * longest <= self.hang_after:
            return self.hang_after, f"deepspeed_launch_hang_after, as {FACTOR:g} times {silence} is more"
        return AGAIN * longest, f"{AGAIN:g} times {silence}"


def in_words(seconds: float) -> str:
    """Seconds in two digits, so that the text changes seldom."""
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def learned(events: Iterable[tuple[float, str]], hang_after: float, ends_after: float = 0.0) -> Bound:
    """The bound after these events, (time, kind) in order, the first of which is the start of the ranks."""
    pace: Pace | None = None
    for when, kind in events:
        if pace is None:
            pace = Pace(hang_after, when, ends_after)
        else:
            pace.note(kind, when)
    return (pace or Pace(hang_after, 0.0, ends_after)).bound()
