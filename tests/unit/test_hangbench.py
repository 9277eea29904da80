# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""HangBench itself: its cases are well-formed, its halves fixed, its scores right, and its runner leaves nothing."""

from __future__ import annotations

import ast
import hashlib
import json
import shlex
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.hangbench import faults, score, verify
from tests.hangbench.__main__ import arguments, chosen
from tests.hangbench.catalogue import FOLDER, KINDS, Case, halves, hangs, healthy
from tests.hangbench.ranks import state
from tests.hangbench.runner import Options, Run

HANGS, HEALTHY = hangs(), healthy()
SCHEMA = json.loads((FOLDER / "cases" / "schema.json").read_text(encoding="utf-8"))
VERIFIED = json.loads((FOLDER / "verified.json").read_text(encoding="utf-8"))
HALVES = "af8fcdfc846b2290"
"""The beginning of the digest of all cases with their halves; a change means that what was held out is no longer so."""


@cache
def functions(script: str) -> set[str]:
    tree = ast.parse((FOLDER / "job" / f"{script}.py").read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", sorted((FOLDER / "cases").glob("hangs_*.yml")), ids=lambda path: path.name)
def test_the_cases_follow_the_schema(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text(encoding="utf-8")), SCHEMA)


def test_there_are_enough_cases_of_each_kind() -> None:
    kinds = Counter(case.kind for case in HANGS)
    assert len(HANGS) >= 48 and len(HEALTHY) >= 100 and len(KINDS) == 12
    assert set(kinds) == set(KINDS) == set(SCHEMA["$defs"]["kind"]["enum"])
    assert min(kinds.values()) >= 4, kinds


def test_the_document_has_the_numbers_and_the_kinds() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"- {len(HANGS)} hangs of {len(KINDS)} kinds" in text and f"- {len(HEALTHY)} healthy runs" in text
    assert [kind for kind in KINDS if f"`{kind}`" not in text] == [] and text.count("\n") <= 100


def test_there_are_hangs_of_each_structure() -> None:
    assert {case.structure for case in HANGS} == set(SCHEMA["items"]["properties"]["structure"]["enum"])


def test_healthy_runs_pause_in_a_dozen_ways_on_two_to_four_ranks() -> None:
    pauses = {case.parameters["pause"] for case in HEALTHY}
    assert len(pauses) >= 12 and pauses <= functions("healthy")
    assert {case.world for case in HEALTHY} == {2, 3, 4}


def test_identifiers_are_unique() -> None:
    names = [case.id for case in [*HANGS, *HEALTHY]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", HANGS, ids=lambda case: case.id)
def test_the_truth_names_what_there_is(case: Case) -> None:
    truth = case.truth or {}
    there = set(range(case.world))
    culprits, waiting = set(truth["culprits"] or []), set(truth["waiting"]["ranks"])
    assert case.kind in truth["accept"]
    assert culprits <= there and waiting <= set(case.ranks)
    assert not culprits & waiting
    assert waiting <= set(truth["waiting"].get("group") or there)
    assert case.inject is None or case.inject in faults.FAULTS
    function = truth["does"].get("function")
    assert function is None or function in functions(case.script) | functions("skeleton")
    assert truth["waiting"]["operation"] or truth["waiting"]["function"] in functions(case.script)


def test_the_halves_never_change() -> None:
    found = halves([*HANGS, *HEALTHY])
    text = json.dumps(sorted(found.items()))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == HALVES
    assert halves([*reversed(HEALTHY), *reversed(HANGS)]) == found


def test_one_half_of_each_kind_is_held_out() -> None:
    found = halves([*HANGS, *HEALTHY])
    for kind in [*KINDS, None]:
        counted = Counter(found[case.id] for case in [*HANGS, *HEALTHY] if case.kind == kind)
        assert abs(counted["held"] - counted["tuned"]) <= 1, kind
    whole = Counter(found[case.id] for case in HANGS)
    assert abs(whole["held"] - whole["tuned"]) <= 6, whole


def test_every_hang_was_verified_for_real() -> None:
    """The file holds only what a run without a doctor found to be as the truth says."""
    assert {case.id for case in HANGS} <= set(VERIFIED)
    assert sum(case.id in VERIFIED for case in HEALTHY) >= 25
    assert set(VERIFIED) <= {case.id for case in [*HANGS, *HEALTHY]}


@pytest.mark.parametrize("case", HANGS, ids=lambda case: case.id)
def test_what_was_seen_is_still_the_truth(case: Case) -> None:
    """A truth that was edited after the verification must still agree with what was seen then."""
    truth, seen = case.truth or {}, VERIFIED[case.id]
    for rank in truth["waiting"]["ranks"]:
        if truth["waiting"]["operation"] and not truth["waiting"].get("in_cpp"):
            assert verify.differs(truth["waiting"], seen["seen"][str(rank)]) == []
    assert all(found == truth["does"]["state"] for found in seen.get("states", {}).values())


TRUTH: dict[str, Any] = {
    "culprits": [2],
    "waiting": {"operation": "all_reduce", "sequence": 7, "group": [0, 1, 2], "ranks": [0, 1]},
    "does": {"state": "sleeping", "function": "load"},
    "accept": ["own_code", "startup"],
}
RIGHT: dict[str, Any] = {
    "hang": True,
    "rank": 2,
    "kind": "own_code",
    "collective": {"operation": "gloo:allreduce", "sequence": 7, "group": [2, 1, 0]},
    "does": "sleeps in load, train.py:7",
}
ALL_RIGHT = {"rank": True, "kind": True, "collective": True, "does": True, "link": None}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, ()),
        ({"rank": None, "ranks": [2]}, ()),
        ({"rank": 1}, ("rank",)),
        ({"ranks": [1, 2]}, ("rank",)),
        ({"rank": None}, ("rank",)),
        ({"rank": True}, ("rank",)),
        ({"kind": "startup"}, ()),
        ({"kind": "network"}, ("kind",)),
        ({"kind": None}, ("kind",)),
        ({"collective": {"operation": "ALLREDUCE", "sequence": 7, "group": [0, 1, 2]}}, ()),
        ({"collective": {"operation": "all_reduce", "sequence": 6, "group": [0, 1, 2]}}, ("collective",)),
        ({"collective": {"operation": "all_gather", "sequence": 7, "group": [0, 1, 2]}}, ("collective",)),
        ({"collective": {"operation": "all_reduce", "sequence": 7, "group": [0, 1]}}, ("collective",)),
        ({"collective": "all_reduce"}, ("collective",)),
        ({"does": "sleeps"}, ("does",)),
        ({"hang": False}, ("rank", "kind", "collective", "does")),
    ],
)
def test_an_answer_is_scored_column_by_column(change: dict[str, Any], wrong: tuple[str, ...]) -> None:
    assert score.hang(TRUTH, {**RIGHT, **change}) == {**ALL_RIGHT, **dict.fromkeys(wrong, False)}


@pytest.mark.parametrize(
    ("named", "right"),
    [
        ({"rank": None}, True),
        ({"ranks": []}, True),
        ({"rank": 0}, False),
        ({"rank": None, "hang": False}, False),
        ({}, False),
    ],
)
def test_where_no_rank_is_to_blame_an_answer_must_say_so(named: dict[str, Any], right: bool) -> None:
    truth = {**TRUTH, "culprits": None}
    answer = {"hang": True, "kind": "own_code", **named}
    assert score.hang(truth, answer)["rank"] is right


@pytest.mark.parametrize(
    ("link", "right"), [({"from": 0, "to": 2}, True), ({"from": 2, "to": 0}, False), (None, False)]
)
def test_a_link_has_a_direction(link: dict[str, int] | None, right: bool) -> None:
    assert score.hang({**TRUTH, "link": {"from": 0, "to": 2}}, {**RIGHT, "link": link})["link"] is right


def test_what_the_truth_does_not_define_is_not_scored() -> None:
    truth = {**TRUTH, "waiting": {"operation": None, "ranks": [0]}, "does": {"state": "stopped"}}
    for answer in (None, {"rank": 2, "kind": "own_code"}):
        found = score.hang(truth, answer)
        assert (found["collective"], found["does"], found["rank"]) == (None, None, answer is not None)
    unnumbered = {**TRUTH, "waiting": {"operation": "recv", "sequence": None, "group": None, "ranks": [0]}}
    assert score.hang(unnumbered, {**RIGHT, "collective": {"operation": "recv", "sequence": 99}})["collective"] is True


def test_no_answer_is_wrong_in_every_column() -> None:
    assert score.hang(TRUTH, None) == {**dict.fromkeys(ALL_RIGHT, False), "link": None}


@pytest.mark.parametrize(
    ("answer", "quiet"), [(None, True), ({"hang": False}, True), ({"hang": True}, False), ({"rank": 1}, False)]
)
def test_a_healthy_run_must_not_be_called_a_hang(answer: dict[str, Any] | None, quiet: bool) -> None:
    assert score.healthy(answer) == {"quiet": quiet}


def test_the_table_counts_by_kind_and_half_and_names_what_failed() -> None:
    common = {"healthy": False, "kind": "own_code", "blames": True, "answered_after": 4.0}
    results: list[dict[str, Any]] = [
        {**common, "id": "a", "scores": {**ALL_RIGHT, "rank": False}},
        {**common, "id": "b", "scores": {**ALL_RIGHT, "does": None}, "answered_after": 8.0},
        {"id": "c", "healthy": True, "kind": None, "scores": {"quiet": False}},
        {"id": "d", "healthy": False, "kind": "network", "skipped": "it needs root"},
    ]
    lines = [" ".join(line.split()) for line in score.table(results, {"a": "tuned", "b": "held"}).splitlines()]
    assert lines == [
        "kind cases rank kind collective does link median s",
        "own_code 2 1/2 2/2 2/2 1/1 - 6",
        "all, tuned 1 0/1 1/1 1/1 1/1 - 4",
        "all, held 1 1/1 1/1 1/1 - - 8",
        "false alarms: 1 of 1 healthy runs",
        "right rank where one is to blame: 1/2",
        "skipped: d: it needs root",
    ]


def test_the_collective_that_was_entered_and_not_left_is_the_one_a_rank_is_in(tmp_path: Path) -> None:
    first = {"operation": "all_reduce", "sequence": 1, "group": [0, 1]}
    second = {"operation": "barrier", "sequence": 2, "group": [0, 1]}
    trace = tmp_path / "trace-0"
    assert verify.entered(trace) is None
    trace.write_text("".join(json.dumps(entry) + "\n" for entry in (first, {**first, "left": True}, second)))
    assert verify.entered(trace) == second
    truth = {**TRUTH["waiting"], "group": [0, 1]}
    assert verify.differs(truth, second) == ["operation is barrier, not all_reduce", "sequence is 2, not 7"]
    assert verify.differs(truth, {**first, "sequence": 7}) == []


SCRIPT = """
import os, pathlib, subprocess, sys, time
rank, private = os.environ["RANK"], pathlib.Path(os.environ["HANGBENCH_PRIVATE"])
print(f"[rank{rank}] step 0/2", flush=True)
for mark in ("joining", "begins"):
    (private / f"{mark}-{rank}").write_text("1")
if rank == "1":
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    (private / "child").write_text(str(child.pid))
time.sleep(1000)
"""
DOCTOR = """
import json, pathlib, sys
request = json.loads(pathlib.Path(sys.argv[1]).read_text())
pids = [one["pid"] for one in request["ranks"]]
print("examined", pids)
print(json.dumps({"rank": 2, "kind": "own_code", "pids": pids, "lines": len(open(request["lines"]).readlines())}))
"""

PAUSE = """
import json, os, pathlib, time
rank, private = os.environ["RANK"], pathlib.Path(os.environ["HANGBENCH_PRIVATE"])
(private / f"pause-{rank}").write_text(json.dumps({"begins": time.time(), "seconds": 1}))
time.sleep(2)
(private / f"finished-{rank}").write_text("1")
time.sleep(1000)
"""


@pytest.mark.parametrize("when", ["hang", "start"])
@pytest.mark.parametrize(("answer", "quiet"), [('{"hang": true, "rank": 0}', False), ('{"hang": false}', True)])
def test_the_runner_counts_a_false_alarm_in_a_healthy_run(when: str, answer: str, quiet: bool, tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(PAUSE)
    case = Case("pauses", str(tmp_path / "rank.py"), 2, limit=60)
    doctor = f"sh -c 'echo \"$0\"' {shlex.quote(answer)}"
    result = Run(case, Options(tmp_path, sys.executable, doctor, when)).result()
    assert result["scores"] == {"quiet": quiet}, result


def test_a_run_that_ends_is_no_hang_and_one_that_breaks_not_healthy(tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text("")
    for truth, failure in ((TRUTH, "not within 1 s: the hang"), (None, "a rank ended before it had finished")):
        case = Case("ends", str(tmp_path / "rank.py"), 2, kind="own_code", truth=truth, limit=1)
        assert failure in Run(case, Options(tmp_path, sys.executable)).result()["failed"]


def test_the_runner_scores_a_doctor_and_ends_what_it_started(tmp_path: Path) -> None:
    for name, text in (("rank.py", SCRIPT), ("doctor.py", DOCTOR)):
        (tmp_path / name).write_text(text)
    case = Case("two-sleep", str(tmp_path / "rank.py"), 2, kind="own_code", truth=TRUTH, quiet=0.5, limit=60)
    run = Run(case, Options(tmp_path, sys.executable, f"{sys.executable} {tmp_path / 'doctor.py'}"))
    result = run.result()
    assert result["scores"] == {**ALL_RIGHT, "collective": False, "does": False}, result
    assert result["answer"]["lines"] == 2 and len(result["answer"]["pids"]) == 2
    assert [state(pid) for pid in result["answer"]["pids"]] == [None, None]
    # The child of rank 1 has a session of its own: only its environment says whose it is.
    assert state(int((run.folder / "private" / "child").read_text())) is None


def test_a_case_that_needs_root_is_skipped_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for case in (case for case in HANGS if case.network or case.needs):
        assert Run(case, Options(tmp_path, sys.executable)).result()["skipped"] == "it needs root"


def test_a_chosen_half_and_kind_are_those_of_the_cases() -> None:
    found = halves([*HANGS, *HEALTHY])
    options = arguments(["list", "--half", "held", "--kind", "network"])
    cases = chosen(options)
    assert cases and all(case.kind == "network" and found[case.id] == "held" for case in cases)
    assert [case.id for case in chosen(arguments(["list", "--case", "skip-bad-loss", HEALTHY[0].id]))] == [
        "skip-bad-loss",
        HEALTHY[0].id,
    ]
    with pytest.raises(SystemExit, match="unknown cases: nothing"):
        chosen(arguments(["list", "--case", "nothing"]))
