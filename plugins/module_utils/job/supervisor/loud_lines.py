# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which lines of the output of ranks warn or fail.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections import deque

from ..launcher_log import plain
from .progress import METRIC

_RANK_PREFIX = re.compile(r"^\[(?:rank|default)(\d+)\]:? ?")
_NOISE = re.compile(r"(?:^|:\d+: |\W)(?:Future|User|(?:Pending)?Deprecation|Syntax|Resource)Warning\b")
_ROUTINE = re.compile(r"\[(?:INFO|DEBUG)\b|\b(?:INFO|DEBUG)\b *[:\]|-]|\bNCCL INFO\b")
_SPEAKS = re.compile(
    r"(?<![=\w])(?:WARN|WARNING|ERROR|CRITICAL|FATAL)\b(?!=)"
    r"|^\s*(?:warning|error|fatal)\b\s*:"
    r"|\b[A-Z]\w*(?:Error|Exception|Interrupt|Warning)\b\s*(?::|$)|\bException\b"
    r"|^\[?[WEF]\d{4} \d\d:|^\[[WEF] "
    r"|Traceback \(most recent call last\)|terminate called|core dumped|Fatal Python error|OutOfMemory|out of memory"
    r"|^(?:\S+: line \d+:.*)?(?:Killed|Aborted|Terminated|Segmentation fault|Bus error)\b|Segmentation fault|Bus error"
    r"|oom-kill|No space left on device|what\(\): "
)
_TRACEBACK = "Traceback (most recent call last)"
_LINKS = ("During handling of the above", "The above exception was the direct cause")
_FRAME = re.compile(r"^(?:frame #\d+:|\s*#\d+ |\s*File \")")


def speaks(text: str) -> bool:
    """Whether a line by itself warns or fails; Python's own FutureWarning, UserWarning and the like do not."""
    line = _RANK_PREFIX.sub("", plain(text))
    return bool(_SPEAKS.search(line)) and not _NOISE.search(line) and not _ROUTINE.search(line)


class Loud:
    """Picks, from the output of one rank, the lines that warn or fail, with the whole of each traceback."""

    AFTER = 5
    """Lines after an exception's own that are passed on: what NCCL and Gloo add stands there."""

    def __init__(self, keep: int = 40) -> None:
        self._quiet: deque[str] = deque(maxlen=keep)
        self._trace = False
        self._more = 0
        self._swallow = False

    def feed(self, text: str) -> list[str]:
        """``text``: one or more whole lines. The loud ones, without control codes."""
        loud = []
        for raw in text.rstrip("\n").split("\n"):
            line = plain(raw)
            if self._is_loud(line):
                loud.append(line)
                self._quiet.clear()
            elif line:
                self._quiet.append(line)
        return loud

    def before(self, count: int | None = None) -> list[str]:
        """The last lines after all that were passed on, each given out once: for the time after a failure."""
        lines = list(self._quiet)[-count:] if count else list(self._quiet) if count is None else []
        self._quiet.clear()
        return lines

    def _is_loud(self, line: str) -> bool:
        swallow, self._swallow = self._swallow, False
        text = _RANK_PREFIX.sub("", line)
        if self._trace or _TRACEBACK in text:
            return self._in_trace(text)
        if _NOISE.search(text):
            self._swallow = True
            return False
        if swallow and text[:1].isspace():
            return False  # the source line that Python shows below its warning
        # torch puts [rankN]: before an exception, and before nothing else.
        loud = text.startswith(_LINKS) or speaks(text) or (text != line and line.startswith("[rank"))
        return loud or self._after_trace(text)

    def _in_trace(self, text: str) -> bool:
        if _TRACEBACK in text:
            self._trace = True
        elif text and not text[0].isspace() and not text.startswith(_LINKS):
            self._trace, self._more = False, self.AFTER  # the exception itself
        return bool(text)

    def _after_trace(self, text: str) -> bool:
        if self._more and _FRAME.match(text):
            return True
        goes_on = bool(self._more and text and not _ROUTINE.search(text) and not METRIC.search(text))
        self._more = self._more - 1 if goes_on else 0
        return goes_on
