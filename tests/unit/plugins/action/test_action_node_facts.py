# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action node_facts: the clock it adds, and what it leaves alone. The module behind it is a fake."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.action import node_facts

from tests.adversary.hostile import facts


def run(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], before: float = 1000.0, after: float = 1003.0
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run the action on a controller whose clock shows these two times."""
    clock: Iterator[float] = iter([before, after])
    monkeypatch.setattr(node_facts, "time", SimpleNamespace(time=lambda: next(clock)))
    action = node_facts.ActionModule(
        task=SimpleNamespace(
            args={"packages": ["rsync"]}, check_mode=True, async_val=0, diff=False, action="node_facts"
        ),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    calls: list[dict[str, Any]] = []

    def execute(**asked: Any) -> dict[str, Any]:
        calls.append(asked)
        return answer

    action._execute_module = execute  # type: ignore[method-assign]
    return action.run(task_vars={"a": 1}), calls


@pytest.mark.parametrize(
    ("node", "after", "clock"),
    [
        (1001.5, 1003.0, {"offset": 0.0, "uncertainty": 1.5}),
        (1061.5, 1003.0, {"offset": 60.0, "uncertainty": 1.5}),
        (940.0, 1000.0, {"offset": -60.0, "uncertainty": 0.0}),
        (1000.12345, 1000.2469, {"offset": 0.0, "uncertainty": 0.123}),
    ],
)
def test_the_clock_is_compared_with_the_middle_of_the_run(
    monkeypatch: pytest.MonkeyPatch, node: float, after: float, clock: dict[str, float]
) -> None:
    found = facts()
    del found["clock"]
    found["system"]["time"] = node
    answer = {"changed": False, "ansible_facts": {"swarmspeed": copy.deepcopy(found), "other": "dropped"}}
    result, calls = run(monkeypatch, answer, after=after)
    assert result == {
        "_ansible_verbose_override": True,  # -v does not print what it has read
        "changed": False,
        "ansible_facts": {"swarmspeed": {**found, "clock": clock}},
    }
    assert calls == [
        {
            "module_name": "swarmspeed.cluster.node_facts",
            "module_args": {"packages": ["rsync"]},
            "task_vars": {"a": 1},
        }
    ]


@pytest.mark.parametrize(
    "answer", [{"failed": True, "msg": "no python"}, {"failed": True, "msg": "x", "ansible_facts": {}}]
)
def test_a_failure_is_passed_on_as_it_is(monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]) -> None:
    result, calls = run(monkeypatch, dict(answer))
    assert result == {key: value for key, value in answer.items() if key != "ansible_facts"} and len(calls) == 1
