# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""mounted_files: what it writes, predicts and refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.modules import mounted_files


def run(capsys: pytest.CaptureFixture[str], check: bool = False, **args: Any) -> dict[str, Any]:
    with patch_module_args({**args, "_ansible_check_mode": check}), pytest.raises(SystemExit):
        mounted_files.main()
    reply: dict[str, Any] = json.loads(capsys.readouterr().out)
    return reply


def test_files_are_kept_and_nothing_else_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [{"path": ".vscode/launch.json", "content": "{}\n"}]
    predicted = run(capsys, check=True, root=str(tmp_path), files=wanted)
    assert (predicted["changed"], list(tmp_path.iterdir())) == (True, [])
    written = run(capsys, root=str(tmp_path), files=wanted)
    assert written["files"] == predicted["files"] == [".vscode/launch.json"]
    assert (written["diff"][0]["before"], written["diff"][0]["after"]) == ("", "{}\n")
    assert (tmp_path / ".vscode/launch.json").read_text() == "{}\n"
    assert (tmp_path / ".vscode").stat().st_mode & 0o777 == 0o755
    assert run(capsys, root=str(tmp_path), files=wanted)["changed"] is False
    again = run(capsys, root=str(tmp_path), files=[{**wanted[0], "mode": "0600"}])
    assert again["changed"] is True and (tmp_path / ".vscode/launch.json").stat().st_mode & 0o777 == 0o600


def test_an_archive_is_unpacked_over_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "source" / "sub" / "run.sh").chmod(0o755)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as file:
        file.add(tmp_path / "source", arcname=".")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "mine").write_text("stays")
    assert run(capsys, check=True, root=str(root), archive=str(tmp_path / "a.tar.gz"))["changed"] is True
    assert not (root / "sub/run.sh").exists()
    reply = run(capsys, root=str(root), archive=str(tmp_path / "a.tar.gz"))
    assert (reply["changed"], reply["files"]) == (True, ["sub/run.sh"])
    assert (root / "sub/run.sh").stat().st_mode & 0o777 == 0o755
    assert (root / "sub/mine").read_text() == "stays"


def test_a_folder_that_is_still_to_be_made_is_no_error_in_check_mode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted: dict[str, Any] = {"root": str(tmp_path / "none"), "files": [{"path": "a", "content": ""}]}
    assert run(capsys, check=True, **wanted)["changed"] is True
    assert run(capsys, **wanted)["msg"] == f"root: {tmp_path}/none is not a folder. Remedy: create it first."


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"path": "a", "content": "", "mode": "u=rw"}, "mode: 'u=rw' is not three octal digits. Remedy: "),
        ({"path": "../a", "content": ""}, "'../a' is not a path below "),
    ],
)
def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: dict[str, str], says: str) -> None:
    reply = run(capsys, root=str(tmp_path), files=[{"path": "first", "content": ""}, entry])
    assert reply["failed"] is True and reply["msg"].startswith(says)
    assert list(tmp_path.iterdir()) == []


def archive_of(path: Path, **texts: str) -> str:
    source = path / "source"
    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / f"{name}.py").write_text(text)
    with tarfile.open(path / "a.tar.gz", "w:gz") as file:
        file.add(source, arcname=".")
    return str(path / "a.tar.gz")


@pytest.mark.parametrize("before", ["nothing", "other files", "a link"])
def test_a_folder_appears_whole_and_has_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "code").mkdir(parents=True)
    outside.mkdir()
    if before == "other files":
        (root / "code/x/old").mkdir(parents=True)
    if before == "a link":
        (root / "code/x").symlink_to(outside)
    args: dict[str, Any] = {"root": str(root), "archive": archive_of(tmp_path, a="a", b="b"), "whole": "code/x"}
    assert run(capsys, check=True, **args)["changed"] is True
    assert (root / "code/x").exists() is (before != "nothing")
    assert run(capsys, **args)["files"] == ["code/x/a.py", "code/x/b.py"]
    assert {path.name: path.read_text() for path in (root / "code/x").iterdir()} == {"a.py": "a", "b.py": "b"}
    assert [path.name for path in (root / "code").iterdir()] == ["x"]
    assert list(outside.iterdir()) == []


def test_nodes_that_share_the_folder_write_it_at_once(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, a="a", b="b")
    (tmp_path / "root").mkdir()
    args = {"root": str(tmp_path / "root"), "archive": archive, "whole": "code/x", "absent": [], "files": []}
    with ThreadPoolExecutor(8) as nodes:
        for reply in nodes.map(lambda _node: mounted_files.apply(args, False), range(40)):
            assert reply["changed"] is True
    code = tmp_path / "root/code"
    assert [path.name for path in code.iterdir()] == ["x"]
    assert {path.name for path in (code / "x").iterdir()} == {"a.py", "b.py"}


def test_what_is_absent_goes_with_what_python_made_of_it_and_empty_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pkg/old.py", "pkg/__pycache__/old.cpython-311.pyc", "pkg/deep/x.py", "mine/old.py", "mine/new.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old")
    (tmp_path / "tree/a").mkdir(parents=True)
    digest = hashlib.sha256(b"old").hexdigest()
    absent = [{"path": name, "sha256": digest} for name in ("pkg/old.py", "pkg/deep/x.py", "mine/old.py", "none")]
    absent += [{"path": "mine/new.py", "sha256": "0" * 64}, {"path": "tree"}, {"path": "gone"}]
    expected = ["pkg/old.py", "pkg/deep/x.py", "mine/old.py", "tree"]
    assert run(capsys, check=True, root=str(tmp_path), absent=absent)["removed"] == expected
    assert run(capsys, root=str(tmp_path), absent=absent)["removed"] == expected
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "new.py"]
    assert run(capsys, root=str(tmp_path), absent=absent)["changed"] is False
    assert run(capsys, root=str(tmp_path / "none"), absent=absent)["changed"] is False


def test_only_an_empty_folder_goes_where_that_is_requested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "c").write_text("")
    absent = [{"path": name, "empty": True} for name in ("a", "c", "d")]
    assert run(capsys, root=str(tmp_path), absent=absent)["removed"] == []
    assert run(capsys, root=str(tmp_path), absent=[{"path": "a/b", "empty": True}])["removed"] == ["a/b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c"]


def test_a_link_by_which_a_run_shows_a_folder_gives_way_and_no_other_link_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    (root / ".swarmspeed/runs/a@gpu1/out").mkdir(parents=True)
    (root / "out").symlink_to(".swarmspeed/runs/a@gpu1/out")
    (tmp_path / "source/out").mkdir(parents=True)
    archive = archive_of(tmp_path, **{"out/x": "x"})
    assert run(capsys, root=str(root), archive=archive)["changed"] is True
    assert not (root / "out").is_symlink()
    assert list((root / ".swarmspeed/runs/a@gpu1/out").iterdir()) == []
    shutil.rmtree(root / "out")
    (root / "out").symlink_to(tmp_path)
    assert "is not followed" in run(capsys, root=str(root), archive=archive)["msg"]
