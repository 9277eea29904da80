# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""driver_preview as a module: its arguments reach the trial, and its answer the role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.modules import driver_preview

POLICY = """\
nvidia-smi:
  Version table:
     550.163.01-2 500
        500 http://x.example trixie/non-free amd64 Packages
"""


class Ended(Exception):
    """How the module ended."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(str(answer))
        self.answer = answer


class FakeModule:
    """Stands for AnsibleModule: keeps the specification and hands out parameters."""

    params: dict[str, Any]

    def __init__(self, *, argument_spec: dict[str, Any], supports_check_mode: bool) -> None:
        assert supports_check_mode
        assert set(self.params) == set(argument_spec)

    def exit_json(self, **answer: Any) -> None:
        raise Ended(answer)

    def fail_json(self, **answer: Any) -> None:
        raise Ended({"failed": True, **answer})


class FakeApt:
    """An apt that has one package; ``made`` keeps what it was made with."""

    made: tuple[Any, ...] = ()

    def __init__(self, _folder: str, sources: str, without: Sequence[str]) -> None:
        type(self).made = (sources, list(without))

    def update(self) -> CommandResult:
        return CommandResult(0)

    def policy(self, _names: Sequence[str]) -> str:
        return POLICY

    def pin(self, _text: str) -> None:
        return

    def simulate(self, _names: Sequence[str]) -> CommandResult:
        text = "Inst nvidia-smi (550.163.01-2 x [amd64])\nRemv nvidia-tesla-535-smi [535.274.02-1]\n"
        return CommandResult(0, text)

    def held(self) -> list[str]:
        return []


REQUESTED: dict[str, Any] = {
    "choices": [{"kind": "dkms", "packages": ["nvidia-smi"], "locked": ["nvidia-smi"], "optional": [], "rivals": []}],
    "branch": 550,
    "kernel": "6.12.43+deb13-amd64",
    "builds_from": "",
    "fabric": [],
    "exact": None,
    "minimum": "",
    "sources": "Types: deb\n",
    "address": "",
    "without": ["/etc/apt/sources.list.d/old.list"],
    "holds": [],
    "purge_conflicting": False,
}


def run(monkeypatch: pytest.MonkeyPatch, apt: Any = FakeApt, **changes: Any) -> dict[str, Any]:
    monkeypatch.setattr(FakeModule, "params", {**REQUESTED, **changes}, raising=False)
    monkeypatch.setattr(driver_preview, "AnsibleModule", FakeModule)
    monkeypatch.setattr(driver_preview, "SystemAptIO", apt)
    with pytest.raises(Ended) as ended:
        driver_preview.main()
    return ended.value.answer


def test_the_answer_says_what_would_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, purge_conflicting=True)
    assert FakeApt.made == ("Types: deb\n", ["/etc/apt/sources.list.d/old.list"])
    assert found["changed"] is False and found["problems"] == []
    assert (found["kind"], found["version"], found["packages"]) == ("dkms", "550.163.01", ["nvidia-smi=550.163.01-2"])
    assert found["removes"] == {"nvidia-tesla-535-smi": "535.274.02-1"}


def test_problems_are_returned_and_do_not_fail_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch)
    assert "failed" not in found
    (problem,) = found["problems"]
    assert ": nvidia-tesla-535-smi. Remedy: " in problem


def test_a_host_without_space_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    found = run(monkeypatch, apt=full)
    assert found["failed"] is True
    assert found["msg"].startswith(
        "Cannot try apt on this host: [Errno 28] No space left on device. Is there space in /tmp"
    )
