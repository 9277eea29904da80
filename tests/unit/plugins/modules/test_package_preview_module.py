# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The glue of package_preview, with an apt that is invented."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.modules import package_preview

POLICY = "toolkit:\n  Installed: (none)\n  Version table:\n     1.18.2-1 500\n        500 file:/srv x Packages\n"


class FakeApt:
    """Notes what it was made with."""

    made: tuple[str, str, list[str]]

    def __init__(self, folder: str, sources: str, without: Sequence[str]) -> None:
        assert Path(folder).is_dir()
        FakeApt.made = (folder, sources, list(without))

    def update(self) -> CommandResult:
        return CommandResult(0)

    def policy(self, names: Sequence[str]) -> str:
        return POLICY

    def simulate(self, names: Sequence[str]) -> CommandResult:
        return CommandResult(0, "Inst toolkit (1.18.2-1 x)\n")

    def held(self) -> list[str]:
        return []


def run(capsys: pytest.CaptureFixture[str], **args: Any) -> dict[str, Any]:
    with patch_module_args(args), pytest.raises(SystemExit) as ended:
        package_preview.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (ended.value.code == 0) is not result.get("failed", False)
    return result


@pytest.mark.parametrize("check", [False, True])
def test_what_apt_says_is_returned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: bool
) -> None:
    monkeypatch.setattr(package_preview, "SystemAptIO", FakeApt)
    names = ["toolkit"]
    more = {"sources": "Types: deb\n", "without": ["/etc/apt/sources.list.d/x.list"], "_ansible_check_mode": check}
    result = run(capsys, packages=names, locked=names, version="1.18", prefix="nvidia_container_toolkit", **more)
    assert (result["changed"], result["packages"], result["version"]) == (False, ["toolkit=1.18.2-1"], "1.18.2-1")
    assert result["installs"] == {"toolkit": "1.18.2-1"} and result["problems"] == []
    # Ansible takes a host whose result says "unreachable" for one that does not answer.
    assert result["cannot_fetch"] is False and "unreachable" not in result
    assert FakeApt.made[1:] == ("Types: deb\n", ["/etc/apt/sources.list.d/x.list"])
    assert not Path(FakeApt.made[0]).exists()


def test_a_locked_package_must_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, packages=["a"], locked=["a", "b"], prefix="docker")
    assert result["msg"] == "locked: b is not among packages."


def test_a_host_that_cannot_be_tried_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(package_preview, "SystemAptIO", full)
    assert run(capsys, packages=["a"], prefix="docker")["msg"] == (
        "Cannot try apt on this host: [Errno 28] No space left on device. Is there space in /tmp, and may the account "
        "read apt's files (become: true)?"
    )
