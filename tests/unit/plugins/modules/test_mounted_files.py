# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""mounted_files: what it writes, predicts and refuses."""

from __future__ import annotations

import json
import tarfile
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
    assert run(capsys, **wanted)["msg"] == f"root: {tmp_path}/none is no folder. Remedy: make it first."


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"path": "a", "content": "", "mode": "u=rw"}, "mode: 'u=rw' is not three octal digits. Remedy: "),
        ({"path": "../a", "content": ""}, "'../a' is no path below "),
    ],
)
def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: dict[str, str], says: str) -> None:
    reply = run(capsys, root=str(tmp_path), files=[{"path": "first", "content": ""}, entry])
    assert reply["failed"] is True and reply["msg"].startswith(says)
    assert list(tmp_path.iterdir()) == []
