# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root in a container against the code of jobs: forged trees, links in them and around them, hostile records.

The container may break its own jobs. It must not have the host write, remove or read anything outside of the workspace,
and a job must not start from code other than what was to be started.
"""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import FolderError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.code_facts_io import code_facts
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.code_places import CODE, COPIED, OWN, RUNS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.start_folder import (
    CodeError,
    StartFolder,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import system_io
from ansible_collections.swarmspeed.cluster.plugins.modules import mounted_files

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # of b"test"
TREE = f"{CODE}/{'a' * 64}"
RUN = f"{RUNS}/job@gpu1"
NOTHING: dict[str, Any] = {"archive": None, "whole": None, "absent": [], "files": []}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the host, which must stay as it is."""
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "train.py").write_bytes(b"test")
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / OWN).mkdir(parents=True)
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> str:
    path = tmp_path / "workspace.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        info = tarfile.TarInfo("train.py")
        info.size = 4
        file.addfile(info, io.BytesIO(b"test"))
    return str(path)


def untouched(outside: Path) -> bool:
    return {path.name: path.read_bytes() for path in outside.iterdir()} == {"train.py": b"test"}


@pytest.mark.parametrize("place", [OWN, CODE, TREE, f"{TREE}/train.py"])
def test_code_is_written_and_compared_through_no_link(workspace: Path, outside: Path, archive: str, place: str) -> None:
    (workspace / OWN).rmdir()
    (workspace / place).parent.mkdir(parents=True, exist_ok=True)
    (workspace / place).symlink_to(outside / "train.py" if place.endswith(".py") else outside)
    name = f"{TREE}/train.py"
    assert system_io.tree_digests(str(workspace), [name]) == {name: None}
    assert code_facts(str(workspace), {}, None)["unneeded"] == []
    try:
        mounted_files.apply({**NOTHING, "root": str(workspace), "archive": archive, "whole": TREE}, False)
    except FolderError as error:
        assert "is not followed" in str(error)
    assert untouched(outside)


@pytest.mark.parametrize("place", ["sub", "sub/old.py", CODE, TREE])
def test_nothing_is_removed_through_a_link(workspace: Path, outside: Path, place: str) -> None:
    (outside / "train.py").rename(outside / "old.py")
    (workspace / place).parent.mkdir(parents=True, exist_ok=True)
    (workspace / place).symlink_to(outside / "old.py" if place.endswith(".py") else outside)
    absent: list[dict[str, Any]] = [
        {"path": "sub/old.py", "sha256": SHA},
        {"path": TREE, "sha256": None},
        {"path": f"{TREE}/x", "sha256": None},
    ]
    absent = [{**entry, "empty": empty} for entry in absent for empty in (True, False)]
    mounted_files.apply({**NOTHING, "root": str(workspace), "absent": absent}, False)
    (outside / "old.py").rename(outside / "train.py")
    assert untouched(outside)


def test_a_tree_that_is_swapped_for_a_link_while_it_is_written(workspace: Path, outside: Path, archive: str) -> None:
    """Its temporary name is random, but a container sees it as soon as it is there."""
    stop, swapped = threading.Event(), []

    def attack() -> None:
        while not stop.is_set():
            for new in (workspace / CODE).glob(".*.new"):
                try:
                    new.rmdir()
                    new.symlink_to(outside)
                    swapped.append(new)
                except OSError:
                    continue

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        for _try in range(200):
            try:
                mounted_files.apply({**NOTHING, "root": str(workspace), "archive": archive, "whole": TREE}, False)
            except (FolderError, OSError):
                continue
    finally:
        stop.set()
        attacker.join()
    assert untouched(outside)


def _forge_text(workspace: Path, _outside: Path) -> None:
    (workspace / TREE / "train.py").write_bytes(b"evil")


def _forge_link(workspace: Path, outside: Path) -> None:
    (workspace / TREE / "train.py").unlink()
    (workspace / TREE / "train.py").symlink_to(outside / "train.py")


def _forge_tree(workspace: Path, outside: Path) -> None:
    (workspace / TREE / "train.py").unlink()
    (workspace / TREE).rmdir()
    (workspace / TREE).symlink_to(outside)


@pytest.mark.parametrize("forge", [_forge_text, _forge_link, _forge_tree])
def test_no_run_starts_from_a_forged_tree(workspace: Path, outside: Path, forge: Callable[[Path, Path], None]) -> None:
    (workspace / TREE).mkdir(parents=True)
    (workspace / TREE / "train.py").write_bytes(b"test")
    forge(workspace, outside)
    with pytest.raises(CodeError, match="Launch again, which restores it"):
        StartFolder(str(workspace), RUN, "a" * 64, {"train.py": SHA}).prepare()
    assert not (workspace / RUN / "train.py").exists()


@pytest.mark.parametrize("name", ["../../../host/train.py", "/etc/passwd", "..", "", "a/../../x", "a\0b"])
def test_a_hostile_manifest_leads_nowhere(workspace: Path, outside: Path, name: str) -> None:
    """Of a job of the host: its specification lies where only root writes, but the records here do not."""
    for record in ({"files": {name: SHA}, "folders": [name, "../../../host"]}, {name: SHA}):
        (workspace / RUNS).mkdir(exist_ok=True)
        (workspace / f"{RUN}.json").write_text(json.dumps(record))
        (workspace / COPIED).write_text(json.dumps(record))
        (workspace / TREE).mkdir(parents=True, exist_ok=True)
        (workspace / TREE / "train.py").write_bytes(b"test")
        run = StartFolder(str(workspace), RUN, "a" * 64, {"train.py": SHA})
        try:
            run.prepare()
            run.refresh()
            run.settle()
        except (CodeError, FolderError, ValueError) as error:
            assert str(error)
        code_facts(str(workspace), {}, None)
    assert untouched(outside)


@pytest.mark.parametrize("place", ["out", "ckpt", f"{RUN}/out", f"{RUNS}/other@gpu1"])
def test_outputs_are_moved_through_no_link(workspace: Path, outside: Path, place: str) -> None:
    """A link that looks like a supervisor's leads only to what is below the workspace, and not further."""
    (workspace / TREE / "out").mkdir(parents=True)
    (workspace / TREE / "out/README").write_bytes(b"test")
    run = StartFolder(str(workspace), RUN, "a" * 64, {"out/README": SHA})
    run.prepare()
    (workspace / RUN / "ckpt").mkdir(exist_ok=True)
    (workspace / RUN / "ckpt/train.py").write_bytes(b"evil")
    planted = workspace / place
    if planted.is_dir():
        for file in planted.iterdir():
            file.unlink()
        planted.rmdir()
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.symlink_to(outside)
    if place.startswith(RUNS) and place != f"{RUN}/out":
        (workspace / "ckpt").symlink_to(f"{place}/ckpt")
    try:
        run.refresh()
        run.settle()
    except FolderError as error:
        assert "is not followed" in str(error)
    assert untouched(outside)
