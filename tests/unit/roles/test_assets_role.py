# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role assets acts on the plan: which of its tasks run, and what is reported at the end."""

from __future__ import annotations

from typing import Any

from tests.asset_hosts import host, plan, task_input
from tests.planned_roles import GATHER, REPORT, PlannedRole
from tests.role_values import NODES, value, variables

ROLE = PlannedRole("assets")
MADE = task_input(plan(host(), host()), NODES[1])


def test_what_is_planned_is_distributed_and_all_is_planned_again() -> None:
    assert ROLE.runs("main", ROLE.plan(True, **MADE)) == [REPORT, "distribute.yml", GATHER]
    assert ROLE.runs("main", ROLE.plan(True, **MADE), ansible_check_mode=True) == [REPORT]


def test_digests_are_read_on_request_only() -> None:
    checked = "Check every file's digest, if requested"
    assert checked not in ROLE.runs("verify", ROLE.plan(False, names=["net"]))
    assert ROLE.runs("verify", ROLE.plan(False, names=["net"]), assets_verify_digests=True)[-1] == checked
    assert checked not in ROLE.runs("verify", ROLE.plan(False), assets_verify_digests=True)


def test_teardown_removes_by_consent_only() -> None:
    removing = "Remove models and data sets, with consent"
    left = {"stat": {"exists": False}}
    assert removing not in ROLE.runs("teardown", None, _assets_left=left)
    assert ROLE.runs("teardown", None, _assets_left=left, assets_remove=True)[-1] == removing


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
