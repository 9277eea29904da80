# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The corpus of tests/diagnosis: its cases are whole and can be met, its halves stable; and what its score counts."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tests.diagnosis.cases import CONFIDENCES, FOLDER, RESTARTS, Case, Truth, load
from tests.diagnosis.score import Answer, answer, mark, totals

CASES = load()
MOST_BYTES = 600_000
SOURCES = ("https://github.com/", "made: ")
ids = [case.id for case in CASES]


def right_answer(case: Case) -> Answer:
    """What the truth of a case asks for."""
    truth = case.truth
    known = truth.confidence != "not known"
    return Answer(truth.right, truth.node or "", truth.rank, known, truth.restart != "forbidden")


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_case_is_whole(case: Case) -> None:
    truth = case.truth
    assert re.fullmatch(r"(report|made|thread)-[a-z0-9-]+", case.id)
    assert case.source.startswith(SOURCES)
    assert case.log().strip()
    assert truth.cause and truth.right
    assert truth.restart in RESTARTS
    assert truth.confidence in CONFIDENCES
    assert truth.restart != "forbidden" or truth.confidence == "certain"
    for pattern in (*truth.cause, *truth.forbidden, *truth.partly):
        re.compile(pattern)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_case_names_nodes_and_ranks_that_the_job_has(case: Case) -> None:
    ranks = sum(case.nodes.values())
    assert all(rank < ranks for rank, dummy in case.exits)
    assert set(case.gone) <= set(case.nodes)
    if case.nodes:
        assert case.truth.node in {None, "", *case.nodes}
        assert case.truth.rank is None or case.truth.rank < ranks


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_sentence_of_a_case_is_right(case: Case) -> None:
    given = mark(case, right_answer(case))
    assert (given.verdict, given.restart, given.why) == ("right", "right", "")


def test_ids_are_unique() -> None:
    assert len(set(ids)) == len(ids)


def test_every_log_is_used() -> None:
    used = {entry["file"] for case in CASES for entry in case.logs}
    assert used == {path.name for path in (FOLDER / "logs").iterdir()}


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.suffix != ".pyc") <= MOST_BYTES


def test_the_corpus_has_at_least_sixty_new_cases() -> None:
    made = sum(case.id.startswith("made-") for case in CASES)
    threads = sum(case.id.startswith("thread-") for case in CASES)
    assert made >= 30 and threads >= 30


def test_the_held_out_half_is_the_one_in_the_readme() -> None:
    held = [case.id for case in CASES if case.held]
    text = (FOLDER / "README.md").read_text(encoding="utf-8").split("## The held-out half")[1].split("\n## ")[0]
    lists = re.findall(r"`((?:made|thread)-)…`: ([a-z0-9,\s-]+)\.", text)
    assert [head + name for head, names in lists for name in re.split(r",\s+", names)] == sorted(held)
    assert 0.4 <= len(held) / sum(case.new for case in CASES) <= 0.6


def test_what_was_reported_before_is_never_held_out() -> None:
    assert not any(case.held for case in CASES if not case.new)


def test_the_unchanged_diagnosis_was_scored_on_all_cases_of_that_time() -> None:
    before = json.loads((FOLDER / "before.json").read_text(encoding="utf-8"))
    assert set(before["cases"]) <= set(ids)
    assert before["totals"]["all"]["cases"] == len(before["cases"])


CASE = Case(
    id="made-x",
    source="made: nothing",
    logs=(),
    truth=Truth(
        cause=("killed", "memory"),
        right="killed for want of memory",
        restart="allowed",
        confidence="likely",
        node="gpu2",
        rank=3,
        forbidden=("toolkit",),
        partly=("signal",),
    ),
    nodes={"gpu1": 2, "gpu2": 2},
)
RIGHT = Answer("rank 3 was killed for want of memory", "gpu2", 3, known=True, restart=True)


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (RIGHT, "right"),
        (replace(RIGHT, text="killed"), "partly"),
        (replace(RIGHT, text="a signal"), "partly"),
        (replace(RIGHT, text="a bug"), "wrong"),
        (replace(RIGHT, text=RIGHT.text + " or the toolkit"), "wrong"),
        (replace(RIGHT, node="gpu1", rank=None), "wrong"),
        (replace(RIGHT, rank=2), "wrong"),
        (replace(RIGHT, rank=None), "partly"),
        (replace(RIGHT, node="kernel"), "partly"),
        (replace(RIGHT, text="Not known; the toolkit | killed for want of memory", known=False), "partly"),
        (replace(RIGHT, known=False, rank=2), "wrong"),
    ],
)
def test_verdicts(given: Answer, verdict: str) -> None:
    assert mark(CASE, given).verdict == verdict


@pytest.mark.parametrize(
    ("truth", "given", "expected"),
    [
        ("allowed", True, "right"),
        ("allowed", False, "forbidden"),
        ("forbidden", True, "allowed"),
        ("either", True, "right"),
        ("either", False, "right"),
    ],
)
def test_restarts(truth: str, given: bool, expected: str) -> None:
    case = replace(CASE, truth=replace(CASE.truth, restart=truth))
    assert mark(case, replace(RIGHT, restart=given)).restart == expected


def test_counts() -> None:
    given = replace(RIGHT, confidence="likely")
    marks = [mark(CASE, given), mark(CASE, replace(given, rank=2, restart=False, confidence="certain"))]
    assert totals([CASE, CASE], marks)["all"] == {
        "cases": 2,
        "confidence right": 1,
        "confidence wrong": 1,
        "restart right": 1,
        "restart wrongly forbidden": 1,
        "right": 1,
        "wrong": 1,
    }


def test_a_job_with_exit_codes_is_judged_as_the_supervisor_does() -> None:
    """A rank that was killed without a word is found by its exit code, and a node that has gone is named."""
    cases = {case.id: case for case in CASES}
    killed, gone = answer(cases["made-sigkill"]), answer(cases["made-gone"])
    assert (killed.node, killed.rank, killed.id) == ("gpu2", 1, "exit-sigkill")
    assert "SIGKILL" in killed.text
    assert gone.text.startswith("gpu2 has gone")


# What the diagnosis is held to: docs/diagnosis.md has the figures of before.


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_no_wrong_culprit_is_named_and_restarts_are_judged_right(case: Case) -> None:
    found = mark(case, answer(case))
    assert (found.verdict != "wrong", found.restart) == (True, "right"), found


def test_nearly_all_are_right() -> None:
    verdicts = [mark(case, answer(case)).verdict for case in CASES]
    assert verdicts.count("right") >= 0.97 * len(CASES)


def test_the_script_is_blamed_only_where_it_is_certainly_its_own() -> None:
    blamed = {case.id: case.truth for case in CASES if answer(case).id == "script-exception"}
    assert len(blamed) > 5
    assert {
        name: (truth.restart, truth.confidence) for name, truth in blamed.items() if truth.confidence != "certain"
    } == {}
