# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nccl_env acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planned_roles import GATHER, REPORT, PlannedRole, every, passes
from tests.role_values import load, templar, value

ROLE = PlannedRole("nccl_env", modules=True)
QUESTION = {"argv": ["docker"], "record": "/r", "image": "sha256:1"}
INSIDE = {"container": "c", "state": "running", "argv": ["docker"], "lines": ["GLOO_SOCKET_IFNAME=@IFNAME@"]}


def test_an_image_is_asked_before_anything_is_applied_and_not_in_check_mode() -> None:
    assert ROLE.runs("main", ROLE.plan(True, question=QUESTION)) == [REPORT, "ask.yml", "converge.yml"]
    assert ROLE.runs("main", ROLE.plan(True, question=QUESTION), ansible_check_mode=True) == [REPORT]
    names = ["ansible.builtin.command", "ansible.builtin.copy", GATHER]
    assert ROLE.runs("ask", ROLE.plan(True, question=QUESTION)) == names
    folders = ROLE.plan(True, question=QUESTION, folders=[{"path": "/x"}])
    assert ROLE.runs("ask", folders) == ["swarmspeed.cluster.managed_files", *names]
    # What it says may have settings refused.
    *dummy, last = ROLE.tasks("ask")
    assert last["swarmspeed.cluster.plan"] == {"stage": "report", "roles": ["nccl_env"]}


@pytest.mark.parametrize(
    ("stdout", "record"), [("2.27.3\n", "sha256:1 2.27.3\n"), ("", "sha256:1 unknown\n"), ("\n", "sha256:1 unknown\n")]
)
def test_the_answer_is_recorded_beside_the_images_id(stdout: str, record: str) -> None:
    given = ROLE.given(ROLE.plan(True, question=QUESTION), _nccl_env_answer={"stdout": stdout})
    (copy,) = (task["ansible.builtin.copy"] for task in ROLE.tasks("ask") if "ansible.builtin.copy" in task)
    assert templar(given).template(copy["content"]) == record


@pytest.mark.parametrize(
    ("task_input", "ran"),
    [
        ({}, []),
        ({"files": [{"path": "/x"}]}, ["swarmspeed.cluster.managed_files"]),
        ({"render": ["docker"]}, ["ansible.builtin.command"]),
    ],
)
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], ran: list[str]) -> None:
    assert ROLE.runs("converge", ROLE.plan(True, **task_input)) == [*ran, GATHER]


@pytest.mark.parametrize(
    ("result", "fails"),
    [
        ({"rc": 0, "stderr": ""}, False),
        (
            {
                "failed": True,
                "rc": 1,
                "stderr": "Error response from daemon: Container 47 is restarting, wait until it runs",
            },
            False,
        ),
        ({"failed": True, "rc": 1, "stderr": "Error response from daemon: Container 47 is not running"}, False),
        ({"failed": True, "rc": 1, "stderr": "swarmspeed: no interface of this container is in 10.64.0.0/24"}, True),
        ({"failed": True, "msg": "the module was cut off"}, True),
    ],
)
@pytest.mark.parametrize("role", ["nccl_env", "ssh_trust"])
def test_a_container_that_has_ended_meanwhile_reads_it_as_it_starts(
    role: str, result: dict[str, Any], fails: bool
) -> None:
    planned = PlannedRole(role)
    task = next(task for task in planned.tasks("converge") if "failed_when" in task)
    given = planned.given(planned.plan(True), **{task["register"]: result})
    assert templar(given).evaluate_conditional(task["failed_when"]) is fails


@pytest.mark.parametrize(
    ("printed", "right"),
    [
        (["NCCL_IB_DISABLE=1", "GLOO_SOCKET_IFNAME=eth0", "58: eth0    inet 10.231.1.11/24 brd"], True),
        (["GLOO_SOCKET_IFNAME=eth1", "58: eth0    inet 10.231.1.11/24 brd"], False),
        (["GLOO_SOCKET_IFNAME=eth0"], False),  # no interface is in the training network
    ],
)
def test_verify_reads_the_container(printed: list[str], right: bool) -> None:
    judged = ROLE.task("verify", "Assert that NCCL and Gloo use the interface")
    found = {"stdout": "\n".join(printed), "stdout_lines": printed}
    given = ROLE.given(ROLE.plan(False, inside=INSIDE), _nccl_env_inside=found, **judged["vars"])
    if any("inet" in line for line in printed):
        assert value("_nccl_env_inside_interface", given) == "eth0"
    assert passes(judged, given) is right


def test_where_ranks_are_processes_of_the_host_no_container_is_read() -> None:
    assert ROLE.runs("verify", ROLE.plan(False)) == ["assert"]
    assert ROLE.runs("verify", ROLE.plan(False, inside=INSIDE)) == ["block", "assert"]


PLANNED = {
    "gpu1": {"nccl_env": {"hcas": "=mlx5_0:1", "host_rdma": {"NCCL_IB_HCA": "=mlx5_0:1"}}},
    "gpu2": {"nccl_env": {"hcas": "", "host_rdma": {}}},
    "gpu3": {},
}


def test_verify_and_benchmark_read_what_was_chosen_by_node() -> None:
    (judged,) = [
        task["swarmspeed.cluster.network_test_result"]
        for task in every(load("../playbooks/tasks/fabric.yml"))
        if "swarmspeed.cluster.network_test_result" in task
    ]
    given = {"swarmspeed_plan": {"task_inputs": PLANNED}, "_fabric_hosts": list(PLANNED)}
    assert templar(given).template(judged["wanted"]["hcas"]) == {"gpu1": "=mlx5_0:1", "gpu2": "", "gpu3": ""}
    rdma = load("overlay_network/vars/main.yml")["_overlay_network_bench_of_hosts"]["rdma"]
    given = {"swarmspeed_plan": {"task_inputs": PLANNED}, "_overlay_network_bench_plan": {"nodes": list(PLANNED)}}
    assert templar(given).template(rdma) == {"gpu1": {"NCCL_IB_HCA": "=mlx5_0:1"}, "gpu2": {}, "gpu3": {}}
