# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where a run starts, on a real file system: it reads its own source, and what it writes is in the workspace."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.code_places import CODE, COPIED, RUNS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.base import NodeContext
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.start_folder import (
    CodeError,
    StartFolder,
)

SOURCE = {"a.txt": "A", "pkg/late.py": "x = 1", "out/README": "results", "run.sh": "#!/bin/sh"}


class Workspace:
    """A folder with sources in ``.swarmspeed/code``, and runs that start from them."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, 1000.0
        path.mkdir()

    def source(self, files: dict[str, str], digest: str = "a" * 64) -> dict[str, str]:
        for name, text in files.items():
            file = self.path / CODE / digest / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if name.endswith(".sh") else 0o644)
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}

    def working_copy(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)
        found = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
        (self.path / COPIED).parent.mkdir(exist_ok=True)
        (self.path / COPIED).write_text(json.dumps(found))

    def run(self, job: str = "a", files: dict[str, str] | None = None, digest: str = "a" * 64) -> StartFolder:
        wanted = self.source(SOURCE if files is None else files, digest)
        return StartFolder(str(self.path), f"{RUNS}/{job}@gpu1", digest, wanted, clock=lambda: self.now)

    def refresh(self, run: StartFolder) -> None:
        self.now += 5
        run.refresh()

    def read(self, name: str) -> str:
        return (self.path / name).read_text()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


def test_a_run_has_its_own_copy_of_the_source_with_its_modes(workspace: Workspace) -> None:
    run = workspace.run()
    run.prepare()
    workspace.working_copy({"a.txt": "B"})
    (workspace.path / CODE / ("a" * 64) / "a.txt").write_text("changed")
    own = Path(run.path)
    assert {name: (own / name).read_text() for name in SOURCE} == SOURCE
    assert os.access(own / "run.sh", os.X_OK)
    assert not os.access(own / "a.txt", os.X_OK)


def test_the_rest_of_the_workspace_is_seen_and_the_source_wins(workspace: Workspace) -> None:
    workspace.working_copy({"a.txt": "another's", "other.py": "", "theirs/mod.py": ""})
    for name, text in {"data/x": "data", "out/old": "old", "out/README": "edited", "theirs/note": "mine"}.items():
        (workspace.path / name).parent.mkdir(exist_ok=True)
        (workspace.path / name).write_text(text)
    run = workspace.run()
    run.prepare()
    own = Path(run.path)
    assert (own / "a.txt").read_text() == "A"
    assert (own / "out/README").read_text() == "results"
    assert (own / "data/x").read_text() == "data"
    assert (own / "out/old").read_text() == "old"
    assert (own / "theirs/note").read_text() == "mine"
    assert not (own / "other.py").exists()
    assert not (own / "theirs/mod.py").exists()
    assert not (own / ".swarmspeed").exists()


def test_what_comes_later_is_seen_but_not_a_later_source(workspace: Workspace) -> None:
    run = workspace.run()
    run.prepare()
    workspace.working_copy({"b_only.py": "", "b/mod.py": ""})
    (workspace.path / "STOP").write_text("")
    workspace.refresh(run)
    own = Path(run.path)
    assert (own / "STOP").exists()
    assert not (own / "b_only.py").exists()
    assert not (own / "b").exists()


def test_outputs_are_in_the_workspace_at_once_and_for_good_afterwards(workspace: Workspace) -> None:
    run = workspace.run()
    run.prepare()
    own = Path(run.path)
    (own / "ckpt/step1").mkdir(parents=True)
    (own / "ckpt/step1/model").write_text("weights")
    (own / "out/log.txt").write_text("1")
    (own / "latest").symlink_to("ckpt/step1")
    (own / "pkg/__pycache__").mkdir()
    (own / "pkg/__pycache__/late.pyc").write_text("")
    workspace.refresh(run)
    assert workspace.read("ckpt/step1/model") == "weights"
    assert workspace.read("out/log.txt") == "1"
    (own / "out/log.txt").write_text("2")
    assert workspace.read("out/log.txt") == "2"
    assert run.settle() == []
    assert not own.exists()
    assert sorted(path.name for path in (workspace.path / RUNS).iterdir()) == []
    assert workspace.read("latest/model") == "weights"
    assert not (workspace.path / "ckpt").is_symlink()
    assert not (workspace.path / "out/log.txt").is_symlink()
    assert workspace.read("out/log.txt") == "2"
    assert sorted(path.name for path in workspace.path.iterdir()) == [".swarmspeed", "ckpt", "latest", "out"]


def test_a_file_that_a_run_replaces_is_replaced_in_the_workspace(workspace: Workspace) -> None:
    (workspace.path / "metrics.json").write_text("old")
    (workspace.path / "dir").mkdir()
    (workspace.path / "dir/kept").write_text("kept")
    run = workspace.run()
    run.prepare()
    own = Path(run.path)
    (own / "new").write_text("new")
    (own / "new").replace(own / "metrics.json")
    (own / "dir").unlink()
    (own / "dir").mkdir()
    (own / "dir/added").write_text("added")
    workspace.refresh(run)
    assert workspace.read("metrics.json") == "new"
    assert run.settle() == []
    assert workspace.read("metrics.json") == "new"
    assert {path.name for path in (workspace.path / "dir").iterdir()} == {"kept", "added"}


def test_what_a_run_removes_stays_away_and_leaves_no_link(workspace: Workspace) -> None:
    (workspace.path / "old").write_text("kept")
    run = workspace.run()
    run.prepare()
    own = Path(run.path)
    (own / "old").unlink()
    (own / "step1").mkdir()
    workspace.refresh(run)
    assert (workspace.path / "step1").is_symlink()
    (own / "step1").rmdir()
    workspace.refresh(run)
    assert not (own / "old").exists()
    assert not (workspace.path / "step1").is_symlink()
    run.settle()
    assert workspace.read("old") == "kept"


def test_a_file_of_the_source_that_a_run_has_changed_is_an_output(workspace: Workspace) -> None:
    run = workspace.run()
    run.prepare()
    (Path(run.path) / "a.txt").write_text("changed by the run")
    run.settle()
    assert workspace.read("a.txt") == "changed by the run"
    again = workspace.run()
    again.prepare()
    assert (Path(again.path) / "a.txt").read_text() == "A"


def test_a_removed_file_is_gone_also_after_a_crash(workspace: Workspace) -> None:
    run = workspace.run()
    run.prepare()
    (Path(run.path) / "ckpt").mkdir()
    (Path(run.path) / "ckpt/1").write_text("1")
    workspace.refresh(run)  # and then the container is killed
    left = {name: text for name, text in SOURCE.items() if name != "pkg/late.py"}
    fresh = workspace.run(files=left, digest="b" * 64)
    fresh.prepare()
    own = Path(fresh.path)
    assert not (own / "pkg").exists()
    assert (own / "ckpt").is_symlink()
    assert not (workspace.path / "ckpt").is_symlink()
    assert (own / "ckpt/1").read_text() == "1"
    assert not (workspace.path / "pkg").exists()


def test_a_restart_goes_on_in_the_same_folder(workspace: Workspace) -> None:
    workspace.run().prepare()
    own = Path(workspace.run().path)
    (own / "a.txt").write_text("changed")
    (own / "new").mkdir()
    again = workspace.run()
    again.prepare(again=True)
    assert (own / "a.txt").read_text() == "changed"
    assert (own / "new").is_dir()
    assert not (own / "new").is_symlink()


def test_nodes_that_share_the_workspace_prepare_and_settle_alike(workspace: Workspace) -> None:
    nodes = [workspace.run() for _node in range(3)]
    for node in nodes:
        node.prepare()
    own = Path(nodes[0].path)
    (own / "ckpt").mkdir()
    for number, node in enumerate(nodes):
        (own / f"ckpt/{number}").write_text("")
        workspace.refresh(node)
    assert [node.settle() for node in nodes] == [[], [], []]
    assert len(list((workspace.path / "ckpt").iterdir())) == 3
    assert not own.exists()


def test_two_runs_that_make_a_folder_of_the_same_name_both_keep_what_they_made(workspace: Workspace) -> None:
    one, two = workspace.run("a"), workspace.run("b", {"b.txt": "B"}, "b" * 64)
    for run in (one, two):
        run.prepare()
    for run, name in ((one, "1"), (two, "2")):
        (Path(run.path) / "ckpt").mkdir()
        (Path(run.path) / "ckpt" / name).write_text(name)
        workspace.refresh(run)
    assert two.settle() == []
    assert one.settle() == []
    assert {path.name for path in (workspace.path / "ckpt").iterdir()} == {"1", "2"}


@pytest.mark.parametrize("damage", ["changed", "missing", "link", "linked tree"])
def test_code_that_is_not_what_was_to_be_started_is_refused(workspace: Workspace, tmp_path: Path, damage: str) -> None:
    run = workspace.run()
    tree = workspace.path / CODE / ("a" * 64)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "a.txt").write_text("A")
    if damage == "linked tree":
        shutil.rmtree(tree)
        tree.symlink_to(secret)
    else:
        (tree / "a.txt").unlink()
        if damage == "changed":
            (tree / "a.txt").write_text("forged")
        if damage == "link":
            (tree / "a.txt").symlink_to(secret / "a.txt")
    with pytest.raises(CodeError, match=r"a\.txt.*Launch again, which restores it\.$"):
        run.prepare()
    assert not (Path(run.path) / "a.txt").exists()


@pytest.mark.parametrize("place", [RUNS, f"{RUNS}/a@gpu1", f"{RUNS}/a@gpu1/out"])
def test_no_planted_link_is_followed(workspace: Workspace, tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs").write_text("kept")
    planted = workspace.path / place
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to(outside)
    run = workspace.run()
    try:
        run.prepare()
        run.settle()
    except Exception as error:
        assert "is not followed" in str(error)
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"theirs": "kept"}


@pytest.mark.parametrize(
    "record",
    [
        "",
        "[1]",
        '{"files": ["x"], "folders": {"a": 1}}',
        '{"files": {"../../../x": "y"}, "folders": ["..", 7, "/etc"]}',
    ],
)
def test_a_forged_record_moves_and_removes_nothing_outside(workspace: Workspace, tmp_path: Path, record: str) -> None:
    (tmp_path / "x").write_text("kept")
    run = workspace.run()
    run.prepare()
    (Path(run.path) / "new").write_text("output")
    for name in (f"{RUNS}/a@gpu1.json", COPIED):
        (workspace.path / name).write_text(record)
    run.settle()
    workspace.run().prepare()
    assert (tmp_path / "x").read_text() == "kept"
    assert workspace.read("new") == "output"


def test_absolute_paths_of_the_source_lead_to_the_runs_own(workspace: Workspace) -> None:
    run = workspace.run()
    root = str(workspace.path)
    assert run.holds(f"{root}/a.txt") == f"{run.path}/a.txt"
    assert run.holds(f"{root}/pkg") == f"{run.path}/pkg"
    assert run.holds(root) == run.path
    for word in (f"{root}/checkpoints/a", f"{root}er/a.txt", "a.txt", "/etc/passwd"):
        assert run.holds(word) == word


def test_a_job_uses_its_own_code_and_files_by_whatever_way_it_gets_their_paths(workspace: Workspace) -> None:
    inside = "/etc/swarmspeed/ds_config.json"
    folder = workspace.path.parent / "jobs/a"
    folder.mkdir(parents=True)
    root = str(workspace.path)
    spec = {
        "command": ["deepspeed", f"{root}/a.txt", "--deepspeed_config", inside, f"{root}/ckpt"],
        "chdir": root,
        "environment": {"ACCELERATE_DEEPSPEED_CONFIG_FILE": inside, "PYTHONPATH": f"{root}:/opt/lib:{root}/pkg"},
        "ds_config": inside,
        "members": [{"name": "gpu1", "address": "gpu1", "slots": [0]}],
        "fingerprint": {"workspace": workspace.source(SOURCE)},
    }
    options = {"code": "a" * 64, "files": {inside: "ds_config.json"}}
    (folder / "spec.json").write_text(json.dumps({"spec": spec, "node": "gpu1", "options": options}))
    place = NodeContext(folder)
    own, copy = f"{root}/{RUNS}/a@gpu1", f"{folder}/ds_config.json"
    assert (place.chdir, place.ds_config, place.named(copy)) == (own, copy, inside)
    assert place.command({"master_port": 1, "logs": ""})[1:] == [
        f"{own}/a.txt",
        "--deepspeed_config",
        copy,
        f"{root}/ckpt",
    ]
    expected = {"ACCELERATE_DEEPSPEED_CONFIG_FILE": copy, "PYTHONPATH": f"{own}:/opt/lib:{own}/pkg"}
    assert place.own_environment() == expected
    assert place.environment(1) == expected
