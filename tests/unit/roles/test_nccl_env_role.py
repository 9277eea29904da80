# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role nccl_env acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.planner import NOTHING

from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import ROLES, load, templar, value, variables

MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "ansible.builtin.include_tasks": "",
}
QUESTION = {"argv": ["docker"], "record": "/r", "image": "sha256:1"}
INSIDE = {"container": "c", "state": "running", "argv": ["docker"], "lines": ["GLOO_SOCKET_IFNAME=@IFNAME@"]}


def planned(pending: bool, drift: str = "", **act: Any) -> dict[str, Any]:
    return plan_of("nccl_env", NOTHING, pending, drift, **act)


def runs(file: str, plan: dict[str, Any] | None, **changed: Any) -> list[str]:
    """Return what of a file's tasks would run, until one ends the role or makes another plan."""
    return shown(tasks_that_run("nccl_env", file, plan, **changed), called)


def called(key: str, task: dict[str, Any]) -> str:
    return MODULES.get(key) or (str(task[key]) if key == "ansible.builtin.include_tasks" else key)


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("nccl_env/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs("main", planned(False)) == ["end"]


@pytest.mark.parametrize("plan", [None, {}, {"pending": {"gpu2": {"docker": False}}}])
@pytest.mark.parametrize("file", ["main", "verify"])
def test_what_this_run_has_not_planned_it_plans(file: str, plan: dict[str, Any] | None) -> None:
    assert runs(file, plan) == ["gather and plan"]


def test_changes_are_reported_and_then_applied() -> None:
    assert runs("main", planned(True)) == ["report", "converge.yml"]
    assert runs("main", planned(True), ansible_check_mode=True) == ["report"]


def test_an_image_is_asked_before_anything_is_applied_and_not_in_check_mode() -> None:
    assert runs("main", planned(True, question=QUESTION)) == ["report", "ask.yml", "converge.yml"]
    assert runs("main", planned(True, question=QUESTION), ansible_check_mode=True) == ["report"]
    names = ["ansible.builtin.command", "ansible.builtin.copy", "gather and plan"]
    assert runs("ask", planned(True, question=QUESTION)) == names
    folders = planned(True, question=QUESTION, folders=[{"path": "/x"}])
    assert runs("ask", folders) == ["swarmspeed.cluster.managed_files", *names]
    # What it says may have settings refused.
    *dummy, last = load("nccl_env/tasks/ask.yml")
    assert last["swarmspeed.cluster.plan"] == {"stage": "report", "roles": ["nccl_env"]}


@pytest.mark.parametrize(
    ("stdout", "record"), [("2.27.3\n", "sha256:1 2.27.3\n"), ("", "sha256:1 unknown\n"), ("\n", "sha256:1 unknown\n")]
)
def test_the_answer_is_recorded_beside_the_images_id(stdout: str, record: str) -> None:
    copy = next(task for task in load("nccl_env/tasks/ask.yml") if "ansible.builtin.copy" in task)
    given = variables("nccl_env", swarmspeed_plan=planned(True, question=QUESTION), _nccl_env_answer={"stdout": stdout})
    assert templar(given).template(copy["ansible.builtin.copy"]["content"]) == record


@pytest.mark.parametrize(
    ("act", "ran"),
    [
        ({}, []),
        ({"files": [{"path": "/x"}]}, ["swarmspeed.cluster.managed_files"]),
        ({"render": ["docker"]}, ["ansible.builtin.command"]),
    ],
)
def test_each_part_of_the_plan_has_its_task_and_all_is_planned_again(act: dict[str, Any], ran: list[str]) -> None:
    assert runs("converge", planned(True, **act)) == [*ran, "gather and plan"]
    for file in ("ask", "converge"):
        (last,) = [task for task in load(f"nccl_env/tasks/{file}.yml") if "ansible.builtin.include_role" in task]
        assert last["ansible.builtin.include_role"]["tasks_from"] == "again" and "when" not in last
        assert last["vars"] == {"_preflight_roles": ["nccl_env"]}


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
    task = next(task for task in load(f"{role}/tasks/converge.yml") if "failed_when" in task)
    given = {**variables(role, swarmspeed_plan=planned(True)), task["register"]: result}
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
    block = next(task for task in load("nccl_env/tasks/verify.yml") if "block" in task)
    *dummy, judged = block["block"]
    found = {"stdout": "\n".join(printed), "stdout_lines": printed}
    given = variables("nccl_env", swarmspeed_plan=planned(False, inside=INSIDE), _nccl_env_inside=found)
    given.update(judged["vars"])
    if any("inet" in line for line in printed):
        assert value("_nccl_env_inside_interface", given) == "eth0"
    conditions = judged["ansible.builtin.assert"]["that"]
    assert all(templar(given).evaluate_conditional(condition) for condition in conditions) is right


def test_verify_fails_at_what_is_left_to_change() -> None:
    *dummy, last = load("nccl_env/tasks/verify.yml")
    for drift, right in (("", True), ("env is missing", False)):
        given = variables("nccl_env", swarmspeed_plan=planned(bool(drift), drift))
        assert templar(given).evaluate_conditional(last["ansible.builtin.assert"]["that"]) is right


def test_where_ranks_are_processes_of_the_host_no_container_is_read() -> None:
    assert runs("verify", planned(False)) == ["ansible.builtin.assert"]
    assert runs("verify", planned(False, inside=INSIDE)) == ["block", "ansible.builtin.assert"]


def test_no_task_has_tags_of_its_own() -> None:
    """launch.yml and others import the role with the tag never, for its variables: a tag here would run it there."""
    for path in (ROLES / "nccl_env/tasks").glob("*.yml"):
        assert [task for task in load(f"nccl_env/tasks/{path.name}") if "tags" in task] == []


def test_every_name_of_the_plan_that_is_read_is_in_it() -> None:
    paths = [*sorted((ROLES / "nccl_env/tasks").glob("*.yml")), ROLES / "nccl_env/vars/main.yml"]
    names = set(re.findall(r"_nccl_env_act\.(\w+)", "".join(path.read_text(encoding="utf-8") for path in paths)))
    # verify.yml and bench_network.yml compare what NCCL took with what was chosen.
    others = [ROLES.parent / "playbooks/tasks/fabric.yml", ROLES / "overlay_network/vars/main.yml"]
    text = "".join(path.read_text(encoding="utf-8") for path in others)
    names |= set(re.findall(r"\['nccl_env', '(\w+)'\]", text))
    assert names == set(NOTHING)


PLANNED = {
    "gpu1": {"nccl_env": {"hcas": "=mlx5_0:1", "host_rdma": {"NCCL_IB_HCA": "=mlx5_0:1"}}},
    "gpu2": {"nccl_env": {"hcas": "", "host_rdma": {}}},
    "gpu3": {},
}


def test_verify_and_benchmark_read_what_was_chosen_by_node() -> None:
    blocks = load_playbook_tasks("fabric")
    (judge,) = [task for task in blocks if "swarmspeed.cluster.network_test_result" in task]
    hcas = judge["swarmspeed.cluster.network_test_result"]["wanted"]["hcas"]
    given = {"swarmspeed_plan": {"acts": PLANNED}, "_fabric_hosts": list(PLANNED)}
    assert templar(given).template(hcas) == {"gpu1": "=mlx5_0:1", "gpu2": "", "gpu3": ""}
    rdma = load("overlay_network/vars/main.yml")["_overlay_network_bench_of_hosts"]["rdma"]
    given = {"swarmspeed_plan": {"acts": PLANNED}, "_overlay_network_bench_plan": {"nodes": list(PLANNED)}}
    assert templar(given).template(rdma) == {"gpu1": {"NCCL_IB_HCA": "=mlx5_0:1"}, "gpu2": {}, "gpu3": {}}


def load_playbook_tasks(name: str) -> list[dict[str, Any]]:
    """Return the tasks of a file of the playbooks, those in blocks after the blocks."""
    tasks: list[dict[str, Any]] = load(f"../playbooks/tasks/{name}.yml")
    return [inner for task in tasks for inner in (task, *task.get("block", []))]
