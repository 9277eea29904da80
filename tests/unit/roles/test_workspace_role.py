# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role workspace acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.planner import NOTHING

from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import ROLES, acts, load, templar, variables
from tests.workspace_nodes import CLUSTER, PYTHON, act, host, plan

MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
}
MADE = act(plan(host(missing=["train.py"], packages={}), workspace_python_environment=PYTHON))


def planned(pending: bool, drift: str = "", **act: Any) -> dict[str, Any]:
    return plan_of("workspace", NOTHING, pending, drift, **act)


def runs(file: str, plan: dict[str, Any] | None, **changed: Any) -> list[str]:
    """Return what of a file's tasks would run, until one ends the role or makes another plan."""
    return shown(tasks_that_run("workspace", file, plan, **changed), called)


def called(key: str, task: dict[str, Any]) -> str:
    return MODULES.get(key) or (str(task[key]) if key == "ansible.builtin.include_tasks" else task["name"])


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("workspace/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs("main", planned(False)) == ["end"]


@pytest.mark.parametrize("plan", [None, {}, {"pending": {"gpu2": {"docker": False}}}])
@pytest.mark.parametrize("file", ["main", "verify"])
def test_what_this_run_has_not_planned_it_plans(file: str, plan: dict[str, Any] | None) -> None:
    assert runs(file, plan) == ["gather and plan"]


@pytest.mark.parametrize(
    ("parts", "ran"),
    [
        ((), []),
        (("code",), ["converge.yml"]),
        (("packages",), ["python.yml"]),
        (("environment",), ["python.yml"]),
        (("code", "packages", "environment"), ["converge.yml", "python.yml"]),
    ],
)
def test_each_part_of_the_plan_has_its_tasks_and_all_is_planned_again(parts: tuple[str, ...], ran: list[str]) -> None:
    given = planned(True, **{name: MADE[name] for name in parts})
    assert runs("main", given) == ["report", *ran, "gather and plan"]
    assert runs("main", given, ansible_check_mode=True) == ["report"]
    *dummy, last = load("workspace/tasks/main.yml")
    assert last["ansible.builtin.include_role"]["tasks_from"] == "again"
    assert last["vars"] == {"_preflight_roles": ["workspace"]}


def test_packages_come_before_the_environment_and_each_only_where_planned() -> None:
    install, make = "Install Python and compilers", "environment.yml"
    assert runs("python", planned(True, packages=MADE["packages"])) == [install]
    assert runs("python", planned(True, environment=MADE["environment"])) == [make]
    assert runs("python", planned(True, **MADE)) == [install, make]


def test_an_environment_is_marked_before_it_is_emptied_and_recorded_last() -> None:
    named = [task["name"] for task in load("workspace/tasks/environment.yml")]
    assert (
        named.index("Mark the folder as this role's")
        < named.index("Empty the folder")
        < named.index("Install packages in the environment")
    )
    assert named[-1] == "Record what the environment was built from"
    given = variables("workspace", swarmspeed_plan=planned(True, **MADE))
    *dummy, last = load("workspace/tasks/environment.yml")
    copied = {key: templar(given).template(text) for key, text in last["ansible.builtin.copy"].items()}
    assert (copied["dest"], copied["content"]) == (f"{PYTHON}/.swarmspeed", f"{MADE['wanted']}\n")


@pytest.mark.parametrize("compiler", [[], ["cuda-toolkit[nvcc]==13.0.2"]])
@pytest.mark.parametrize("wheelhouse", ["", "/srv/wheels"])
def test_every_task_of_the_environment_has_what_it_reads(wheelhouse: str, compiler: list[str]) -> None:
    cluster = {**CLUSTER, "accelerator": "cuda", "versions": {**CLUSTER["versions"], "compiler": compiler}}
    wished: dict[str, Any] = {"workspace_python_environment": PYTHON, "workspace_python_wheelhouse": wheelhouse}
    made = act(plan(host(), cluster=cluster, **wished))
    given = variables("workspace", swarmspeed_plan=planned(True, **made), item="x")
    ran = []
    for task in load("workspace/tasks/environment.yml"):
        for entry in (*task.get("block", [task]), *task.get("always", [])):
            if acts(entry, given):
                key = next(key for key in entry if "." in key)
                templar(given).template({"arguments": entry[key], "more": entry.get("environment", {})})
                ran.append(entry["name"])
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


def test_verify_fails_at_what_is_left_to_change_and_tries_the_environment() -> None:
    asserted = load("workspace/tasks/verify.yml")[1]
    for drift, right in (("x is missing", False), ("", True)):
        given = variables("workspace", swarmspeed_plan=planned(bool(drift), drift))
        assert templar(given).evaluate_conditional(asserted["ansible.builtin.assert"]["that"]) is right
    assert runs("verify", planned(False)) == ["Assert that nothing is left to change"]
    assert runs("verify", planned(False, interpreter=MADE["interpreter"]))[-1] == "Check the Python environment"


@pytest.mark.parametrize(("changed", "right"), [([], True), (["train.py"], False)])
def test_verify_compares_with_what_a_running_job_was_started_from(changed: list[str], right: bool) -> None:
    _gather, _plan, own = load("workspace/tasks/verify.yml")[:3]
    facts = {"ansible_facts": {"swarmspeed": {"code": {"running": {"a": changed}}}}}
    for name in ("a", "b"):
        given = variables("workspace", swarmspeed_plan=planned(False), deepspeed_launch_name=name, **facts)
        assert templar(given).evaluate_conditional(own["when"]) is (name == "a")
    given = variables("workspace", swarmspeed_plan=planned(False), deepspeed_launch_name="a", **facts)
    assert templar(given).evaluate_conditional(own["ansible.builtin.assert"]["that"]) is right


@pytest.mark.parametrize("consent", [True, "true"])  # the command line (-e workspace_remove=true) gives text
def test_teardown_removes_by_consent_alone(consent: bool | str) -> None:
    given = planned(False, made=True)
    assert runs("teardown", given) == []
    requested = {"workspace_remove": consent, "workspace_python_remove": consent}
    assert len(runs("teardown", given, **requested)) == 3
    # Never a folder that this role did not make.
    removed = ["Remove the code that runs started from, with consent", "Remove the workspace, with consent"]
    assert runs("teardown", planned(False, made=False), **requested) == removed


def test_no_task_has_tags_of_its_own() -> None:
    for path in (ROLES / "workspace/tasks").glob("*.yml"):
        assert [task for task in load(f"workspace/tasks/{path.name}") if "tags" in task] == []


def test_every_name_of_the_plan_that_is_read_is_in_it() -> None:
    launch = (ROLES / "deepspeed_launch").rglob("*.yml")
    places = [*(ROLES / "workspace").rglob("*.yml"), *launch, ROLES.parent / "playbooks/tasks/fabric.yml"]
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(places))
    assert set(re.findall(r"(?:_workspace_act|\]\.workspace)\.(\w+)", text)) == set(NOTHING)
    for part in ("code", "environment"):
        assert set(re.findall(rf"_workspace_act\.{part}\.(\w+)", text)) == set(MADE[part])
        # Jinja would find the methods of a mapping before its keys.
        assert not {*NOTHING, *MADE[part]} & set(dir(dict))
