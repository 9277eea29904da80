# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What one rank printed, and what of it stands at its end: the evidence from which diagnose.py says why a job failed.

Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field, replace

from .exits import Summary
from .failures import BY_ID, FAILURES, Failure
from .tracebacks import Trace, Tracebacks

ERROR_LINES = 3
"""Error lines of a rank that are quoted, for a failure that no text explains."""
NEAR = 40
"""Lines between a text and the exception that ended the rank: a text further up did not end it."""
CERTAIN, LIKELY, NOT_KNOWN = "certain", "likely", "not known"

_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception)\b")
"""An exception, the traceback of which is not in the log."""
_MILD = ("WARN", "INFO", "Warning", "warning", "retry", "Retry", "ignor")
_BUILDING = (
    "PyTorch extensions root",
    "Detected CUDA files, patching ldflags",
    "Emitting ninja build file",
    "Loading extension module",
)
EXACT, UNEXPLAINED, GENERAL, SYMPTOM, PASSED = range(5)
"""How much a finding says; with its place in time it is what findings are sorted by."""
_PLACE = {failure.id: place for place, failure in enumerate(FAILURES)}


@dataclass(frozen=True)
class Finding:
    """What a line, an exception or an exit code says about a failure. ``confidence``: certain, likely or not known."""

    id: str
    kind: str
    cause: str
    remedy: str
    setting: str = ""
    node: str = ""
    rank: int | None = None
    line: str = ""
    confidence: str = LIKELY
    passed: bool = False
    """The rank went on after it, so that it did not end the job."""


@dataclass
class Seen:
    failure: Failure
    order: int
    at: int
    going: int
    line: str


@dataclass
class Stream:
    """What one rank, or one node's launcher, has printed so far."""

    node: str
    rank: int | None
    traces: Tracebacks
    count: int = 0
    going: int = 0
    last: str = ""
    first_error: int = 0
    opening: tuple[int, str] | None = None
    """The first error line since it last went on, with its progress then."""
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=ERROR_LINES - 1))
    """The last ones after it."""
    seen: dict[str, Seen] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)

    def over(self, going: int) -> bool:
        """Whether the rank went on after what it printed when its progress was ``going``."""
        return self.traces.over(going, self.going)

    @property
    def error_lines(self) -> list[str]:
        return [*([self.opening[1]] if self.opening else []), *self.errors]

    @property
    def trace(self) -> Trace | None:
        """The exception that ended it."""
        trace = self.traces.last
        return None if trace is None or self.over(trace.going) else trace


def evidence(stream: Stream, stalled: bool) -> list[tuple[int, int, Finding]]:
    """What stands at the end of a rank's log, and what it printed before it went on."""
    graded: list[tuple[int, int, Finding]] = []
    trace = stream.trace
    place = trace.of_script() if trace is not None and trace.known is None else None
    settled = trace is not None and (trace.exact or place is not None)
    for seen in stream.seen.values():
        failure, grade = seen.failure, grade_of(seen.failure)
        old = stream.over(seen.going) or (trace is not None and seen.at < trace.start - NEAR)
        if old or settled or (failure.passing and any(word in seen.line for word in _MILD)):
            if grade == SYMPTOM:
                continue
            grade = PASSED
        elif failure.passing and not _RAISED.match(seen.line):
            grade = max(grade, GENERAL)
        found = finding_of(failure, stream.node, stream.rank, seen.line, CERTAIN if grade == EXACT else LIKELY)
        graded.append((grade, seen.order, replace(found, passed=grade == PASSED)))
    if trace is not None and trace.known is not None:
        sure = CERTAIN if trace.exact else LIKELY
        raised = finding_of(trace.known, stream.node, stream.rank, trace.line, sure)
        where = trace.called()
        if raised.kind == "script" and where:
            raised = replace(raised, cause=f"{raised.cause.rstrip('.')} ({where}).")
        graded.append((grade_of(trace.known), trace.order, raised))
    elif trace is not None and place is not None:
        graded.append((EXACT, trace.order, _own(trace, place, stream.node, stream.rank)))
    elif trace is not None and not any(item[0] in {EXACT, GENERAL} for item in graded):
        graded.append((UNEXPLAINED, trace.order, _of_library(trace, stream)))
    if stalled and any(text in stream.last for text in _BUILDING):
        failure = BY_ID["extension-lock"]
        graded.append((EXACT, 0, finding_of(failure, stream.node, stream.rank, stream.last, LIKELY)))
    # Of what is true of several causes, the more special stands further up in the table.
    first = min((item[1] for item in graded if item[0] == GENERAL), default=0)
    general = sorted((item for item in graded if item[0] == GENERAL), key=lambda item: _PLACE[item[2].id])
    return [*(item for item in graded if item[0] != GENERAL), *((GENERAL, first, item[2]) for item in general)]


def doubted(finding: Finding) -> Finding:
    return replace(finding, confidence=LIKELY) if finding.confidence == CERTAIN else finding


def who_of(node: str, rank: int | None) -> str:
    who = f"rank {rank}" if rank is not None else ("a rank" if node else "the job")
    return f"{who} on {node}" if node else who


def more_of(who: str) -> str:
    return (
        f"Read the whole log of {who}; with PYTHONFAULTHANDLER: 1 in deepspeed_launch_environment and nccl_env_debug: "
        "INFO it says more."
    )


def grade_of(failure: Failure) -> int:
    if failure.kind == "symptom":
        return SYMPTOM
    return EXACT if failure.exact else GENERAL


def finding_of(failure: Failure, node: str, rank: int | None, line: str, sure: str) -> Finding:
    shown = line.strip()[:500]
    return Finding(failure.id, failure.kind, failure.cause, failure.remedy, failure.setting, node, rank, shown, sure)


def _own(trace: Trace, place: tuple[str, str], node: str, rank: int | None) -> Finding:
    """An exception that the script raised itself."""
    line = trace.line.strip()[:500]
    cause = f"{line} (raised at {place[0]}, line {place[1]})".replace("\n", " ")
    remedy = "Correct the script or its data; the log of that rank has the whole traceback."
    return Finding("script-exception", "script", cause, remedy, "", node, rank, line, CERTAIN)


def _of_library(trace: Trace, stream: Stream) -> Finding:
    """An exception out of a library that the table does not know."""
    who, line = who_of(stream.node, stream.rank), trace.line.strip()[:500]
    lines = [*(error for error in stream.error_lines[: ERROR_LINES - 1] if error not in line), line]
    where = trace.called()
    cause = f"Not known; the error lines of {who} are: {' | '.join(lines)}" + (f" ({where})." if where else ".")
    return Finding("unknown-exception", "unknown", cause, more_of(who), "", stream.node, stream.rank, line, NOT_KNOWN)
