"""HangBench with the hang doctor, beside the lab: all hangs once, and each fifth of the healthy runs."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from tests.doctor.corpus import run


def share(results: list[dict[str, Any]], column: str) -> float:
    """Return the part of the cases with this column in which the answer is right."""
    scores = [one["scores"][column] for one in results if one["scores"].get(column) is not None]
    return float(sum(scores) / len(scores))


def test_of_all_hangs_the_rank_and_the_cause_are_named_in_time(tmp_path: Path) -> None:
    results = run(tmp_path)
    assert not [one for one in results if "scores" not in one]
    assert len(results) == 90
    assert share([one for one in results if one["blames"]], "rank") >= 0.9
    assert share(results, "kind") >= 0.8
    after = [one["answered_after"] for one in results]
    assert max(after) <= 60 and statistics.median(after) <= 20


def test_no_healthy_run_is_reported(tmp_path: Path) -> None:
    results = run(tmp_path, "--healthy", "--every", "5", doctor="watch 60 600", when="start")
    assert len(results) == 21
    assert [one["scores"] for one in results] == [{"quiet": True}] * 21
