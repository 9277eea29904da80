# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Rounds are appended whole, and a suite that was interrupted goes on with the next."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.chaos.plan import Entry, plan
from tests.chaos.records import append, commit, digest, pending, read, without_paths
from tests.unit.chaos.samples import RECORD, record

ROUNDS = plan(17, 6, [Entry("kill-site", 2), Entry("disk-full")], ("lab1", "lab2", "lab3"))


def test_what_is_appended_is_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rounds.jsonl"
    assert read(path) == []
    records = [record(round=number, why="größer\nals") for number in range(3)]
    for one in records:
        append(path, one)
    assert read(path) == records
    assert len(path.read_bytes().splitlines()) == 3


@pytest.mark.parametrize("size", [1, 30, -1])
def test_a_line_that_was_cut_off_costs_nothing_but_itself(tmp_path: Path, size: int) -> None:
    path = tmp_path / "rounds.jsonl"
    append(path, record(round=1))
    cut = (json.dumps(asdict(record(round=2))) + "\n")[:size]
    with path.open("a", encoding="utf-8") as file:
        file.write(cut if size > 0 else cut.rstrip("\n}"))
    assert [one.round for one in read(path)] == [1]
    append(path, record(round=3))
    assert [one.round for one in read(path)] == [1, 3]


def test_lines_that_are_no_records_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    path.write_text(f'[1]\n{{"seed": 1}}\n\n{json.dumps({**asdict(RECORD), "later": True})}\n', encoding="utf-8")
    assert read(path) == [RECORD]


def test_the_next_round_is_the_first_that_was_not_made() -> None:
    made = [record(round=1), record(round=2, outcome="failed"), record(round=4)]
    assert [one.number for one in pending(ROUNDS, made, 17, RECORD.digest, 3)] == [3, 5, 6]
    assert pending(ROUNDS, [record(round=one.number) for one in ROUNDS], 17, RECORD.digest, 3) == []


@pytest.mark.parametrize(
    ("seed", "of", "nodes"), [(18, RECORD.digest, 3), (17, "corrected", 3), (17, RECORD.digest, 5)]
)
def test_another_seed_code_or_lab_begins_with_the_first(seed: int, of: str, nodes: int) -> None:
    made = [record(round=one.number) for one in ROUNDS]
    assert pending(ROUNDS, made, seed, of, nodes) == ROUNDS


def test_the_digest_changes_with_every_file_of_the_collection_and_with_nothing_else(tmp_path: Path) -> None:
    for folder in ("plugins/modules", "roles/docker/tasks", "playbooks", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "plugins/modules/a.py").write_text("1")
    seen = [digest(tmp_path)]
    for path, text in (
        ("plugins/modules/a.py", "2"),
        ("roles/docker/tasks/main.yml", ""),
        ("playbooks/site.yml", "-"),
        ("playbooks/other.yml", "-"),
    ):
        (tmp_path / path).write_text(text)
        seen.append(digest(tmp_path))
    (tmp_path / "playbooks/other.yml").rename(tmp_path / "playbooks/renamed.yml")
    seen.append(digest(tmp_path))
    assert len(set(seen)) == len(seen)
    (tmp_path / "tests/test.py").write_text("x")
    (tmp_path / "plugins/__pycache__").mkdir()
    (tmp_path / "plugins/__pycache__/a.pyc").write_text("x")
    assert digest(tmp_path) == seen[-1]


def test_a_commit_says_whether_files_were_changed_since(tmp_path: Path) -> None:
    assert commit(tmp_path / "nowhere") == "unknown"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    (tmp_path / "a").write_text("1")
    for words in (["init", "-q"], ["add", "a"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    clean = commit(tmp_path)
    (tmp_path / "a").write_text("2")
    assert len(clean) >= 7
    assert commit(tmp_path) == f"{clean}-dirty"


def test_no_place_of_this_machine_is_recorded() -> None:
    root = Path("/home/somebody/checkout")
    reported = f"no file {root}/examples/x, {root} or {Path.home()}/.ssh, nor /tmp/abc/d.json here"
    assert without_paths(reported, root) == "no file examples/x, . or ~/.ssh, nor /tmp/… here"
