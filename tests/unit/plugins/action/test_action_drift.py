# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action drift: it compares what the run's tags select, needs no node, and never fails because of a difference."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.swarmspeed.cluster.plugins.action import drift
from ansible_collections.swarmspeed.cluster.plugins.modules import drift as documented

SECRET = "hunter2"
ROLES = [
    {"role": "host", "state": {"found": {"missing": ["bc"]}, "wanted": {"missing": []}}},
    {"role": "docker", "state": {}},
    {"role": "nccl_env", "state": {"files": [{"path": "/etc/env", "content": SECRET, "mode": "0600", "secret": True}]}},
]


def run(roles: Any, tags: list[str] | None = None, **files: Any) -> dict[str, Any]:
    action = drift.ActionModule(
        task=SimpleNamespace(args={"roles": roles}, check_mode=False, async_val=0, diff=True, action="drift"),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),  # with it, nothing can be done on a node
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    known = {"/etc/env": {"exists": True, "sha256": "other", "mode": "0644", "owner": 0, "group": 0}}
    result: dict[str, Any] = action.run(
        task_vars={
            "inventory_hostname": "gpu1",
            "ansible_facts": {"swarmspeed": {"files": known}},
            "ansible_run_tags": tags or ["all"],
            "ansible_skip_tags": [],
        }
    )
    return result


def test_what_differs_is_listed_by_role_and_nothing_is_changed() -> None:
    result = run(ROLES)
    assert result["changed"] is False and "failed" not in result
    assert result["drift"] == [
        {"role": "host", "what": ["missing is ['bc'], wanted is []"]},
        {"role": "nccl_env", "what": ["/etc/env has other content"]},
    ]
    assert [line.split(" is ")[0] for line in result["msg"].splitlines()] == [
        "gpu1: role host: missing",
        "gpu1: role nccl_env: /etc/env has other content. Remedy: ansible-playbook site.yml --tags nccl_env",
    ]
    assert SECRET not in str(result)


def test_what_is_planned_is_listed_as_what_is_compared() -> None:
    result = run([{"role": "docker", "planned": ["package docker.io is missing", "hold on docker.io is missing"]}])
    assert result["msg"] == (
        "gpu1: role docker: package docker.io is missing; hold on docker.io is missing. "
        "Remedy: ansible-playbook site.yml --tags docker"
    )


@pytest.mark.parametrize(
    ("tags", "roles"),
    [(["verify"], ["host", "nccl_env"]), (["host"], ["host"]), (["swarm"], []), (["nccl_env", "swarm"], ["nccl_env"])],
)
def test_tags_select_the_roles(tags: list[str], roles: list[str]) -> None:
    assert [entry["role"] for entry in run(ROLES, tags)["drift"]] == roles


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ([{"state": {}}], "missing required arguments: role"),
        ([{"role": "host", "state": {"seen": {}}}], "state of role host: seen. Supported parameters include"),
        ([{"role": "host", "state": {"files": [{"path": "etc", "mode": "0644"}]}}], "'etc' is not an absolute path"),
        ([{"role": "host", "state": {"files": [{"path": "/none"}]}}], "/none: node_facts was not asked"),
    ],
)
def test_a_state_that_is_described_wrongly_is_refused(roles: Any, message: str) -> None:
    with pytest.raises(AnsibleActionFail, match=message):
        run(roles)


def test_it_runs_without_a_connection() -> None:
    assert drift.ActionModule._requires_connection is False
    assert drift.ActionModule.TRANSFERS_FILES is False
    assert "action plugin" in documented.DOCUMENTATION
