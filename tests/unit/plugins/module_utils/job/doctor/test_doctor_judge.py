# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The judgement on recorded examinations of the tuned half of HangBench, and on what is damaged or hostile."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.judge import judge, minority

from tests.doctor.hangbench import EXAMINATIONS, answer, read
from tests.effort import examples
from tests.hangbench import score
from tests.hangbench.catalogue import halves, hangs, healthy

CASES = {case.id: case for case in hangs()}
RECORDED = sorted(path.stem for path in EXAMINATIONS.glob("*.jsonl"))
MISSED = {"pipeline-both-send": ["rank"]}
"""docs/hangs.md explains each."""


def test_the_tuned_half_is_recorded_and_nothing_of_the_half_held_out() -> None:
    half = halves([*hangs(), *healthy()])
    assert sorted(RECORDED) == sorted(name for name in CASES if half[name] == "tuned")


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_hangs_are_judged_as_their_truth_says(name: str) -> None:
    examinations, job = read(name)
    finding = judge(examinations, job)
    scores = score.hang(CASES[name].truth or {}, answer(finding))
    assert [column for column, right in scores.items() if right is False] == MISSED.get(name, [])
    assert finding["sentence"].endswith(".")
    assert "\n" not in finding["sentence"]
    assert len(finding["sentence"]) < 500
    assert finding["confidence"] in {"certain", "likely", "not known"}


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "skip-bad-loss",
            "Rank 1 on node1 has not come to all_reduce number 9 of ranks 0-2, 4225 values: it is in all_gather 9 "
            "of ranks 0-2 instead in share_metrics (collectives.py, line 36); ranks 0, 2 wait.",
        ),
        (
            "network-one-way-back",
            "No rank is to blame: packets from rank 2 on node3 to rank 1 on node2 are lost; ranks 0-2 wait in "
            "all_reduce number 5 of ranks 0-2, 4225 values.",
        ),
    ],
)
def test_the_sentence_says_who_where_and_what(name: str, sentence: str) -> None:
    assert judge(*read(name))["sentence"] == sentence


def test_without_evidence_no_rank_is_blamed() -> None:
    finding = judge([], {"world_size": 2})
    assert (finding["ranks"], finding["confidence"], finding["kind"]) == ([], "not known", "")


def test_a_job_that_goes_on_does_not_hang() -> None:
    examinations, job = read("code-computes")
    for one in examinations[0]["ranks"]:
        one["moved"] = True
    assert judge(examinations, job)["hang"] is False


def test_a_node_that_does_not_answer_is_named() -> None:
    examinations, job = read("network-one-way-back")
    left = [one for one in examinations if one["node"] != "node2"]
    finding = judge(left, {**job, "nodes": {1: "gpu2"}})
    assert finding["ranks"] == [1]
    assert finding["nodes"] == ["gpu2"]


@pytest.mark.parametrize(
    "damaged", [None, [], 1, "x", {"ranks": 1}, {"ranks": [None, {}, {"rank": -1}, {"rank": True}]}]
)
def test_what_is_no_examination_is_left_out(damaged: Any) -> None:
    assert judge([damaged], {"world_size": "many", "nodes": 1})["ranks"] == []


HOSTILE: tuple[Any, ...] = (
    None,
    -1,
    1 << 62,
    1.5,
    True,
    "",
    "\x1b[2J\u202e" + "x" * 5000,
    [],
    [[]],
    {},
    {"x": {}},
    [1] * 5000,
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [path, *(one for key, part in value.items() for one in places_in(part, (*path, key)))]
    if isinstance(value, list):
        return [path, *(one for key, part in enumerate(value) for one in places_in(part, (*path, key)))]
    return [path]


def test_whatever_one_field_is_there_is_a_finding() -> None:
    chance = random.Random(43)
    names = chance.choices(RECORDED, k=examples(1500))
    for name in names:
        examinations, job = read(name)
        path = chance.choice(places_in(examinations)[1:])
        damaged = copy.deepcopy(examinations)
        target: Any = damaged
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = chance.choice(HOSTILE)
        finding = judge(damaged, job)
        assert all(isinstance(rank, int) for rank in finding["ranks"])
        assert finding["sentence"].isprintable()


@pytest.mark.parametrize(
    ("values", "usual", "odd"),
    [
        ({0: 1, 1: 1, 2: 2}, None, [2]),
        ({0: 1, 1: 2}, None, []),
        ({0: 1, 1: 2}, 1, [1]),
        ({0: 1, 1: 1}, None, []),
        ({}, None, []),
    ],
)
def test_the_fewer_are_odd(values: dict[int, Any], usual: Any, odd: list[int]) -> None:
    assert minority(values, usual) == odd
