# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action compare: what it answers in check mode and outside, and that it needs no node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.swarmspeed.cluster.plugins.action import compare
from ansible_collections.swarmspeed.cluster.plugins.modules import compare as documented


def run(args: dict[str, Any], check_mode: bool = False) -> dict[str, Any]:
    action = compare.ActionModule(
        task=SimpleNamespace(args=args, check_mode=check_mode, async_val=0, diff=True, action="compare"),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),  # with it, nothing can be done on a node
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    result: dict[str, Any] = action.run(task_vars={"inventory_hostname": "gpu1"})
    return result


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_difference_is_a_change_only_in_check_mode(check_mode: bool) -> None:
    result = run({"found": {"state": "inactive", "mine": 1}, "wanted": {"state": "active"}}, check_mode)
    assert result == {
        "changed": check_mode,
        "differences": [{"path": "state", "before": "inactive", "after": "active"}],
        "diff": {"before": "state: inactive\n", "after": "state: active\n"},
    }


@pytest.mark.parametrize("check_mode", [False, True])
def test_no_difference_no_change_no_diff(check_mode: bool) -> None:
    assert run({"found": {"a": [1], "mine": 1}, "wanted": {"a": [1], "b": None}}, check_mode) == {
        "changed": False,
        "differences": [],
    }


def test_found_and_wanted_stay_as_they_are() -> None:
    args = {"found": {"a": {"b": [1]}}, "wanted": {"a": {"b": [2]}}}
    run(args)["differences"][0]["after"].append(3)
    assert args == {"found": {"a": {"b": [1]}}, "wanted": {"a": {"b": [2]}}}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"found": {}}, "missing required arguments: wanted"),
        ({"wanted": {}}, "missing required arguments: found"),
        ({"found": {}, "wanted": [1]}, "cannot be converted to a dict"),
        (
            {"found": {}, "wanted": {}, "want": {}},
            "Unsupported parameters .* want. Supported parameters include: found",
        ),
    ],
)
def test_wrong_options_are_refused(args: dict[str, Any], message: str) -> None:
    with pytest.raises(AnsibleActionFail, match=message):
        run(args)


def test_it_runs_without_a_connection() -> None:
    assert compare.ActionModule._requires_connection is False
    assert compare.ActionModule.TRANSFERS_FILES is False
    assert "action plugin" in documented.DOCUMENTATION


@pytest.mark.parametrize("check_mode", [False, True])
def test_what_forbids_it_is_one_message_and_nothing_is_compared(check_mode: bool) -> None:
    problems = ["the engine is too old. Remedy: update it", "port 7 is taken. Remedy: free it."]
    with pytest.raises(AnsibleActionFail) as refused:
        run({"found": {"a": 1}, "wanted": {"a": 2}, "problems": problems}, check_mode)
    assert str(refused.value) == f"gpu1: {problems[0]}. {problems[1]}"
    assert run({"found": {}, "wanted": {}, "problems": []}, check_mode) == {"changed": False, "differences": []}
