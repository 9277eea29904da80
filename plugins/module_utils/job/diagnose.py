# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why a job failed: its log lines and exit codes, compared with the table in failures.py.

A cause goes before its symptoms, and of several causes the first in time is named: when one rank ends, the others print
more and louder. Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .exits import ExitMeaning, exit_meaning, exits_in
from .failure_search import known_failure
from .failures import BY_ID, Failure

LONGEST = 2000
"""Characters of a line that are searched."""
ERROR_LINES = 5
"""First error lines of a rank that are kept, for a failure that no text explains."""
NEAR = 40
"""Lines between a text and the exception that ended the rank: a text further up did not end it."""
MOST_STREAMS = 4096
MOST_FINDINGS = 64
"""Findings that are returned at most."""

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RANK = re.compile(r"\[rank(\d{1,9})\]: ?")
_DEFAULT = re.compile(r"\[default(\d+)\]: ?")
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "([^"]+)", line (\d+)')
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::|$)")
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python[\d.]+/|^<")
_ROUTINE = re.compile(r"\[INFO\] \[(?:launch|runner|multinode_runner)\.py:")
_LAUNCH = re.compile(r"\[launch\.py:\d")
_ERROR_WORDS = ("error", "exception", "fatal", "failed", "failure", "traceback", "abort", "denied", "refused", "cannot")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_PASSED_ON = "ChildFailedError"
"""torchrun's own exception after a rank's end: it says nothing of the cause."""
_BUILDING = (
    "PyTorch extensions root",
    "Detected CUDA files, patching ldflags",
    "Emitting ninja build file",
    "Loading extension module",
)

_EXACT, _UNEXPLAINED, _GENERAL, _SYMPTOM = range(4)


@dataclass(frozen=True)
class Finding:
    """What a line, an exception or an exit code says about a failure."""

    id: str
    kind: str
    cause: str
    remedy: str
    setting: str = ""
    node: str = ""
    rank: int | None = None
    line: str = ""


@dataclass
class _Seen:
    failure: Failure
    order: int
    at: int
    line: str


@dataclass
class _Trace:
    order: int
    start: int
    end: int = 0
    frames: list[tuple[str, str]] = field(default_factory=list)
    source: str = ""
    line: str = ""
    known: Failure | None = None


@dataclass
class _Stream:
    """What one rank, or one node's launcher, has printed so far."""

    node: str
    rank: int | None
    count: int = 0
    last: str = ""
    first_error: int = 0
    errors: list[str] = field(default_factory=list)
    seen: dict[str, _Seen] = field(default_factory=dict)
    open: _Trace | None = None
    trace: _Trace | None = None
    torchrun_rank: int | None = None


@dataclass
class _Exit:
    node: str
    rank: int | None
    meaning: ExitMeaning
    order: int


def _bookkeeping(line: str) -> bool:
    """Whether a launcher says in ``line`` that a rank has ended, with its command or its code: see exits_in()."""
    if "exit" in line and ("ssh exited with" in line or "(exitcode: " in line):
        return True
    return "traceback : " in line or (".py:" in line and _LAUNCH.search(line) is not None)


class Diagnosis:
    """Reads the lines of a job in the order in which they come; what it keeps is bounded by nodes and ranks."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, int | None, str], _Stream] = {}
        self._exits: list[_Exit] = []
        self._order = 0

    def feed(self, node: str, rank: int | None, text: str) -> None:
        """Take one line of a rank, or, with rank None, of a node's launcher."""
        self._order += 1
        tag = ""
        line = text[:LONGEST].rstrip()
        if "\x1b" in line or "\r" in line:
            line = _CONTROL.sub("", next((piece for piece in reversed(line.split("\r")) if piece.strip()), ""))
        if line.startswith("[default"):
            local = _DEFAULT.match(line)
            if local:
                line = line[local.end() :]
                tag = local.group(1)  # the rank on its node only
        if line.startswith("[rank"):
            named = _RANK.match(line)
            if named:
                line = line[named.end() :]
                rank = int(named.group(1)) if rank is None else rank
        if not line:
            return
        stream = self._stream(node, rank, tag if rank is None else "")
        stream.count += 1
        self._read_exit(stream, line)
        if "[INFO]" in line and _ROUTINE.search(line):
            return
        stream.last = line
        exception = self._read_traceback(stream, line)
        if exception is None and not _bookkeeping(line):
            failure = known_failure(line)
            if failure is not None and failure.id not in stream.seen:
                stream.seen[failure.id] = _Seen(failure, self._order, stream.count, line)
            if len(stream.errors) < ERROR_LINES:
                small = line.lower()
                if any(word in small for word in _ERROR_WORDS):
                    stream.first_error = stream.first_error or self._order
                    stream.errors.append(line.strip()[:300])

    def exited(self, node: str, rank: int | None, code: int, launcher: str = "deepspeed") -> None:
        """Take the exit code of a rank, or of some rank of a node. Not those of ranks that were ended on purpose."""
        self._order += 1
        meaning = exit_meaning(code, launcher)
        for index, old in enumerate(self._exits):
            same = (old.meaning.signal, old.meaning.id) == (meaning.signal, meaning.id)
            same = same and (bool(meaning.signal) or old.meaning.code == code)
            if old.node == node and ((rank is not None and old.rank == rank) or (same and None in (old.rank, rank))):
                if old.rank is None and rank is not None:  # launchers say which rank it was only later
                    self._exits[index] = replace(old, rank=rank)
                return
        if len(self._exits) < MOST_STREAMS:
            self._exits.append(_Exit(node, rank, meaning, self._order))

    def result(self, stalled: bool = False) -> list[Finding]:
        """Return what was found, the first cause first. ``stalled``: the job made no progress and was ended for it."""
        graded: list[tuple[int, int, Finding]] = []
        for stream in self._streams.values():
            graded += self._of_stream(stream, stalled)
        explained = {(item[2].node, item[2].rank) for item in graded if item[0] == _EXACT}
        graded += self._of_exits(explained, {(item[2].node, item[2].rank) for item in graded})
        if graded and all(item[0] == _SYMPTOM for item in graded):
            early = next((item for item in self._exits if item.meaning.code == 0), None)
            if early is not None:
                graded.append((_UNEXPLAINED, early.order, _finding(BY_ID["ended-early"], early.node, early.rank, "")))
        if not graded:
            graded += self._first_errors()
        graded.sort(key=lambda item: item[:2])
        findings: list[Finding] = []
        for dummy, dummy, finding in graded:
            if all((finding.id, finding.node, finding.rank) != (old.id, old.node, old.rank) for old in findings):
                findings.append(finding)
            if len(findings) == MOST_FINDINGS:
                break
        return findings

    def _stream(self, node: str, rank: int | None, tag: str) -> _Stream:
        key = (node, rank, tag)
        if key not in self._streams:
            if len(self._streams) >= MOST_STREAMS:  # no job has so many ranks: something else is being read
                key = ("", None, "")
            only = int(tag) if tag and not node else None  # one node: the rank on it is the rank
            self._streams.setdefault(key, _Stream(key[0], key[1] if key[1] is not None else only))
        return self._streams[key]

    def _read_exit(self, stream: _Stream, line: str) -> None:
        named, codes = exits_in(line)
        if named is not None:
            stream.torchrun_rank = named
        for node, code, launcher in codes:
            rank = stream.torchrun_rank if launcher == "torchrun" and stream.rank is None else stream.rank
            self.exited(node or stream.node, None if node else rank, code, launcher)
            stream.torchrun_rank = None

    def _read_traceback(self, stream: _Stream, line: str) -> _Trace | None:
        """Follow a traceback; return it where ``line`` is the exception that ends it."""
        if _TRACEBACK in line:
            stream.open = _Trace(self._order, stream.count)
            return None
        trace = stream.open
        if trace is None or line[:1].isspace() or not _EXCEPTION.match(line):
            frame = _FRAME.match(line) if trace is not None and len(trace.frames) < 1000 else None
            if trace is not None and frame is not None:
                trace.frames.append((frame.group(1), frame.group(2)))
            elif trace is not None and line.strip("^~ "):
                trace.source = line
            return None
        stream.open = None
        if _PASSED_ON in line:
            return trace
        trace.end, trace.line = stream.count, line
        trace.known = known_failure(line, [*(path for path, dummy in trace.frames), trace.source])
        old = stream.trace
        if old is not None and old.known is not None and not old.known.general and old.known.kind != "symptom":
            return trace  # the first one explains the rest
        if trace.known is None and not any(not _LIBRARY.search(path) for path, dummy in trace.frames):
            trace.frames = (old.frames if old is not None else []) + trace.frames
        stream.trace = trace
        return trace

    def _of_stream(self, stream: _Stream, stalled: bool) -> list[tuple[int, int, Finding]]:
        graded = []
        trace = stream.trace
        near = False
        for seen in stream.seen.values():
            if trace is not None and seen.at < trace.start - NEAR:
                continue  # the rank went on for long after this, and ended of something else
            exact = not seen.failure.general and seen.failure.kind != "symptom"
            near = near or (exact and trace is not None and seen.at <= trace.end + NEAR)
            graded.append(
                (_grade(seen.failure), seen.order, _finding(seen.failure, stream.node, stream.rank, seen.line))
            )
        if trace is not None and trace.known is not None:
            graded.append(
                (_grade(trace.known), trace.order, _finding(trace.known, stream.node, stream.rank, trace.line))
            )
        elif trace is not None and not near:
            graded.append((_EXACT, trace.order, _own(trace, stream.node, stream.rank)))
        if stalled and any(text in stream.last for text in _BUILDING):
            graded.append((_EXACT, 0, _finding(BY_ID["extension-lock"], stream.node, stream.rank, stream.last)))
        return graded

    def _of_exits(
        self, explained: set[tuple[str, int | None]], spoken: set[tuple[str, int | None]]
    ) -> list[tuple[int, int, Finding]]:
        graded = []
        for item in self._exits:
            whole_node = item.rank is None
            if item.meaning.code == 0 or (item.node, item.rank) in explained:
                continue
            if whole_node and any(node == item.node for node, dummy in explained):
                continue
            if item.meaning.id:
                failure = BY_ID[item.meaning.id]
                reported = f"{_who(item.node, item.rank)} ended with {item.meaning.text}"
                graded.append((_grade(failure), item.order, _finding(failure, item.node, item.rank, reported)))
            elif (item.node, item.rank) not in spoken and not (
                whole_node and any(n == item.node for n, dummy in spoken)
            ):
                graded.append((_UNEXPLAINED, item.order, self._unknown(item.node, item.rank, item.meaning)))
        return graded

    def _first_errors(self) -> list[tuple[int, int, Finding]]:
        streams = [stream for stream in self._streams.values() if stream.errors]
        if not streams:
            return []
        first = min(streams, key=lambda stream: stream.first_error)
        return [(_UNEXPLAINED, first.first_error, self._unknown(first.node, first.rank, None))]

    def _unknown(self, node: str, rank: int | None, meaning: ExitMeaning | None) -> Finding:
        who = _who(node, rank)
        lines: list[str] = []
        for stream in self._streams.values():
            if stream.errors and stream.node == node and rank in (None, stream.rank) and not lines:
                lines = stream.errors
        reported = f"{who} ended with {meaning.text} and printed no error" if meaning is not None else ""
        if lines:
            ended = f"; it ended with {meaning.text}" if meaning is not None else ""
            reported = f"the first error lines of {who} are: " + " | ".join(lines) + ended
        remedy = f"Read the whole log of {who}; the lines before its last ones mostly say more."
        return Finding(
            "unknown", "unknown", f"Not known; {reported}.", remedy, "", node, rank, lines[0] if lines else ""
        )


def _who(node: str, rank: int | None) -> str:
    who = f"rank {rank}" if rank is not None else ("a rank" if node else "the job")
    return f"{who} on {node}" if node else who


def _grade(failure: Failure) -> int:
    if failure.kind == "symptom":
        return _SYMPTOM
    return _GENERAL if failure.general else _EXACT


def _finding(failure: Failure, node: str, rank: int | None, line: str) -> Finding:
    shown = line.strip()[:500]
    return Finding(failure.id, failure.kind, failure.cause, failure.remedy, failure.setting, node, rank, shown)


def _own(trace: _Trace, node: str, rank: int | None) -> Finding:
    """An exception that the table does not know: the user's own, where it passed through a file of theirs."""
    line = trace.line.strip()[:500]
    mine = [(path, number) for path, number in trace.frames if not _LIBRARY.search(path)]
    if mine:
        path, number = mine[-1]
        cause = f"{line} (raised at {path}, line {number})".replace("\n", " ")
        remedy = "Correct the script or its data; the log of that rank has the whole traceback."
        return Finding("script-exception", "script", cause, remedy, "", node, rank, line)
    cause = f"Not known; the first error lines of {_who(node, rank)} are: {line}."
    remedy = "Compare the releases of the libraries in the image with those the script was written for."
    return Finding("unknown-exception", "environment", cause, remedy, "", node, rank, line)


def diagnose(lines: Iterable[tuple[str, int | None, str]]) -> list[Finding]:
    """Return what the lines (node, rank, text) of a job say about its failure, the first cause first."""
    diagnosis = Diagnosis()
    for node, rank, text in lines:
        diagnosis.feed(node, rank, text)
    return diagnosis.result()


def first_cause(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that began it: none but a symptom where nothing else was found."""
    first = None
    for finding in findings:
        if finding.kind != "symptom":
            return finding
        first = first or finding
    return first
