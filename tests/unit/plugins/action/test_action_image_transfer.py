# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller side of image_transfer, with a script of replies in place of the module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action import image_transfer
from ansible_collections.swarmspeed.cluster.plugins.action.image_transfer import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import following

MIB = 1 << 20


def reply(spooled: int, *, over: bool = False) -> dict[str, Any]:
    return {"over": over, "progress": {"bytes": 100 * MIB, "spooled": spooled * MIB, "state": "receiving"}}


class Waiter(ActionModule):
    """The action with a script of replies; each call takes the seconds that it was given."""

    def __init__(self, script: list[dict[str, Any]], **args: Any) -> None:
        self._task = SimpleNamespace(args={"step": "wait", **args}, check_mode=False, async_val=0)
        self.script = list(script)
        self.requested: list[dict[str, Any]] = []
        self._connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None))

    def _clock(self) -> float:
        return float(sum(requested["seconds"] for requested in self.requested))

    def _execute_module(self, **call: Any) -> dict[str, Any]:
        self.requested.append(dict(call["module_args"]))
        return self.script.pop(0)


@pytest.fixture(name="printed")
def _printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(ActionBase, "run", lambda *dummy: {})
    monkeypatch.setattr(following.display, "display", lines.append)
    terminal(monkeypatch, there=True)
    return lines


def terminal(monkeypatch: pytest.MonkeyPatch, *, there: bool) -> None:
    monkeypatch.setattr(image_transfer, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: there)))


def run(action: Waiter) -> dict[str, Any]:
    return action.run(task_vars={"inventory_hostname": "lab2"})


def test_a_line_every_ten_seconds(printed: list[str]) -> None:
    action = Waiter([reply(20), reply(60), reply(100, over=True)])
    assert run(action)["over"] is True
    assert printed == ["lab2: 20 of about 100 MiB", "lab2: 60 of about 100 MiB, 4 MiB/s, 10 s left"]
    assert [requested["seconds"] for requested in action.requested] == [10, 10, 10]


def test_it_waits_no_longer_than_configured(printed: list[str]) -> None:
    action = Waiter([reply(20), reply(60), reply(80)], seconds=25)
    assert run(action)["over"] is False
    assert [requested["seconds"] for requested in action.requested] == [10, 10, 5]
    assert len(printed) == 2


def test_without_a_terminal_the_module_waits_once(printed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch, there=False)
    assert run(Waiter([reply(20)], seconds=50))["over"] is False
    assert printed == []


@pytest.mark.usefixtures("printed")
def test_what_fails_is_returned() -> None:
    assert run(Waiter([{"failed": True, "msg": "no"}]))["msg"] == "no"
    assert run(Waiter([{"failed": True, "msg": "no"}], step="queue"))["msg"] == "no"


OTHER = {"pid": 77, "host": "lab2", "since": "11:40:12 UTC", "started_from": "desk"}


def test_another_transfer_is_named_once_and_waited_for(printed: list[str]) -> None:
    action = Waiter([{"running": OTHER}, {"running": OTHER}, {"running": {}}], step="queue", node="lab2")
    assert run(action)["running"] == {}
    assert printed == [
        "lab2: waiting up to 30 min for another transfer to end, which has been running there since 11:40:12 UTC "
        "(process 77, started from desk). To stop it: kill 77 on lab2."
    ]
    assert [requested["seconds"] for requested in action.requested] == [1, 30, 30]


def test_the_other_transfer_is_returned_where_it_takes_longer(printed: list[str]) -> None:
    action = Waiter([{"running": OTHER}] * 3, step="queue", node="lab2", seconds=40)
    assert run(action)["running"] == {**OTHER, "pid": "77"}
    assert [requested["seconds"] for requested in action.requested] == [1, 30, 9]
    assert len(printed) == 1


def test_nothing_is_printed_where_no_transfer_runs(printed: list[str]) -> None:
    assert run(Waiter([{"running": {}}], step="queue", node="lab2"))["running"] == {}
    assert printed == []
