# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The module managed_files: it writes what it is given, in order, and says which file could not be written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.modules import managed_files


def run(capsys: pytest.CaptureFixture[str], files: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    mine = {"owner": os.getuid(), "group": os.getgid()}
    with patch_module_args({"files": [{**mine, **one} for one in files], **more}), pytest.raises(SystemExit):
        managed_files.main()
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_it_writes_all_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file = tmp_path / "etc", tmp_path / "etc" / "a.conf"
    found = run(capsys, [{"path": str(folder), "mode": "0700"}, {"path": str(file), "content": "x\n"}])
    assert (found["changed"], found["files"]) == (True, [str(folder), str(file)])
    assert file.read_text() == "x\n"


def test_it_stops_at_the_first_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = (tmp_path / "a"), (tmp_path / "none" / "b"), (tmp_path / "c")
    found = run(capsys, [{"path": str(one), "content": "x"} for one in (first, second, third)])
    assert found["failed"] and found["files"] == [str(first)] and not third.exists()
    assert found["msg"] == (f"{second}: cannot be written: No such file or directory. Remedy: correct that on the host")


def test_check_mode_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, [{"path": str(tmp_path / "a"), "content": "x"}], _ansible_check_mode=True)
    assert found["changed"] and list(tmp_path.iterdir()) == []
