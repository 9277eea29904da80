# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""owned_folders: what it returns, predicts and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.owned.folders_io import SystemFolders
from ansible_collections.swarmspeed.cluster.plugins.modules import owned_folders

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(owned_folders, "SystemFolders", partial(SystemFolders, place=str(tmp_path / "records")))

    def called(check: bool = False, **args: Any) -> dict[str, Any]:
        given = {"cluster": "lab", "root": str(tmp_path / "team"), **args}
        with patch_module_args({**given, "_ansible_check_mode": check}), pytest.raises(SystemExit):
            owned_folders.main()
        reply: dict[str, Any] = json.loads(capsys.readouterr().out)
        return reply

    return called


def test_first_use_and_teardown(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "team"
    folders = [{"path": str(root)}, {"path": f"{root}/etc"}]
    predicted = run(check=True, folders=folders)
    assert predicted["changed"] and not root.exists()
    made = run(folders=folders)
    assert made["created"] == predicted["created"] == [str(root), f"{root}/etc"]
    assert made["diff"] == predicted["diff"]
    assert run(folders=folders)["changed"] is False
    (root / "etc/env").write_text("")
    (root / "etc/mine.conf").write_text("mine")
    known = [{**folder, "known": True} for folder in reversed(folders)]
    removed = run(folders=known, state="absent")
    assert removed["removed"] == [f"{root}/etc/env"] and "mine.conf" in removed["kept"][0]
    assert run(folders=known, state="absent")["changed"] is False


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"folders": [{"path": "/etc"}]}, "/etc belongs to the operating system (/etc). Remedy: name another folder."),
        (
            {"cluster": "../x", "folders": []},
            "cluster: '../x' is not a valid name of a cluster. Remedy: give cluster_name.",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(run: Run, given: dict[str, Any], expected: str) -> None:
    for state in ("present", "absent"):
        reply = run(**given, state=state)
        assert reply["failed"] and reply["msg"] == expected
