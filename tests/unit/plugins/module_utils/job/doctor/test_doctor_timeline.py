# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""When ranks entered their last collectives, of recorded hangs, of clocks that differ, and of what is hostile."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.finding import bounded
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.judge import judge
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.doctor.timeline import MOST_MARKS, MOST_RANKS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.record import FIELDS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.job import infos

from tests.doctor.hangbench import read

NOW = 1_800_000_000.0


def entry(at: Any, done: bool = True, sequence: int = 1) -> dict[str, Any]:
    return {"group": "0", "sequence": sequence, "operation": "gloo:all_reduce", "done": done, "at": at}


def node(name: str, ranks: dict[int, list[dict[str, Any]]], clock: float = 0.0) -> dict[str, Any]:
    """An examination that began at NOW and took 3 s, on a node whose clock is so many seconds ahead."""
    own = [
        {"rank": rank, "alive": True, "entries": [{**one, "at": one["at"] + clock} for one in entries]}
        for rank, entries in ranks.items()
    ]
    return {"node": name, "time": NOW + 3 + clock, "took": 3.0, "ranks": own}


def drawn(*nodes: dict[str, Any], size: int = 2) -> Any:
    return judge(nodes, {"world_size": size})["timeline"]


def test_a_recorded_hang_shows_who_entered_what_when() -> None:
    found = judge(*read("code-spins"))["timeline"]
    assert found == {
        "waited": 10.8,
        "ranks": [
            {"rank": 0, "done": [-0.479, -0.326, -0.224, -0.106], "open": [0.0]},
            {"rank": 1, "done": [-0.463, -0.328, -0.222, -0.105], "open": []},
        ],
    }


@pytest.mark.parametrize("clock", [0.0, 0.4, 60.0, -7200.0])
def test_a_clock_that_is_off_by_much_is_set_right_by_when_the_node_was_examined(clock: float) -> None:
    found = drawn(
        node("gpu1", {0: [entry(NOW - 62), entry(NOW - 60, done=False)]}), node("gpu2", {1: [entry(NOW - 61)]}, clock)
    )
    shift = clock if abs(clock) <= 5 else 0.0
    assert [one["done"] for one in found["ranks"]] == [[-2.0], [-1.0 + shift]]
    assert found["waited"] == pytest.approx(60.0, abs=0.3)


def test_the_last_collectives_of_64_ranks_are_kept_those_to_blame_first() -> None:
    ranks = {rank: [entry(NOW - 90 + step, sequence=step) for step in range(60)] for rank in range(70)}
    for rank in range(69):
        ranks[rank].append(entry(NOW - 20, done=False, sequence=60))
    found = judge([node("gpu1", ranks)], {"world_size": 70})
    assert found["ranks"] == [69]
    rows = found["timeline"]["ranks"]
    assert [one["rank"] for one in rows] == [*range(MOST_RANKS - 1), 69]
    assert {len(one["done"]) + len(one["open"]) for one in rows} == {MOST_MARKS}
    assert rows[0]["open"] == [0.0] and rows[-1]["done"][-1] == -11.0
    # It is sent with every poll.
    assert len(json.dumps(found["timeline"])) < 20_000


def test_nothing_is_drawn_without_a_recorder_or_a_time() -> None:
    assert drawn(node("gpu1", {0: [], 1: []})) is None
    assert drawn({**node("gpu1", {0: [entry(NOW)]}), "time": "now"}) is None
    assert drawn() is None
    assert bounded({})["timeline"] is None


@pytest.mark.parametrize("at", [NOW + 1e6, NOW - 1e9, 9e18, -9e18, 1 << 62])
def test_times_that_cannot_be_are_left_out(at: float) -> None:
    found = drawn(node("gpu1", {0: [entry(NOW - 10), entry(at)], 1: [entry(at)]}))
    assert found == {"waited": 10.0, "ranks": [{"rank": 0, "done": [0.0], "open": []}]}


@pytest.mark.parametrize(
    "value",
    [
        7,
        {"ranks": 7},
        {"ranks": [7, {"rank": "x"}, {"rank": -1}, {"done": [1]}], "waited": "x"},
        {"ranks": [{"rank": 1, "done": ["x", True, None, 1e300, float("nan")], "open": 7}]},
        {"ranks": [{"rank": 1, "done": [-1.0] * 100_000}] * 1000},
    ],
)
def test_what_another_writes_into_a_finding_is_bounded_and_valid_where_it_is_read(value: Any) -> None:
    found = bounded({"timeline": value})
    for one in (found["timeline"] or {}).get("ranks", ()):
        assert set(one) == {"rank", "done", "open"} and len(one["done"]) <= MOST_MARKS
        assert all(isinstance(at, float) and math.isfinite(at) for at in one["done"])
    fits, dummy = FIELDS["hang"]
    assert fits({"findings": [found]})
    (job,) = infos({"gpu1": {"jobs": [{"name": "digits", "state": "running", "hang": {"findings": [found]}}]}})["gpu1"][
        "jobs"
    ]
    assert job["hang"]["findings"][0]["timeline"] == found["timeline"]


@pytest.mark.parametrize(
    "timeline",
    [{"ranks": [{"rank": 0, "done": ["<b>"]}]}, {"ranks": [{"rank": "0"}]}, {"ranks": [{"rank": 0}] * 101}, "x"],
)
def test_a_state_whose_timeline_no_job_writes_is_refused(timeline: Any) -> None:
    fits, dummy = FIELDS["hang"]
    assert not fits({"findings": [{"timeline": timeline}]})
    (job,) = infos({"gpu1": {"jobs": [{"name": "digits", "hang": {"findings": [{"timeline": timeline}]}}]}})["gpu1"][
        "jobs"
    ]
    assert "hang.findings[0].timeline" in job["reason"] and "hang" not in job
