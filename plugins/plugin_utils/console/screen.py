# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From events to lines: a tick for each role, what changed, what is being waited for, and each error once."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..core.problems import listing
from ..job.console import duration
from .events import Diff, End, Event, Message, Outcome, Play, Result, Retry, Started, Task, Tick

FIRST_WAIT = 15.0
"""Seconds after which a line says what is being waited for; the next follow after twice as long each."""
HELD = 2.0
"""Seconds that an error waits for other hosts with the same."""
WORTH_TELLING = 5.0
"""Seconds from which on a task's or a role's time is shown."""
SIGNS = {"ok": "✓", "failed": "✗", "note": "!", "wait": "…", "changed": "~"}
ASCII = {"ok": "ok", "failed": "FAILED", "note": "!", "wait": "...", "changed": "~"}
"""For a terminal or a log that is not UTF-8."""
NAME = "\0"
"""Stands for the name of a host, or of those that an error is about."""
T = TypeVar("T")
FAILURES = (Outcome.FAILED, Outcome.RESCUED, Outcome.UNREACHABLE)


@dataclass(frozen=True)
class Line:
    """``style``: one of ``SIGNS``, or empty for text without a colour."""

    text: str
    style: str = ""


def grouped(texts: Mapping[str, str]) -> list[tuple[list[str], str]]:
    """Return the hosts that say the same, each group with its text; where it begins with a host, it begins with all.

    Two texts are the same if they differ only in the name of their host; then it says whom else it is about.
    """
    groups: dict[str, list[str]] = {}
    often = Counter(texts.values())
    for host, text in texts.items():
        alone = rf"(?<![\w.-]){re.escape(host)}(?![\w-])"
        groups.setdefault(text if often[text] > 1 else re.sub(alone, NAME, text), []).append(host)
    found = []
    for same, (first, *others) in groups.items():
        begin, rest = (f"{NAME}:", same.removeprefix(f"{NAME}:")) if same.startswith(f"{NAME}:") else ("", same)
        if begin and others:
            begin = f"{listing([first, *others])}:"
        more = f" (the same for {listing(others)})" if others and NAME in rest else ""
        found.append(([first, *others], f"{begin}{rest}{more}".replace(NAME, first)))
    return found


def grouped_exactly(texts: Mapping[str, str]) -> list[tuple[list[str], str]]:
    """Return the hosts that have the same text, with it."""
    groups: dict[str, list[str]] = {}
    for host, text in texts.items():
        groups.setdefault(text, []).append(host)
    return [(hosts, text) for text, hosts in groups.items()]


class Screen:
    """The lines of one run. ``width``: columns to wrap to, 0 for no end."""

    def __init__(self, width: int = 0, signs: Mapping[str, str] | None = None) -> None:
        self.width, self._signs = width, signs or SIGNS
        self._begun: float | None = None
        self._play = Play("")
        self._headed = True
        self._silent: list[str] = []  # roles of the play that nothing was heard of yet
        self._role, self._role_begun, self._changes = "", 0.0, 0
        self._ran = self._broken = False  # whether something of this role ran, and failed
        self._failed: dict[str, None] = {}  # the hosts that a task failed on which each runs for itself
        self._changed: Counter[str] = Counter()  # how many tasks, by host
        self._errors_shown: set[str] = set()
        self._ignored = 0
        self._forget_task(None, 0.0)

    def feed(self, event: Event, now: float) -> list[Line]:
        """Return the lines that an event gives, if any. ``now`` is in seconds."""
        self._begun = now if self._begun is None else self._begun
        if isinstance(event, Play):
            return [*self._end_play(now), *self._begin_play(event)]
        if isinstance(event, Task):
            return [*self._end_task(now), *self._begin_task(event, now)]
        if isinstance(event, End):
            return [*self._end_play(now), *self._summary(event, now)]
        if isinstance(event, Tick):
            return self._tick(now)
        if isinstance(event, Started):
            self._waiting.append(event.host)
        elif isinstance(event, Retry):
            self._tries[event.host] = (event.attempt, event.attempts)
        elif isinstance(event, Message):
            before = self._messages.get(event.host)
            self._messages[event.host] = event.text if before is None else f"{before}\n{event.text}"
        elif isinstance(event, Diff):
            self._diffs[event.host] = event.text
        elif isinstance(event, Result):
            self._result(event, now)
        return []

    # Plays and roles

    def _begin_play(self, play: Play) -> list[Line]:
        self._play, self._silent, self._headed = play, list(play.roles), not play.name
        return self._head() if play.roles else []

    def _head(self) -> list[Line]:
        """The play's own line, before the first that belongs to it."""
        if self._headed:
            return []
        self._headed = True
        hosts = f": {self._names(self._play.hosts)}" if self._play.hosts else ""
        return self._wrapped("", f"{self._play.name}{hosts}", "")

    def _end_play(self, now: float) -> list[Line]:
        lines = [*self._end_task(now), *self._end_role(now)]
        if not self._broken:
            lines += self._nothing_to_do(len(self._silent))
        self._silent, self._broken = [], False
        return lines

    def _nothing_to_do(self, count: int) -> list[Line]:
        """One line for the first of the silent roles."""
        roles, self._silent = self._silent[:count], self._silent[count:]
        return self._wrapped("ok", f"{', '.join(roles)}: nothing to do", "ok") if roles else []

    def _end_role(self, now: float) -> list[Line]:
        role, self._role = self._role, ""
        if not role or not self._ran or self._broken:  # its errors have been shown
            return []
        took = self._took(now - self._role_begun)
        changes = f": {_count(self._changes, 'change')}" if self._changes else ""
        return self._wrapped("ok", f"{role}{changes}{took}", "ok")

    # Tasks

    def _forget_task(self, task: Task | None, now: float) -> None:
        self._task, self._task_begun, self._next_wait = task, now, now + FIRST_WAIT
        self._waiting: list[str] = []
        self._tries: dict[str, tuple[int, int]] = {}
        self._messages: dict[str, str] = {}
        self._diffs: dict[str, str] = {}
        self._outcomes: dict[Outcome, list[str]] = {}
        self._errors: dict[str, tuple[Outcome, str]] = {}
        self._errors_since = now

    def _begin_task(self, task: Task, now: float) -> list[Line]:
        lines = []
        if task.role != self._role:
            lines = self._end_role(now)
            self._role, self._role_begun, self._changes, self._broken, self._ran = task.role, now, 0, False, False
        self._forget_task(task, now)
        return lines

    def _result(self, result: Result, now: float) -> None:
        if result.host in self._waiting:
            self._waiting.remove(result.host)
        self._outcomes.setdefault(result.outcome, []).append(result.host)
        self._ignored += result.outcome is Outcome.IGNORED
        if result.outcome in FAILURES:
            self._errors_since = now if not self._errors else self._errors_since
            self._errors[result.host] = (result.outcome, result.text)

    def _end_task(self, now: float) -> list[Line]:
        task = self._task
        if task is None:
            return []
        lines = self._first_result() + self._reported() + self._differences()
        changed = self._outcomes.get(Outcome.CHANGED, [])
        self._changes += len(changed)
        self._changed.update(changed)
        changed = [host for host in changed if host not in self._diffs]
        if changed:
            took = self._took(now - self._task_begun)
            lines += self._wrapped("changed", f"{task.name}: {self._names(changed)}{took}", "changed", "  ")
        lines += self._failures()
        self._forget_task(None, now)
        return [*self._head(), *lines] if lines else []

    def _first_result(self) -> list[Line]:
        """Once something of the role was not skipped: one line for the roles before that had nothing to do."""
        if self._ran or not self._role or not set(self._outcomes) - {Outcome.SKIPPED}:
            return []
        self._ran = True
        if self._role not in self._silent:
            return []
        lines = self._nothing_to_do(self._silent.index(self._role))
        self._silent.remove(self._role)
        return lines

    def _reported(self) -> list[Line]:
        lines = []
        groups = grouped(self._ordered(self._messages))
        for hosts, text in groups:
            named = len(groups) < 2 or hosts[0] in text.partition("\n")[0]
            head = "" if named else f"{listing(hosts)}: "
            lines += [Line(f"  {part}") for part in f"{head}{text}".rstrip("\n").split("\n")]
        return lines

    def _differences(self) -> list[Line]:
        """As they are, so that they can be copied."""
        lines = []
        for hosts, text in grouped_exactly(self._ordered(self._diffs)):
            name = self._task.name if self._task else ""
            lines += self._wrapped("changed", f"{name}: {self._names(hosts)}", "changed", "  ")
            lines += [Line(part) for part in text.rstrip("\n").split("\n")]
        return lines

    def _failures(self) -> list[Line]:
        """Each error once. One that only repeats another host's in other words follows from that one."""
        errors, self._errors = self._ordered(self._errors), {}
        if not errors or not self._task:
            return []
        lines = []
        name = f"{self._task.role}: {self._task.name}" if self._task.role else self._task.name
        for outcome, sign, note in ((Outcome.RESCUED, "note", "; its rescue follows"), (Outcome.FAILED, "failed", "")):
            texts = {host: text for host, (had, text) in errors.items() if had is outcome}
            lines += self._one_kind(f"{name}{NAME}{note}", sign, grouped(texts))
        if any(outcome is not Outcome.RESCUED for outcome, dummy in errors.values()):
            self._broken = True
            self._failed.update({} if self._task.once else dict.fromkeys(errors))
        dead = {host: text for host, (outcome, text) in errors.items() if outcome is Outcome.UNREACHABLE}
        return lines + [Line(f"{self._signs['failed']} {text}", "failed") for dummy, text in grouped(dead)]

    def _one_kind(self, head: str, sign: str, groups: list[tuple[list[str], str]]) -> list[Line]:
        lines = []
        causes = [group for group in groups if not _follows(group, groups)]
        for hosts, text in causes:
            where = f" ({self._names(hosts)})"
            if text.startswith(f"{listing(hosts)}:") or (self._task and self._task.once):
                where = ""
            lines += self._wrapped(sign, head.replace(NAME, where), sign)
            # What a rescue repeats.
            shown = "(as above)" if text in self._errors_shown else text.strip("\n")
            lines += [Line(f"  {part}", sign) for part in shown.split("\n")]
            self._errors_shown.add(text)
        stopped = [host for hosts, text in groups if (hosts, text) not in causes for host in hosts]
        if stopped:
            lines += self._wrapped("", f"For this, nothing is done on {self._names(stopped)}.", sign, "  ")
        return lines

    # Time

    def _tick(self, now: float) -> list[Line]:
        lines = []
        if self._errors and now - self._errors_since >= HELD:
            lines = self._first_result() + self._failures()
        if self._waiting and self._task and not self._task.prompts and now >= self._next_wait:
            self._next_wait += 2 * (self._next_wait - self._task_begun)
            lines += [Line(self._waited_for(now), "wait")]
        return [*self._head(), *lines] if lines else []

    def _waited_for(self, now: float) -> str:
        task = self._task
        name = "" if task is None else f"{task.role}: {task.name}" if task.role else task.name
        left = len(self._waiting)
        there = sum(map(len, self._outcomes.values())) + left
        hosts = f"{left} of {there} hosts" if left > 3 else ", ".join(self._waiting)
        tries = max((self._tries[host] for host in self._waiting if host in self._tries), default=None)
        tried = f", try {tries[0] + 1} of {tries[1]}" if tries else ""
        return f"{self._signs['wait']} {name}: waiting for {hosts}, {duration(now - self._task_begun)}{tried}"

    # The end

    def _summary(self, end: End, now: float) -> list[Line]:
        took = duration(now - (self._begun or now))
        ignored = f" {_count(self._ignored, 'failure')} ignored." if self._ignored else ""
        if any(end.failed.values()) or any(end.unreachable.values()):
            dead = [host for host in end.hosts if end.unreachable.get(host)]
            what = [listing(failed)] if (failed := [host for host in self._failed if host not in dead]) else []
            what += [f"no connection to {listing(dead)}"] if dead else []
            where = f": {'; '.join(what)}" if what else ""
            return self._wrapped("failed", f"Failed after {took}{where}.{ignored} {end.more}".rstrip(), "failed")
        verb, noun = ("Checked", "change to make") if end.check else ("Done", "change")
        total = sum(self._changed.values())
        counts: dict[int, list[str]] = {}
        for host in end.hosts:
            counts.setdefault(self._changed[host], []).append(host)
        parts = [f"{count} on {listing(hosts)}" for count, hosts in sorted(counts.items(), reverse=True) if count]
        text = (
            f"{_count(total, noun)} ({'; '.join(parts)})"
            if total
            else f"nothing {'to change' if end.check else 'changed'}"
        )
        return self._wrapped("ok", f"{verb} in {took}: {text}.{ignored}", "ok")

    # Texts

    def _names(self, hosts: Sequence[str]) -> str:
        """Return hosts in few words, in the order of the play."""
        if len(hosts) > 3 and set(hosts) == set(self._play.hosts):
            return f"all {len(hosts)} hosts"
        return listing(self._ordered(dict.fromkeys(hosts)))

    def _ordered(self, by_host: dict[str, T]) -> dict[str, T]:
        """Return the same in the order of the play."""
        places = {host: place for place, host in enumerate(self._play.hosts)}
        return dict(sorted(by_host.items(), key=lambda one: places.get(one[0], len(places))))

    def _took(self, seconds: float) -> str:
        return f" ({duration(seconds)})" if seconds >= WORTH_TELLING else ""

    def _wrapped(self, sign: str, text: str, style: str, indent: str = "") -> list[Line]:
        if not text:
            return []
        begin = f"{indent}{self._signs[sign]} " if sign else indent
        if not self.width:
            return [Line(begin + text, style)]
        rest = " " * len(begin)
        parts = textwrap.wrap(
            begin + text, self.width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
        )
        return [Line(part, style) for part in parts]


def _follows(group: tuple[list[str], str], groups: Iterable[tuple[list[str], str]]) -> bool:
    """Whether a text has the text of another group in it, which is its cause."""
    return any(other != group and other[1].strip().rstrip(".") in group[1] for other in groups if len(other[1]) > 20)


def _count(number: int, noun: str) -> str:
    first, dummy, rest = noun.partition(" ")
    return f"{number} {first}{'' if number == 1 else 's'}{f' {rest}' if rest else ''}"
