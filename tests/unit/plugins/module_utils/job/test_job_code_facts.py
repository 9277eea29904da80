# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node says of the code in its workspace, over a workspace and jobs on a real file system."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.code_facts_io import SILENT, YOUNG, code_facts
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.code_places import CODE, COPIED, RUNS

NOW = 2_000_000_000.0
WANTED, OTHER, THIRD = "a" * 64, "b" * 64, "c" * 64


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Node:
    def __init__(self, path: Path) -> None:
        self.workspace, self.jobs = path / "workspace", path / "jobs"
        self.jobs.mkdir(parents=True)
        self.workspace.mkdir()

    def files(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.workspace / f"{name}.py").write_text(text)

    def copied(self, **texts: str) -> None:
        (self.workspace / COPIED).parent.mkdir(exist_ok=True)
        (self.workspace / COPIED).write_text(json.dumps({f"{name}.py": sha(text) for name, text in texts.items()}))

    def code(self, digest: str, age: float) -> None:
        folder = self.workspace / CODE / digest
        folder.mkdir(parents=True)
        os.utime(folder, (NOW - age, NOW - age))

    def job(self, name: str, state: str = "running", code: str | None = None, beat: float = 0.0) -> None:
        (self.jobs / name).mkdir()
        spec = {"fingerprint": {"workspace": {"train.py": sha("train")}}, "members": [{"name": "gpu1"}]}
        request = {"spec": spec, "options": {"code": code} if code else {}}
        (self.jobs / name / "spec.json").write_text(json.dumps(request))
        (self.jobs / name / "state.json").write_text(json.dumps({"state": state, "heartbeat": NOW - beat}))

    def facts(self, *wanted: str) -> dict[str, Any]:
        files = {f"{name}.py": sha(name) for name in wanted}
        wanted_there = {**files, **{f"{CODE}/{WANTED}/{name}": digest for name, digest in files.items()}}
        return code_facts(str(self.workspace), wanted_there, str(self.jobs), clock=lambda: NOW)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_files_that_the_source_has_lost(node: Node) -> None:
    node.files(train="train", old="old", edited="mine", mine="mine")
    node.copied(train="train", old="old", edited="theirs", gone="gone")
    facts = node.facts("train")
    assert (facts["left"], facts["copied"]) == (["old.py"], {"old.py": sha("old")})
    assert facts["kept"] == {"edited.py": sha("theirs")}
    assert facts["recorded"] is True
    assert node.facts("train", "new")["recorded"] is False


def test_code_is_unneeded_once_it_is_old_and_no_job_was_started_from_it(node: Node) -> None:
    for digest in (WANTED, OTHER, THIRD, "d" * 64):
        node.code(digest, YOUNG + 1)
    node.code("e" * 64, YOUNG - 1)
    node.job("other", state="succeeded", code=OTHER)
    assert node.facts("train")["unneeded"] == [THIRD, "d" * 64]


def test_jobs_that_run_with_code_of_their_own_and_without(node: Node) -> None:
    node.job("old")
    node.job("old-lost", beat=SILENT + 1)
    node.job("ended", state="failed")
    node.job("intact", code=OTHER)
    node.job("changed", code=OTHER)
    for name, text in (("intact", "train"), ("changed", "other")):
        own = node.workspace / RUNS / f"{name}@gpu1"
        own.mkdir(parents=True)
        (own / "train.py").write_text(text)
    facts = node.facts("train")
    assert (facts["readers"], facts["running"]) == (["old"], {"changed": ["train.py"], "intact": []})


def test_nothing_that_is_planted_is_followed_or_believed(node: Node, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("old")
    (node.workspace / "old.py").symlink_to(secret)
    node.copied(old="old")
    names = {"old.py": sha("old"), "../secret": sha("old"), "a\x1b[2J": sha("old"), "": sha("old"), "x": ["y"]}
    (node.workspace / COPIED).write_text(json.dumps(names))
    node.job("a", code="../../..")
    for text in (
        "[]",
        '{"spec": [], "options": []}',
        '{"spec": {"members": [1], "fingerprint": {"workspace": 7}}}',
        "{",
    ):
        (node.jobs / "a" / "spec.json").write_text(text)
        facts = node.facts("train")
        assert (facts["left"], facts["kept"], facts["unneeded"]) == ([], {}, [])
        assert (facts["readers"], facts["running"]) == ([], {})
    (node.workspace / CODE).symlink_to(tmp_path)
    assert node.facts("train")["unneeded"] == []


def test_a_workspace_that_does_not_exist_yet(tmp_path: Path) -> None:
    facts = code_facts(str(tmp_path / "none"), {"a": sha("a")}, str(tmp_path / "none"))
    assert facts == {
        "left": [],
        "kept": {},
        "copied": {},
        "recorded": False,
        "unneeded": [],
        "readers": [],
        "running": {},
    }
