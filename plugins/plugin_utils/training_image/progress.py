# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads the log of a build with BuildKit (``--progress=plain``) as it grows: which steps run, and what each took. Pure.

A line begins with the number of its step: ``#9 [build 3/7] RUN …``, ``#9 12.3 text``, ``#9 DONE 62.2s``, ``#9 CACHED``,
``#9 ERROR: …``. Steps that run side by side are reported by turns. The form was read from engines 20.10 and 26.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(r"#(\d+) (.*)")
_HEAD = re.compile(r"\[([^\]]+)\] (RUN|COPY|ADD|FROM) (.*)")
_DONE = re.compile(r"DONE ([\d.]+)s")
_TITLE = re.compile(r"(?:--\S+ )*: '([^']+)'")
_LOAD = re.compile(r"[\d.]+ +Downloading (?:\S*/)?(\S+) \(([\d.]+ [MG]B)\)")
_REASON = re.compile(r"[\d.]+ (\S.*\bRemedy: .+)")
_SMALL = 20.0
"""Megabytes: downloads below that are not worth a line."""
_QUICK = 1.0
"""Seconds: steps that took less are not reported."""


@dataclass(frozen=True)
class Step:
    """A finished step; ``seconds`` is None where it came from the cache."""

    title: str
    seconds: float | None


class BuildLog:
    """Fed with pieces of the log, gives lines to print and keeps the steps that are done.

    ``reason`` is the last line of a step's own output that has a remedy, as our scripts print it before they fail.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reason = ""
        self._titles: dict[str, str] = {}
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """Return what is worth printing of the next piece."""
        lines = (self._rest + text).split("\n")
        self._rest = lines.pop()
        found = (self._line(line.rstrip("\r")) for line in lines)
        return [line for line in found if line]

    def _line(self, line: str) -> str:
        match = _LINE.match(line)
        if match is None:
            return ""
        number, reported = match[1], match[2]
        head = _HEAD.match(reported)
        if head is not None:
            if number in self._titles:
                return ""
            self._titles[number] = title(head[2], head[3])
            return f"{self._titles[number]} …" if head[2] == "RUN" else ""
        name = self._titles.get(number, "Write the image" if reported.startswith("exporting to") else "")
        if name:
            self._titles[number] = name
        return self._of_a_step(name, reported) if name else ""

    def _of_a_step(self, name: str, reported: str) -> str:
        reason = _REASON.match(reported)
        if reason is not None:
            self.reason = reason[1]
        done = _DONE.match(reported)
        if done is not None:
            seconds = float(done[1])
            self.steps.append(Step(name, seconds))
            return f"{name}: {seconds:.0f} s" if seconds >= _QUICK else ""
        if reported == "CACHED":
            self.steps.append(Step(name, None))
            return f"{name}: from an earlier build"
        load = _LOAD.match(reported)
        if load is not None:
            size, unit = load[2].split()
            return f"  Downloading {load[1]} ({load[2]})" if unit == "GB" or float(size) >= _SMALL else ""
        return f"{name}: failed" if reported.startswith("ERROR") else ""


def title(verb: str, rest: str) -> str:
    """Return the words of a step: those in the Dockerfile (``: 'words' &&``), or the beginning of its command."""
    given = _TITLE.match(rest)
    if given is not None:
        return given[1]
    words = " ".join(word for word in rest.split() if not word.startswith("--"))
    shown = f"{verb} {words}"
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def summary(steps: list[Step]) -> str:
    """Return what the steps took, the longest first, in one line."""
    taken = sorted(((step.seconds or 0.0, step.title) for step in steps), reverse=True)
    return "; ".join(f"{name} {seconds:.0f} s" for seconds, name in taken if seconds >= _QUICK)
