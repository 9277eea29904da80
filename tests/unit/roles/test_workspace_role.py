# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role workspace acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planned_roles import GATHER, REPORT, PlannedRole, every, module, passes
from tests.role_values import task_inputs, templar
from tests.workspace_nodes import CLUSTER, PYTHON, host, plan, task_input

ROLE = PlannedRole("workspace")
MADE = task_input(plan(host(missing=["train.py"], packages={}), workspace_python_environment=PYTHON))


@pytest.mark.parametrize(
    ("parts", "ran"),
    [
        (("code",), ["converge.yml"]),
        (("packages",), ["python.yml"]),
        (("environment",), ["python.yml"]),
        (("code", "packages", "environment"), ["converge.yml", "python.yml"]),
    ],
)
def test_each_part_of_the_plan_has_its_tasks(parts: tuple[str, ...], ran: list[str]) -> None:
    given = ROLE.plan(True, **{name: MADE[name] for name in parts})
    assert ROLE.runs("main", given) == [REPORT, *ran, GATHER]
    assert ROLE.runs("main", given, ansible_check_mode=True) == [REPORT]


def test_packages_come_before_the_environment_and_each_only_where_planned() -> None:
    install, make = "Install Python and compilers", "environment.yml"
    assert ROLE.runs("python", ROLE.plan(True, packages=MADE["packages"])) == [install]
    assert ROLE.runs("python", ROLE.plan(True, environment=MADE["environment"])) == [make]
    assert ROLE.runs("python", ROLE.plan(True, **MADE)) == [install, make]


def test_an_environment_is_marked_before_it_is_emptied_and_recorded_last() -> None:
    named = [task["name"] for task in ROLE.tasks("environment")]
    assert (
        named.index("Mark the folder as this role's")
        < named.index("Empty the folder")
        < named.index("Install packages in the environment")
    )
    assert named[-1] == "Record what the environment was built from"
    given = ROLE.given(ROLE.plan(True, **MADE))
    *dummy, last = ROLE.tasks("environment")
    copied = {key: templar(given).template(text) for key, text in last["ansible.builtin.copy"].items()}
    assert (copied["dest"], copied["content"]) == (f"{PYTHON}/.swarmspeed", f"{MADE['wanted']}\n")


@pytest.mark.parametrize("compiler", [[], ["cuda-toolkit[nvcc]==13.0.2"]])
@pytest.mark.parametrize("wheelhouse", ["", "/srv/wheels"])
def test_every_task_of_the_environment_has_what_it_reads(wheelhouse: str, compiler: list[str]) -> None:
    cluster = {**CLUSTER, "accelerator": "cuda", "versions": {**CLUSTER["versions"], "compiler": compiler}}
    desired: dict[str, Any] = {"workspace_python_environment": PYTHON, "workspace_python_wheelhouse": wheelhouse}
    made = task_input(plan(host(), cluster=cluster, **desired))
    given = ROLE.given(ROLE.plan(True, **made), item="x")
    ran = []
    for task in every(ROLE.tasks("environment")):
        if "block" not in task and task_inputs(task, given):
            templar(given).template({"arguments": task[module(task)], "more": task.get("environment", {})})
            ran.append(task["name"])
    with_wheels = {"Create a folder for wheels", "Copy the wheels", "Remove the wheels"}
    assert set(ran) & with_wheels == (with_wheels if wheelhouse else set())
    steps = [
        "Install PyTorch (minutes)",
        "Copy the program that makes a CUDA_HOME of wheels",
        "Install the CUDA compiler",
    ]
    steps += ["Build DeepSpeed with its operators (minutes)"]
    wanted = steps if compiler else [steps[0], steps[-1]]
    assert [name for name in ran if name in steps] == wanted


def test_verify_tries_the_environment() -> None:
    assert ROLE.runs("verify", ROLE.plan(False)) == ["assert"]
    assert ROLE.runs("verify", ROLE.plan(False, interpreter=MADE["interpreter"]))[-1] == "Check the Python environment"


@pytest.mark.parametrize(("changed", "right"), [([], True), (["train.py"], False)])
def test_verify_compares_with_what_a_running_job_was_started_from(changed: list[str], right: bool) -> None:
    own = ROLE.task("verify", "Assert that a job that runs still has the code")
    facts = {"ansible_facts": {"swarmspeed": {"code": {"running": {"a": changed}}}}}
    for name in ("a", "b"):
        given = ROLE.given(ROLE.plan(False), deepspeed_launch_name=name, **facts)
        assert task_inputs(own, given) is (name == "a")
    given = ROLE.given(ROLE.plan(False), deepspeed_launch_name="a", **facts)
    assert passes(own, given) is right


@pytest.mark.parametrize("consent", [True, "true"])  # the command line (-e workspace_remove=true) gives text
def test_teardown_removes_by_consent_alone(consent: bool | str) -> None:
    given = ROLE.plan(False, made=True)
    assert ROLE.runs("teardown", given) == []
    requested: dict[str, Any] = {"workspace_remove": consent, "workspace_python_remove": consent}
    assert len(ROLE.runs("teardown", given, **requested)) == 3
    # Never a folder that this role did not make.
    removed = ["Remove the code that runs started from, with consent", "Remove the workspace, with consent"]
    assert ROLE.runs("teardown", ROLE.plan(False, made=False), **requested) == removed
