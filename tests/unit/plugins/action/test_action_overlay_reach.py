# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller side of overlay_reach: what converges is waited for, with one message."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.overlay_reach import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import following


def reply(stage: str) -> dict[str, Any]:
    return {"changed": False, "reached": {"gpu2": {"stage": stage, "error": "" if stage == "done" else "no route"}}}


class Reacher(ActionModule):
    def __init__(self, script: list[dict[str, Any]], patience: int) -> None:
        self._task = SimpleNamespace(args={"patience": patience}, action="overlay_reach")
        self.script, self.requested, self.now = script, 0, 0.0

    def _clock(self) -> float:
        return self.now

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _execute_module(self, module_name: str, module_args: Any, task_vars: Any) -> dict[str, Any]:
        self.requested += 1
        self.now += 3
        return dict(self.script[min(self.requested, len(self.script)) - 1])


@pytest.mark.parametrize(
    ("script", "patience", "requested", "lines"),
    [
        ([reply("done")], 90, 1, 0),
        ([reply("name"), reply("connect"), reply("done")], 90, 3, 1),
        ([reply("connect")], 0, 1, 0),
        ([reply("connect")], 20, 5, 1),
        ([{"failed": True, "msg": "no"}], 90, 1, 0),
        ([{"msg": "odd"}], 90, 1, 0),
    ],
)
def test_how_long_is_waited(
    monkeypatch: pytest.MonkeyPatch, script: list[dict[str, Any]], patience: int, requested: int, lines: int
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(following, "display", SimpleNamespace(display=shown.append))
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    action = Reacher(script, patience)
    assert action.run(task_vars={"inventory_hostname": "gpu1"}) == script[-1]
    assert (action.requested, len(shown)) == (requested, lines)
    for line in shown:
        assert line == (
            f"gpu1: its container does not reach gpu2 over the overlay network yet; waiting up to {patience} s, as the "
            "network may still converge."
        )
