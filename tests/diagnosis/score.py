# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How well the collection says why a job ended: each case of the corpus, judged as supervisor or filter judge it.

Usage: python -m tests.diagnosis.score [--half tuned|held|all] [--json FILE] [--show ID]

A job with exit codes or nodes that have gone is judged as the supervisor on rank 0's node does, from what its filter of
lines lets through; a log alone as the filter `diagnose` does.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2] / "collections")]

from ansible_collections.swarmspeed.cluster.plugins.filter.diagnose import diagnose
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.evidence import Finding
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.members import ranks_by_node
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.judge import Failure, Judge
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.nodes import Nodes
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.rank_log_filter import RankLogFilter
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.restarts import Restarts
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.diagnosis.launcher_log import split_log

from tests.diagnosis.cases import Case, load

SILENT = 30.0
"""Seconds since the last sign of life of a node that has gone."""


@dataclass(frozen=True)
class Answer:
    """What the collection says of a case."""

    text: str
    node: str
    rank: int | None
    known: bool
    restart: bool
    id: str = ""
    confidence: str = ""


@dataclass(frozen=True)
class Mark:
    """How an answer compares with the truth."""

    id: str
    verdict: str
    restart: str
    confidence: str
    why: str
    answer: Answer


class _Hub:
    """The connections to the other nodes."""

    def __init__(self, gone: Iterable[str]) -> None:
        self._gone = dict.fromkeys(gone, SILENT)

    def gone(self, _silence: float) -> dict[str, float]:
        return self._gone


class _Job(Nodes):
    """The leader's part of a supervisor, at the end of a job."""

    def __init__(self, case: Case) -> None:
        members = [{"name": name, "slots": list(range(count))} for name, count in case.nodes.items()]
        spec = {"launcher": case.launcher, "transport": "direct", "nodes": len(members)}
        super().__init__(Path(), Namespace(silence=0.0))
        self._case, self._nodes = case, {rank: node for node, ranks in ranks_by_node(members).items() for rank in ranks}
        self.judge = Judge(spec, members, len(self._nodes))
        self.hub = _Hub(case.gone) if case.gone else None  # type: ignore[assignment]
        self._lost_at = {}

    def missing(self) -> list[str]:
        return []

    def tick(self) -> None:
        """No message comes any more."""

    def rank_codes(self) -> dict[int, int]:
        return dict(self._case.exits)

    def codes(self) -> dict[str, int | None]:
        """A launcher ends with the code of its first rank that failed, torchrun with 1."""
        codes: dict[str, int | None] = {}
        for node in self._case.nodes:
            ends = [code for rank, code in self._case.exits if self._nodes[rank] == node]
            failed = next((code for code in ends if code), 0)
            own = failed if self._case.launcher == "deepspeed" else int(bool(failed))
            codes[node] = own & 0xFF if ends else None
        return codes

    def read(self) -> None:
        """Read the log as the leader gets it: of ranks above 0 what warns or fails, and in the end their last lines."""
        filters: dict[str, RankLogFilter] = {}
        for node, rank, line in split_log(self._case.log(), list(self._case.nodes)):
            for passed in filters.setdefault(node, RankLogFilter()).on_line(rank, line, 0.0)[0]:
                self.judge.feed(node, rank, passed)
        for node, one in filters.items():
            ends = {rank: code for rank, code in self._case.exits if self._nodes[rank] == node}
            for rank, line in one.final_lines(ends):
                self.judge.feed(node, rank, line)
        self.judge.finish()

    def failure(self) -> Failure | None:
        if self._case.gone and not self._case.exits:
            return self._has_gone(self._case.gone[0], SILENT)
        return self.verdict()


def _restart(failure: Failure) -> bool:
    return Restarts({"resume": "auto", "restarts": 3}, []).allowed(failure)


def _words(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def answer(case: Case) -> Answer:
    """Ask the collection."""
    if case.exits or case.gone:
        job = _Job(case)
        job.read()
        failure = job.failure()
        if failure is None:
            return Answer("The job did not fail.", "", None, True, False)
        found = failure.finding
        known = found is None or not found.id.startswith("unknown")
        # The reason also quotes a line of the log and says how the rank ended, which is no answer by itself.
        text = _words(found.cause, found.remedy, found.setting) if found and known else failure.reason
        confidence = getattr(failure, "confidence", "") or getattr(found, "confidence", "")
        return Answer(text, failure.node, failure.rank, known, _restart(failure), found.id if found else "", confidence)
    reported = diagnose(case.log(), list(case.nodes))
    text = _words(reported["cause"], reported["remedy"], reported["setting"])
    names = Finding.__dataclass_fields__
    finding = Finding(**{name: value for name, value in reported.items() if name in names})
    restart = _restart(Failure(text, finding.node, finding.rank, finding=finding))
    return Answer(
        text, finding.node, finding.rank, reported["known"], restart, finding.id, str(reported.get("confidence", ""))
    )


def _misplaced(case: Case, given: Answer) -> tuple[str, str]:
    """Whether another node or rank of the job is named than the right one; whether one is missing or made up."""
    truth = case.truth
    wrong = truth.node is not None and given.node not in {"", truth.node} and given.node in case.nodes
    wrong = wrong or (truth.rank is not None and given.rank not in {None, truth.rank})
    named = f"names rank {given.rank} on {given.node or 'no node'}, not rank {truth.rank} on {truth.node or 'no node'}"
    if wrong:
        return named, ""
    if truth.node is not None and given.node != truth.node:
        return "", f"takes {given.node} for a node" if given.node else "does not say which node"
    return "", "does not say which rank" if truth.rank is not None and given.rank is None else ""


def mark(case: Case, given: Answer) -> Mark:
    """Compare an answer with the truth. Wrong is an answer that names a wrong culprit as if it were known."""
    truth = case.truth

    def found(patterns: Iterable[str]) -> list[str]:
        return [pattern for pattern in patterns if re.search(pattern, given.text, re.IGNORECASE)]

    unknown = not given.known and truth.confidence != "not known"  # it quotes lines, in which much may be found
    forbidden = [] if unknown else found(truth.forbidden)
    misplaced, missing = _misplaced(case, given)
    matched = found(truth.cause)
    if forbidden or misplaced:
        verdict, why = "wrong", misplaced or f"says {forbidden[0]!r}"
    elif unknown:
        verdict, why = "partly", "not known"
    elif len(matched) == len(truth.cause):
        verdict, why = ("partly", missing) if missing else ("right", "")
    else:
        lacks = next(pattern for pattern in truth.cause if pattern not in matched)
        half = matched or found(truth.partly)
        verdict, why = ("partly" if half else "wrong"), f"lacks {lacks!r}"
    allowed = {"allowed": True, "forbidden": False, "either": given.restart}[truth.restart]
    restart = "right" if allowed == given.restart else "allowed" if given.restart else "forbidden"
    confidence = given.confidence and ("right" if given.confidence == truth.confidence else given.confidence)
    return Mark(case.id, verdict, restart, confidence, why, given)


def totals(cases: Iterable[Case], marks: Iterable[Mark]) -> dict[str, dict[str, int]]:
    """Counts of verdicts and restarts, by group and together."""
    by_group: dict[str, Counter[str]] = {}
    for case, one in zip(cases, marks, strict=True):
        group = "reports" if not case.new else "held" if case.held else "tuned"
        for name in (group, "all"):
            counts = by_group.setdefault(name, Counter())
            counts["cases"] += 1
            counts[one.verdict] += 1
            counts["restart right" if one.restart == "right" else f"restart wrongly {one.restart}"] += 1
            if one.confidence:
                counts["confidence right" if one.confidence == "right" else "confidence wrong"] += 1
    return {name: dict(sorted(counts.items())) for name, counts in by_group.items()}


def table(cases: list[Case], marks: list[Mark]) -> str:
    """What was judged, a line each, and the counts."""
    lines = [f"{'case':38} {'answer':7} {'restart':9} {'entry':24} why"]
    for one in marks:
        lines.append(f"{one.id:38} {one.verdict:7} {one.restart:9} {one.answer.id:24} {one.why[:110]}")
    for name, counts in totals(cases, marks).items():
        count = counts["cases"]
        shown = ", ".join(f"{key} {counts[key]}" for key in counts if key != "cases")
        lines.append(f"{name}: {count} cases, right {100 * counts.get('right', 0) / count:.0f} % ({shown})")
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tuned", "held", "all"), default="all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", help="print the whole answer to one case")
    options = parser.parse_args()
    cases = [case for case in load() if options.half == "all" or case.held == (options.half == "held")]
    if options.show:
        cases = [case for case in cases if case.id == options.show]
    marks = [mark(case, answer(case)) for case in cases]
    print(table(cases, marks))
    if options.show:
        print(*(json.dumps(asdict(one), indent=1) for one in marks))
    if options.json:
        rows: dict[str, Any] = {one.id: {"verdict": one.verdict, "restart": one.restart} for one in marks}
        for one in marks:
            rows[one.id].update(entry=one.answer.id, node=one.answer.node, rank=one.answer.rank, text=one.answer.text)
        data = {"totals": totals(cases, marks), "cases": rows}
        options.json.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
