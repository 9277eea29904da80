# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The files of an examination, and what is made of hostile ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import collect, examination
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor import judge as judging
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.finding import (
    CONFIDENCES,
    REMEDY,
    UNKNOWN,
    bounded,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

RANKS = [{"rank": 3, "pid": 17}, {"rank": 4, "pid": 18}]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What collect.examine() was called with; it finds one thing."""
    calls: dict[str, Any] = {}

    def examine(root: Path, ranks: Any, limit_s: float, limit_bytes: int, node: str) -> dict[str, Any]:
        calls.update(root=root, ranks=list(ranks), limit_s=limit_s, limit_bytes=limit_bytes, node=node)
        return {"node": node, "ranks": []}

    monkeypatch.setattr(collect, "examine", examine)
    return calls


def log(folder: Path, rank: int, text: str) -> None:
    (folder / "ranks").mkdir(exist_ok=True)
    path = folder / "ranks" / f"rank-{rank:05d}.log"
    path.write_text(text)
    os.utime(path, (1000 + rank, 1000 + rank))


def test_a_node_is_examined_and_its_ranks_last_lines_are_kept(tmp_path: Path, seen: dict[str, Any]) -> None:
    log(tmp_path, 3, "".join(f"step {number}\n" for number in range(100)))
    log(tmp_path, 4, "x" * 9000 + "\nlast")
    made = examination.begin(tmp_path, "0001", RANKS)
    examination.examine(tmp_path, "0001", "gpu2", [{"rank": 9, "pid": 1}])
    assert seen["ranks"] == RANKS and seen["node"] == "gpu2" and seen["root"] == Path("/")
    found = json.loads((made / "examination.json").read_text())
    assert found["examination"] == {"node": "gpu2", "ranks": []}
    assert found["log"][:20] == [[1003.0, 3, f"step {number}"] for number in range(80, 100)]
    assert found["log"][-1] == [1004.0, 4, "last"]
    assert examination.expand((made / "examination.z").read_bytes()) == found
    assert made.stat().st_mode & 0o077 == 0


def test_without_ranks_of_the_supervisor_those_that_live_are_examined(tmp_path: Path, seen: dict[str, Any]) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "launcher.log").write_text("step 1\n")
    examination.begin(tmp_path, "request", [])
    examination.examine(tmp_path, "request", "gpu1", [{"rank": 0, "pid": 5}])
    assert seen["ranks"] == [{"rank": 0, "pid": 5, "folder": str(tmp_path / "inside")}]
    found = json.loads((tmp_path / "hangs/request/examination.json").read_text())
    # A launcher that is the rank itself has no other log.
    assert [line[1:] for line in found["log"]] == [[0, "step 1"]]


def test_names_count_on_and_lead_nowhere_else(tmp_path: Path) -> None:
    assert examination.next_name(tmp_path) == "0001"
    for name in ("0001", "0007", "request"):
        examination.begin(tmp_path, name, [])
    assert examination.next_name(tmp_path) == "0008"
    for name in ("../x", "", "1", "00001", "a001"):
        with pytest.raises(ValueError, match="is not the name of an examination"):
            examination.place(tmp_path, name)


def test_the_oldest_examinations_make_room(tmp_path: Path) -> None:
    for number in range(1, 7):
        made = examination.begin(tmp_path, f"{number:04d}", [])
        (made / "examination.json").write_bytes(b"x" * 1000)
        os.utime(made, (number, number))
    old = tmp_path / "runs/0001/hangs/0009"
    old.mkdir(parents=True)
    (old / "examination.json").write_bytes(b"x" * 1000)
    os.utime(old, (0, 0))
    examination.prune(tmp_path, 3500)
    assert sorted(path.name for path in (tmp_path / "hangs").iterdir()) == ["0004", "0005", "0006"]
    assert not old.exists()


JOB = {"world_size": 3, "nodes": {"0": "gpu1", "1": "gpu2"}, "members": ["gpu1", "gpu2", "gpu3"], "problems": {}}


def test_what_all_nodes_found_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = examination.begin(tmp_path, "0001", [])
    (made / "examination.json").write_text('{"examination": {"node": "gpu1"}, "log": [[1, 0, "a"], ["x", 0, "b"], 7]}')
    examination.keep(tmp_path, "0001", 1, b"no such thing")
    examination.keep_job(tmp_path, "0001", JOB)
    seen: list[Any] = []

    def judge(found: Any, job: Any) -> dict[str, Any]:
        seen.append((found, job))
        return {"ranks": [0], "sentence": "s"}

    monkeypatch.setattr(judging, "judge", judge)
    examination.judge_all(tmp_path, "0001")
    assert seen == [([{"node": "gpu1"}], {"world_size": 3, "nodes": {0: "gpu1", 1: "gpu2"}, "log": [[1, 0, "a"]]})]
    found = examination.read_finding(tmp_path, "0001")
    assert (found["ranks"], found["sentence"], list(found["problems"])) == ([0], "s", ["gpu2"])
    assert found["problems"]["gpu2"].startswith("it is damaged: ")


def test_a_judgement_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(_found: Any, _job: Any) -> dict[str, Any]:
        raise KeyError("ranks")

    monkeypatch.setattr(judging, "judge", judge)
    found = examination.conclude([], 3, {})
    assert found["sentence"] == f"{UNKNOWN}: KeyError('ranks') while it was judged"
    assert (found["ranks"], found["confidence"], found["remedy"]) == ([], "not known", REMEDY)


def test_ranks_of_a_node_that_could_not_be_examined_are_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    collective = {"operation": "all_reduce", "sequence": 20}
    found = {"ranks": [0], "nodes": ["gpu1"], "kind": "lost_process", "sentence": "s", "collective": collective}
    monkeypatch.setattr(judging, "judge", lambda _found, _job: found)
    one = {"examination": {"node": "gpu2"}, "log": []}
    concluded = examination.conclude([one], 2, {0: "gpu1", 1: "gpu2"})
    assert (concluded["ranks"], concluded["kind"], concluded["confidence"]) == ([], "", "not known")
    assert concluded["sentence"] == "Which rank the others wait for is unknown: gpu1 could not be examined"
    assert concluded["collective"]["sequence"] == 20
    both = [one, {"examination": {"node": "gpu1"}, "log": []}]
    assert examination.conclude(both, 2, {0: "gpu1", 1: "gpu2"})["ranks"] == [0]


def recorded(**sequences: int) -> list[dict[str, Any]]:
    """Made up: the recorders of ranks, nested as deep as anything may be."""
    recorder = {"groups": [{"last": [{"collective_seq_id": 1}]}]}
    ranks = [
        {"rank": int(rank[1:]), "recorder": recorder, "collective": {"sequence": number}}
        for rank, number in sequences.items()
    ]
    return [{"node": "gpu1", "ranks": ranks}]


@pytest.mark.parametrize(
    ("before", "after", "goes_on"),
    [
        ({"r0": 4, "r1": 4}, {"r0": 5, "r1": 6}, True),
        ({"r0": 4, "r1": 4}, {"r0": 5, "r1": 4}, False),
        ({"r0": 4, "r1": 4}, {"r0": 5}, True),
        ({"r0": 4}, {"r1": 5}, False),
        ({}, {"r1": 5}, False),
    ],
)
def test_a_job_goes_on_where_every_rank_makes_other_collectives(
    before: dict[str, int], after: dict[str, int], goes_on: bool
) -> None:
    first, second = (examination.newest_collectives(recorded(**found)) for found in (before, after))
    assert first == {rank[1:]: number for rank, number in before.items()}
    assert examination.goes_on(first, second) is goes_on


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["ranks", "rank", "nodes", "sequence", "group", "from", "line", "size", "done"]), inner
        )
    ),
    max_leaves=10,
)
FIELDS = (
    *("hang", "works", "ranks", "nodes", "collective", "does", "kind", "link", "timeline"),
    *("sentence", "remedy", "confidence"),
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES) | VALUES)
@settings(max_examples=examples(500), deadline=None)
def test_whatever_is_concluded_a_finding_has_every_field_of_its_kind(found: Any) -> None:
    checked = bounded(found)
    assert tuple(checked) == FIELDS
    assert checked["confidence"] in CONFIDENCES and checked["sentence"] and checked["remedy"]
    assert all(isinstance(one, int) and one >= 0 for one in checked["ranks"])
    assert all(
        text.isprintable() for text in (checked["sentence"], checked["remedy"], checked["kind"], *checked["nodes"])
    )
    json.dumps(checked, allow_nan=False)
    assert bounded(checked) == checked


@given(VALUES)
@settings(max_examples=examples(300), deadline=None)
def test_any_examination_has_numbers_of_collectives_or_none(found: Any) -> None:
    assert all(isinstance(number, int) for number in examination.newest_collectives([{"ranks": found}]).values())
