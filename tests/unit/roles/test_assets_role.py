# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role assets acts on the plan: which of its tasks run, and what is reported at the end."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.planner import NOTHING

from tests.asset_hosts import act, host, plan
from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import NODES, load, templar, value, variables

MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
}
MADE = act(plan(host(), host()), NODES[1])


def planned(pending: bool, drift: str = "", **act: Any) -> dict[str, Any]:
    return plan_of("assets", NOTHING, pending, drift, **act)


def runs(file: str, plan: dict[str, Any] | None, **changed: Any) -> list[str]:
    return shown(tasks_that_run("assets", file, plan, **changed), called)


def called(key: str, task: dict[str, Any]) -> str:
    return MODULES.get(key) or (str(task[key]) if key == "ansible.builtin.include_tasks" else task["name"])


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("assets/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs("main", planned(False)) == ["end"]


@pytest.mark.parametrize("file", ["main", "verify"])
def test_what_this_run_has_not_planned_it_plans(file: str) -> None:
    assert runs(file, None) == ["gather and plan"]


def test_what_is_planned_is_distributed_and_all_is_planned_again() -> None:
    assert runs("main", planned(True, **MADE)) == ["report", "distribute.yml", "gather and plan"]
    assert runs("main", planned(True, **MADE), ansible_check_mode=True) == ["report"]
    assert runs("main", planned(True)) == ["report", "gather and plan"]


def test_digests_are_read_on_request_only() -> None:
    assert "Check every file's digest, if requested" not in runs("verify", planned(False, names=["net"]))
    requested = runs("verify", planned(False, names=["net"]), assets_verify_digests=True)
    assert requested[-1] == "Check every file's digest, if requested"
    assert "Check every file's digest, if requested" not in runs("verify", planned(False), assets_verify_digests=True)


def test_verify_fails_at_what_is_left_to_change() -> None:
    asserted = load("assets/tasks/verify.yml")[1]
    for drift, right in (("x is missing", False), ("", True)):
        given = variables("assets", swarmspeed_plan=planned(bool(drift), drift))
        assert templar(given).evaluate_conditional(asserted["ansible.builtin.assert"]["that"]) is right


def test_teardown_removes_by_consent_only() -> None:
    removing = "Remove models and data sets, with consent"
    left = {"stat": {"exists": False}}
    assert removing not in runs("teardown", None, _assets_left=left)
    assert runs("teardown", None, _assets_left=left, assets_remove=True)[-1] == removing


def test_what_went_wrong_is_told_by_its_cause() -> None:
    def reported(gone: dict[str, Any], fed: dict[str, Any], waited: dict[str, Any]) -> str:
        given = variables("assets", _assets_gone=gone, _assets_fed=fed, _assets_waited=waited)
        return str(value("_assets_trouble", given))

    skipped = {"skipped": True}
    assert reported({}, skipped, {"over": True, "trouble": ""}) == ""
    assert reported({}, skipped, {"over": True, "trouble": "the disk is full"}) == "the disk is full"
    assert reported({"failed": True, "msg": "gpu2: the process is gone"}, skipped, skipped) == "the process is gone"
    assert reported({}, {"failed": True, "msg": "gpu2: a piece is lost"}, skipped) == "a piece is lost"
    assert reported({}, skipped, {"unreachable": True}).startswith("the node stopped responding")
    assert reported({}, skipped, {"over": False}) == "the transfer did not end in time. Remedy: run again"
