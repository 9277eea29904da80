# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller side of job_precheck: names that are still to come are waited for, with one message."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.job_precheck import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection import following

UNKNOWN = "Temporary failure in name resolution"


def reply(*addresses: str, locks: list[str] | None = None) -> dict[str, Any]:
    found = {"host": "ai-gpu2", "addresses": list(addresses), "error": "" if addresses else UNKNOWN}
    locks = locks or []
    names = {"names": {"gpu2": found}}
    return {
        "changed": bool(locks),
        "removed_locks": locks,
        "diff": {"before": "".join(locks)},
        "probe": {"answer": names},
    }


class Prober(ActionModule):
    """Each probe that lacks a name takes ten seconds of this clock."""

    def __init__(self, script: list[dict[str, Any]], names_timeout: int) -> None:
        self._task = SimpleNamespace(args={"names_timeout": names_timeout}, action="job_precheck")
        self.script, self.requested, self.now = script, 0, 0.0

    def _clock(self) -> float:
        return self.now

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _execute_module(self, module_name: str, module_args: Any, task_vars: Any) -> dict[str, Any]:
        assert module_name == "swarmspeed.cluster.job_precheck"
        self.requested += 1
        self.now += 10
        return copy.deepcopy(self.script[min(self.requested, len(self.script)) - 1])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(following, "display", SimpleNamespace(display=lines.append))
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    return lines


def run(action: Prober) -> dict[str, Any]:
    return action.run(task_vars={"inventory_hostname": "gpu1"})


def test_a_name_that_comes_is_waited_for(shown: list[str]) -> None:
    action = Prober([reply(), reply(), reply("10.0.1.5")], 90)
    assert run(action)["probe"]["answer"]["names"]["gpu2"]["addresses"] == ["10.0.1.5"]
    assert action.requested == 3
    assert shown == [
        "gpu1: the overlay network's DNS does not know ai-gpu2 yet, as after a change of containers or a restart of an "
        "engine; waiting up to 90 s."
    ]


def test_a_name_that_does_not_come_is_reported_with_the_time_that_was_waited(shown: list[str]) -> None:
    action = Prober([reply()], 90)
    found = run(action)["probe"]["answer"]["names"]["gpu2"]
    assert found["error"] == f"{UNKNOWN}, after 94 s"
    assert action.now < 110
    assert len(shown) == 1


def test_nothing_is_waited_for_where_a_container_is_known_to_be_missing(shown: list[str]) -> None:
    action = Prober([reply()], 0)
    assert run(action)["probe"]["answer"]["names"]["gpu2"]["error"] == UNKNOWN
    assert (action.requested, shown) == (1, [])


@pytest.mark.parametrize(
    "odd",
    [{"failed": True, "msg": "no"}, {"probe": {"answer": {}, "trouble": {"text": "x"}}}, {"probe": None}],
)
def test_a_probe_without_names_is_returned_at_once(shown: list[str], odd: dict[str, Any]) -> None:
    action = Prober([odd], 90)
    assert run(action) == odd
    assert (action.requested, shown) == (1, [])


def test_a_lock_that_the_first_probe_removed_is_reported(shown: list[str]) -> None:
    found = run(Prober([reply(locks=["/a/lock"]), reply("10.0.1.5")], 90))
    assert (found["changed"], found["removed_locks"], found["diff"]) == (True, ["/a/lock"], {"before": "/a/lock"})
