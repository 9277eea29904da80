# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why a job failed: its log lines and exit codes, compared with the table in failures.py.

How a rank ended comes first: its signal, else the exception or text at its end. What stands before lines by which the
rank went on did not end it. Of several ranks the first that ended is named, unless it only lost another one.
Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .evidence import (
    LIKELY,
    NOT_KNOWN,
    PASSED,
    SYMPTOM,
    UNEXPLAINED,
    Finding,
    Seen,
    Stream,
    doubted,
    evidence,
    finding_of,
    grade_of,
    more_of,
    who_of,
)
from .exits import Ended, ExitMeaning, exit_meaning, exits_in
from .failure_search import known_failure
from .failures import BY_ID
from .supervisor.progress import METRIC
from .tracebacks import Tracebacks

LONGEST = 2000
"""Characters of a line that are searched."""
MOST_STREAMS = 4096
MOST_FINDINGS = 64
"""Findings that are returned at most."""
AFTER = 5
"""Lines after an exception that may be part of it: what NCCL and CUDA add stands there."""

_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_RANK = re.compile(r"\[rank(\d{1,9})\]: ?")
_DEFAULT = re.compile(r"\[default(\d+)\]: ?")
_ROUTINE = re.compile(r"\[INFO\] \[(?:launch|runner|multinode_runner)\.py:")
_LAUNCH = re.compile(r"\[launch\.py:\d")
_ERROR_WORDS = ("error", "exception", "fatal", "failed", "failure", "traceback", "abort", "denied", "refused", "cannot")
_NO_PROGRESS = ("wandb:", "Error", "ERROR", "Exception", "error:")
_NATURE = {
    "SIGKILL": ("container-memory", "host-memory-killed"),
    "SIGBUS": ("shm-full",),
    "SIGILL": ("illegal-instruction",),
}
"""By signal, the entries whose texts say why it came. What a rank prints before SIGABRT mostly does."""


@dataclass
class _Exit:
    node: str
    rank: int | None
    meaning: ExitMeaning
    order: int
    sure: bool = False
    """Whether it is known in which order they ended: launchers print their codes late."""


def _bookkeeping(line: str) -> bool:
    """Whether a launcher says in ``line`` that a rank has ended, with its command or its code: see exits_in()."""
    if "exit" in line and ("ssh exited with" in line or "(exitcode: " in line):
        return True
    return "traceback : " in line or (".py:" in line and _LAUNCH.search(line) is not None)


def _goes_on(line: str) -> bool:
    """Whether a rank shows in ``line`` that it trains: a figure of its steps, or a bar."""
    if "%|" not in line and (line[:1].isspace() or not METRIC.search(line)):
        return False
    return not any(word in line for word in _NO_PROGRESS)  # wandb repeats its figures at the end


class Diagnosis:
    """Reads the lines of a job in the order in which they come; what it keeps is bounded by nodes and ranks."""

    def __init__(self) -> None:
        self._streams: dict[tuple[str, int | None, str], Stream] = {}
        self._exits: list[_Exit] = []
        self._order = 0
        self._speaker: Stream | None = None
        self._more = 0

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
        if self._speaker is not None:
            stream = self._still(stream, line)
        stream.count += 1
        self._read_exit(stream, line)
        if "[INFO]" in line and _ROUTINE.search(line):
            return
        stream.last = line
        if _goes_on(line):
            stream.going += 1
            return
        trace = stream.traces.feed(line, self._order, stream.count, stream.going)
        if trace is not None and stream.rank is not None:
            self._speaker, self._more = stream, AFTER
        elif trace is None and not stream.traces.reading and not _bookkeeping(line):
            self._read_text(stream, line)

    def _still(self, stream: Stream, line: str) -> Stream:
        """Return the rank whose exception goes on in ``line``, where the launcher names it on the first line only."""
        speaker, self._more = self._speaker, self._more - 1
        if speaker is None or self._more < 0 or stream.node != speaker.node or _bookkeeping(line):
            self._speaker = None
            return stream
        return speaker if stream.rank is None and line[:1].isalpha() else stream

    def _read_text(self, stream: Stream, line: str) -> None:
        failure = known_failure(line)
        if failure is not None:
            old = stream.seen.get(failure.id)
            if old is None or stream.over(old.going):
                stream.seen[failure.id] = Seen(failure, self._order, stream.count, stream.going, line)
        small = line.lower()
        if any(word in small for word in _ERROR_WORDS):
            stream.first_error = stream.first_error or self._order
            shown = line.strip()[:300]
            if not stream.opening or stream.over(stream.opening[0]):
                stream.opening = stream.going, shown
                stream.errors.clear()
            else:
                stream.errors.append(shown)

    def exited(self, node: str, rank: int | None, code: int, launcher: str = "deepspeed") -> None:
        """Take the exit code of a rank, or of some rank of a node, in the order in which they ended.

        Not those of ranks that were ended on purpose.
        """
        self._order += 1
        self._ended(node, rank, Ended(code, launcher), sure=True)

    def _ended(self, node: str, rank: int | None, one: Ended, sure: bool = False) -> None:
        meaning = exit_meaning(one.code, one.launcher)
        for index, old in enumerate(self._exits):
            same = (old.meaning.signal, old.meaning.id) == (meaning.signal, meaning.id)
            same = same and (bool(meaning.signal) or old.meaning.code == one.code)
            if old.node in {node, ""} and (
                (rank is not None and old.rank == rank) or (same and None in {old.rank, rank})
            ):
                if sure and not old.sure:  # of which the order is known
                    del self._exits[index]
                    break
                if old.rank is None or not old.node:  # launchers say which rank it was only later
                    self._exits[index] = replace(old, rank=old.rank if rank is None else rank, node=old.node or node)
                if one.first:
                    self._exits[index] = replace(self._exits[index], order=0)
                return
        if len(self._exits) < MOST_STREAMS:
            self._exits.append(_Exit(node, rank, meaning, 0 if one.first else self._order, sure))

    def result(self, stalled: bool = False) -> list[Finding]:
        """Return what was found, the first cause first. ``stalled``: the job made no progress and was ended for it."""
        graded: list[tuple[int, bool, int, Finding]] = []
        ended: set[tuple[str, int | None, str]] = set()
        others = any(item.meaning.code for item in self._exits)
        spoken = {key: evidence(stream, stalled) for key, stream in self._streams.items()}
        for end in (item for item in self._exits if item.meaning.code != 0):
            theirs = [key for key in spoken if key[0] == end.node and end.rank in {None, self._streams[key].rank}]
            found = [item for key in theirs if key not in ended for item in spoken[key]]
            if end.rank is None and any(key in ended for key in theirs):
                continue  # which rank it was is known
            if end.meaning.signal in _NATURE:  # what the kernel or a queue says stands in no rank's log
                why = [item for key in spoken if key[:2] == ("", None) and key not in theirs for item in spoken[key]]
                found += [
                    (grade, order, replace(finding, node=end.node, rank=end.rank))
                    for grade, order, finding in why
                    if finding.id in _NATURE[end.meaning.signal]
                ]
            ended.update(theirs)
            graded += [
                (grade, False, end.order if end.sure or not end.order else order, finding)
                for grade, order, finding in self._why_ended(end, found)
            ]
        for key, items in spoken.items():
            if key not in ended:
                # Of a rank that has not ended, what stands at its end need not have ended it.
                graded += [
                    (grade, others, order, doubted(finding) if others else finding) for grade, order, finding in items
                ]
        if graded and all(item[0] >= SYMPTOM for item in graded) and any(item[0] == SYMPTOM for item in graded):
            early = next((item for item in self._exits if item.meaning.code == 0), None)
            if early is not None:
                finding = finding_of(BY_ID["ended-early"], early.node, early.rank, "", LIKELY)
                graded.append((UNEXPLAINED, False, early.order, finding))
        if not graded or (all(item[0] == PASSED for item in graded) and not self._exits):
            graded += self._first_errors()
        graded.sort(key=lambda item: item[:3])
        if graded and graded[0][3].rank is None:  # the same, where it is known of which rank
            same = (item for item in graded if item[0] == graded[0][0] and item[3].id == graded[0][3].id)
            named = next((item for item in same if item[3].rank is not None), graded[0])
            graded.remove(named)
            graded.insert(0, named)
        findings: list[Finding] = []
        for item in graded:
            finding = item[3]
            if all((finding.id, finding.node, finding.rank) != (old.id, old.node, old.rank) for old in findings):
                findings.append(finding)
            if len(findings) == MOST_FINDINGS:
                break
        return findings

    def _stream(self, node: str, rank: int | None, tag: str) -> Stream:
        key = (node, rank, tag)
        if key not in self._streams:
            if len(self._streams) >= MOST_STREAMS:  # no job has so many ranks: something else is being read
                key = ("", None, "")
            only = int(tag) if tag and not node else None  # one node: the rank on it is the rank
            known = key[1] if key[1] is not None else only
            self._streams.setdefault(key, Stream(key[0], known, Tracebacks(mixed=known is None)))
        return self._streams[key]

    def _read_exit(self, stream: Stream, line: str) -> None:
        for one in exits_in(line, stream.summary):
            rank = stream.rank if one.rank is None and not one.node else one.rank
            # torchrun's host may be "localhost", or another name of the node that prints it.
            node = stream.node if stream.node and one.launcher == "torchrun" else one.node
            self._ended("" if node == "localhost" else node or stream.node, rank, one)

    def _why_ended(self, end: _Exit, found: list[tuple[int, int, Finding]]) -> list[tuple[int, int, Finding]]:
        """Why a rank ended: its signal, unless what it printed says why that came; else what stands at its end."""
        meaning = end.meaning
        passed = [(PASSED, order, replace(finding, passed=True)) for grade, order, finding in found if grade != SYMPTOM]
        if meaning.signal and meaning.signal != "SIGABRT":
            why = [item for item in found if item[2].id in _NATURE.get(meaning.signal, ())]
            return [*(why or [self._by_code(end)]), *passed]
        # Python ends with 1 after an exception: another code does not come of having lost a rank.
        least = SYMPTOM if meaning.code != 1 and not meaning.signal else PASSED
        if all(item[0] >= least for item in found):
            return [self._by_code(end), *found]
        return found

    def _by_code(self, end: _Exit) -> tuple[int, int, Finding]:
        if not end.meaning.id:
            return UNEXPLAINED, end.order, self._unknown(end.node, end.rank, end.meaning)
        failure = BY_ID[end.meaning.id]
        reported = f"{who_of(end.node, end.rank)} ended with {end.meaning.text}"
        return grade_of(failure), end.order, finding_of(failure, end.node, end.rank, reported, LIKELY)

    def _first_errors(self) -> list[tuple[int, bool, int, Finding]]:
        streams = [stream for stream in self._streams.values() if stream.opening]
        if not streams:
            return []
        first = min(streams, key=lambda stream: stream.first_error)
        return [(UNEXPLAINED, False, first.first_error, self._unknown(first.node, first.rank, None))]

    def _unknown(self, node: str, rank: int | None, meaning: ExitMeaning | None) -> Finding:
        who = who_of(node, rank)
        lines: list[str] = []
        for stream in self._streams.values():
            if stream.node == node and rank in {None, stream.rank} and not lines:
                lines = stream.error_lines
        reported = f"{who} ended with {meaning.text} and printed no error" if meaning is not None else ""
        if lines:
            ended = f"; it ended with {meaning.text}" if meaning is not None else ""
            reported = f"the error lines of {who} are: " + " | ".join(lines) + ended
        line = lines[0] if lines else ""
        return Finding("unknown", "unknown", f"Not known; {reported}.", more_of(who), "", node, rank, line, NOT_KNOWN)


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
        if finding.kind != "symptom" and not finding.passed:
            return finding
        first = first or finding
    return first
