# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Python's tracebacks in the log of a rank: where each was raised, and which of several ended it.

Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .failure_search import known_failure
from .failures import Failure

WENT_ON = 2
"""Lines of progress after which a rank is known to have gone on; bars are drawn once more when a program ends."""
WENT_ON_MIXED = 4
"""The same where the lines of several ranks stand in one log."""
TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_APART = ("Exception ignored in", "Exception in thread ", "--- Logging error ---")
"""Before a traceback that ends nothing: that of a destructor, a thread or a handler of the log."""
_PASSED_ON = re.compile(r"subprocess\.CalledProcessError: Command '\['/|.*ChildFailedError")
"""accelerate's and torchrun's own exceptions after a rank's end: they say nothing of the cause."""
_FRAME = re.compile(r'\s+(?:\|\s+)?File "([^"]+)", line (\d+)')
_GROUP = re.compile(r"\s+\| {0,2}(?=\S)")
"""Before the lines of an exception group, but for those of its frames."""
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_INSTALLED = re.compile(r"/(?:site|dist)-packages/")
_PYTHONS = re.compile(r"/lib/python[\d.]+/|^<")
_ORDINARY = re.compile(
    r"(?:[a-z_]+\.){0,3}(?:Arithmetic|Assertion|Attribute|Index|Key|Lookup|Name|NotImplemented|Overflow|Recursion|Runtime"
    r"|Syntax|Indentation|Type|Unbound[A-Za-z]*|Unicode[A-Za-z]*|Value|ZeroDivision|JSONDecode)Error\b|StopIteration\b"
)
_FOREIGN = re.compile(
    r"CUDA|Cuda|cuda\b|NCCL|nccl|NVML|CUBLAS|CUDNN|cuDNN|HIP error|INTERNAL ASSERT|ProcessGroup|c10d|[Gg]loo|ibv_"
    r"|[Tt]riton"
)
"""Of an exception that code without frames raised: a library's own words."""


@dataclass
class Trace:
    """One traceback. ``start`` and ``end`` are lines of the rank; ``going``: how often it had shown progress."""

    order: int
    start: int
    going: int = 0
    end: int = 0
    frames: list[tuple[str, str]] = field(default_factory=list)
    source: str = ""
    line: str = ""
    known: Failure | None = None
    chained: bool = False
    apart: bool = False

    @property
    def exact(self) -> bool:
        return self.known is not None and self.known.exact

    def of_script(self) -> tuple[str, str] | None:
        """Return file and line of the script, where the script raised it itself.

        Between its last frame and the exception stands no installed library, and the exception is not one by which a
        library without frames speaks.
        """
        mine = [at for at, (path, dummy) in enumerate(self.frames) if not _library(path)]
        if not mine or _FOREIGN.search(self.line):
            return None
        between = self.frames[mine[-1] + 1 :]
        if any(_INSTALLED.search(path) for path, dummy in between):
            return None
        return self.frames[mine[-1]] if not between or _ORDINARY.match(self.line) else None

    def called(self) -> str:
        """Say where it was raised: in which file of a library, and where the script called it."""
        inner = next((path for path, dummy in reversed(self.frames) if _library(path)), "")
        mine = next((f"{path}, line {line}" for path, line in reversed(self.frames) if not _library(path)), "")
        name = inner.rpartition("-packages/")[2] or inner
        return "; ".join(([f"raised in {name}"] if name else []) + ([f"called from {mine}"] if mine else []))


def _library(path: str) -> bool:
    return bool(_INSTALLED.search(path) or _PYTHONS.search(path))


class Tracebacks:
    """The tracebacks of one rank, or of several whose lines stand in one log (``mixed``)."""

    def __init__(self, mixed: bool) -> None:
        self._mixed = mixed
        self._open: Trace | None = None
        self._chained = self._apart = False
        self.last: Trace | None = None
        """The one that ended the rank, as far as is known."""

    def over(self, then: int, now: int) -> bool:
        """Whether the rank went on, by how often it had shown progress: what it printed then ended nothing."""
        return now - then >= (WENT_ON_MIXED if self._mixed else WENT_ON)

    @property
    def reading(self) -> bool:
        """Whether the last line was part of a traceback."""
        return self._open is not None

    def feed(self, line: str, order: int, count: int, going: int) -> Trace | None:
        """Take a line; return the traceback that it ends, if it does."""
        if line.startswith(_CHAINED):
            self._chained = True
            return None
        if line.startswith(_APART):
            self._apart = True
            return None
        if TRACEBACK in line:
            nested = not line.startswith(TRACEBACK) and self.last is not None  # of a data loader's worker
            self._open = Trace(order, count, going, chained=self._chained or nested, apart=self._apart)
            self._chained = self._apart = False
            return None
        trace = self._open
        if trace is None:
            return None
        line = _GROUP.sub("", line, count=1) if line[:1].isspace() else line
        if line[:1].isspace() or not _EXCEPTION.match(line):
            frame = _FRAME.match(line) if len(trace.frames) < 1000 else None
            if frame is not None:
                trace.frames.append((frame.group(1), frame.group(2)))
            elif line.strip("^~ "):
                trace.source = line
            return None
        self._open = None
        trace.end, trace.line = count, line
        if not _PASSED_ON.match(line):
            trace.known = known_failure(line, [*(path for path, dummy in trace.frames), trace.source])
            self._keep(trace)
        return trace

    def _keep(self, trace: Trace) -> None:
        old = self.last
        if old is not None and self.over(old.going, trace.going):
            old = None
        if trace.apart or (old is not None and self._explained(old, trace)):
            return
        if old is not None and trace.known is None and all(_library(path) for path, dummy in trace.frames):
            trace.frames = old.frames + trace.frames
        self.last = trace

    def _explained(self, old: Trace, new: Trace) -> bool:
        """Whether the earlier one explains the later."""
        symptom = new.known is not None and not new.known.exact
        if new.chained:
            return old.exact
        if self._mixed:  # of another rank, perhaps
            return old.known is None or old.known.kind != "symptom" or symptom
        return symptom and (old.exact or old.known is None)
