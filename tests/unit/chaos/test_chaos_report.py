# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The page that shows the figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.faults.catalogue import FAULTS
from tests.chaos.records import append
from tests.unit.chaos.samples import record


def rows(page: str) -> dict[str, list[str]]:
    """Return the cells of the first table by fault."""
    lines = page.split("| fault | rounds |")[1].split("\n\n", maxsplit=1)[0].splitlines()[2:]
    cells = [[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


def test_the_page_is_current() -> None:
    """After new records: ``python -m tests.chaos report``."""
    assert report.page(report.load()) == report.PAGE.read_text(encoding="utf-8")


def test_without_a_round_the_page_reports_it() -> None:
    page = report.page([])
    assert "No round has been recorded yet" in page
    assert "%" not in page.split("## Run it")[0].split("## Figures")[1]
    assert all(f"`{name}`" in page for name in FAULTS)


RECORDS = [
    record(round=1, seconds=100.0),
    record(round=2, seconds=300.0),
    record(
        round=3, fault="disk-full", outcome="refused", refusals=["lab2: is full. Remedy: room"], followed=["by hand"]
    ),
    record(round=4, fault="swarm-drained", outcome="failed", why="a second site.yml changed lab1: Join"),
    record(round=5, fault="image-store-switched", outcome="not made", why="no node has such an engine"),
]


def test_a_failed_round_has_its_remark_also_after_a_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = RECORDS[3]
    monkeypatch.setattr(report, "REMARKS", {(failed.seed, failed.round, failed.commit): "It was a test's."})
    line = r"a second site\.yml changed lab1: Join\. It was a test's\.\n"
    assert len(re.findall(line, report.page(RECORDS))) == 1
    corrected = [*RECORDS, record(round=6, digest="b" * 16)]
    assert len(re.findall(line, report.page(corrected))) == 1


def test_each_fault_has_its_row() -> None:
    found = rows(report.page(RECORDS))
    assert found["kill-site"] == ["2", "2", "0", "0", "200 s"]
    assert found["disk-full"] == ["1", "0", "1", "0", "100 s"]
    assert found["swarm-drained"] == ["1", "0", "0", "1", "100 s"]
    assert found["image-store-switched"] == ["0", "0", "0", "0", "–"]
    assert found["all"] == ["4", "2", "1", "1", "100 s"]
    assert list(found) == [*FAULTS, "all"]


def test_the_bound_is_of_those_that_were_made() -> None:
    page = report.page(RECORDS)
    assert "| controller killed | 2 | 0 | 100.0 % of rounds |" in page
    assert re.search(r"\| other faults \| 2 \| 1 \| 97\.5 % of rounds \|", page)
    assert "| all | 4 | 1 | 75.1 % of rounds |" in page
    assert "| other faults | 0 | 0 | nothing is known |" in report.page(RECORDS[:1])
    many = [record(round=number) for number in range(1, 31)]
    assert "| controller killed | 30 | 0 | 10.0 % of rounds |" in report.page(many)


def test_refusals_and_failures_are_reported_with_seed_and_round() -> None:
    page = report.page(RECORDS)
    assert "- Seed 17, round 3 (`disk-full`, lab2): lab2: is full. Remedy: room Followed: by hand." in page
    assert "- Seed 17, round 4 (`swarm-drained`, lab2): a second site.yml changed lab1: Join" in page
    assert "- Seed 17, round 5 (`image-store-switched`, lab2): no node has such an engine" in page
    assert "Seeds: 17. Lab: 3 nodes (debian 12, Docker 20.10.24)" in page


def test_only_rounds_since_the_last_correction_are_counted() -> None:
    before = [record(digest="old", at="2026-11-01T00:00Z", outcome="failed", why="it hung", commit="aaaa")]
    page = report.page([*before, *RECORDS])
    assert rows(page)["kill-site"][0] == "2"
    earlier = page.split("### Before the last correction")[1]
    assert "1 rounds, of which 1 failed; not counted above." in earlier
    assert "| `old` | 1 | 1 | 0 | 0 |" in earlier
    assert "- commit aaaa (`kill-site`): it hung" in earlier
    assert "Before the last correction" not in report.page(RECORDS)


def test_code_that_changed_without_a_failure_goes_on_being_counted() -> None:
    first, failed, more = record(digest="a"), record(digest="a", outcome="failed"), record(digest="a", round=2)
    other, grown = record(digest="b", round=3), record(digest="c", round=4)
    assert report.since_correction([first, failed, more]) == [first, failed, more]  # not corrected yet
    assert report.since_correction([first, failed, more, other, grown]) == [other, grown]
    assert report.since_correction([first, other, failed, other, grown, failed]) == [other, grown, failed]
    page = report.page([first, failed, other, grown, record(digest="c", round=5, outcome="not made")])
    assert "here of 2 states of plugins, roles and playbooks (1 with `b`, 1 with `c`)" in page
    assert rows(page)["all"][0] == "2"
    assert "here of one state of plugins, roles and playbooks (`0123456789abcdef`)" in report.page(RECORDS)


def test_what_a_run_has_printed_is_no_markdown() -> None:
    page = report.page([record(outcome="failed", why="a | b\n<script> `x_y` [z](w)")])
    assert "a \\| b \\<script\\> \\`x\\_y\\` \\[z\\](w)" in page


def test_records_are_kept_once_and_by_seed(tmp_path: Path) -> None:
    recorded, folder = tmp_path / "rounds.jsonl", tmp_path / "kept"
    for one in (*RECORDS, record(seed=4, at="2026-11-22T00:00Z")):
        append(recorded, one)
    for dummy in range(2):
        report.keep(recorded, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["seed-17.jsonl", "seed-4.jsonl"]
    assert report.load(folder) == [record(seed=4, at="2026-11-22T00:00Z"), *RECORDS]


def test_a_stale_page_is_reported_and_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "chaos.md"
    monkeypatch.setattr(report, "PAGE", page)
    page.write_text("old", encoding="utf-8")
    assert report.write(check=True) == 1
    assert page.read_text(encoding="utf-8") == "old"
    assert capsys.readouterr().err == "docs/chaos.md is stale. Remedy: python -m tests.chaos report\n"
    assert report.write() == report.write(check=True) == 0
