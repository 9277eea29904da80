# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Ranks over time in the report."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.report.lanes import LEFT, WAITING, WIDTH, lanes

SPLIT = WIDTH - WAITING


def row(rank: int, done: list[float], opened: list[float]) -> dict[str, Any]:
    return {"rank": rank, "done": done, "open": opened}


def drawn(*rows: dict[str, Any], blamed: tuple[int, ...] = ()) -> dict[str, Any]:
    found = lanes({"waited": 61.2, "ranks": list(rows)}, blamed, {0: "gpu1", 1: "gpu2"})
    assert found is not None
    return found


def test_a_rank_that_did_not_come_has_no_bar() -> None:
    found = drawn(row(0, [-0.2, -0.1], [0.0]), row(1, [-0.2, -0.1], []), blamed=(1,))
    waits, blamed = found["rows"]
    assert (waits["open"], blamed["open"]) == (str(SPLIT), None)
    assert (waits["level"], blamed["level"]) == ("", "bad")
    assert (waits["label"], waits["node"], blamed["node"]) == ("rank 0", "gpu1", "gpu2")
    assert waits["done"] == blamed["done"] and float(waits["done"][0]) < float(waits["done"][1]) < SPLIT
    assert found["waited"] == "then 61 s"
    assert found["summary"] == "Collectives that 2 ranks entered last, and 1 of them wait in"
    assert [tick["text"] for tick in found["ticks"]] == ["0.2", "0.15", "0.1", "0.05", "0"]


def test_the_last_mark_of_each_rank_is_seen_and_not_all_before() -> None:
    steps = [-0.1 * step for step in range(24)]
    found = drawn(row(0, steps, []), row(1, [-90.0, -80.0], []))
    assert [len(one["done"]) for one in found["rows"]] == [24, 1]  # that of -90 s is out of sight
    assert float(found["rows"][1]["done"][0]) >= LEFT
    found = drawn(row(0, steps, []), row(1, [-0.3], []))
    assert len(found["rows"][0]["done"]) == 12


@pytest.mark.parametrize("timeline", [None, {}, {"ranks": []}, {"ranks": [{"rank": 0, "done": [], "open": []}]}])
def test_without_marks_nothing_is_drawn(timeline: Any) -> None:
    assert lanes(timeline, (), {}) is None


def test_marks_of_one_moment_can_be_drawn() -> None:
    found = drawn(row(0, [], [0.0]), row(1, [0.0], []))
    assert found["rows"][0]["open"] == found["rows"][1]["done"][0] == str(SPLIT)
    assert lanes({"ranks": [row(0, [0.0], [])]}, (), {})["waited"] == "then"  # type: ignore[index]
