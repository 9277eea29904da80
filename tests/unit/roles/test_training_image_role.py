# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role training_image acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.planner import NOTHING

from tests.image_nodes import ROOT, act, plan, recipe
from tests.planned_roles import plan_of, shown, tasks_that_run
from tests.role_values import NODES, ROLES, acts, load, templar, value, variables

HERE = "gpu2"
MODULES = {
    "ansible.builtin.meta": "end",
    "ansible.builtin.include_role": "gather and plan",
    "swarmspeed.cluster.plan": "report",
    "ansible.builtin.assert": "assert",
}
CHAIN = {"chain": [NODES[0], HERE]}


def planned(pending: bool, drift: str = "", **act: Any) -> dict[str, Any]:
    return {**plan_of("training_image", NOTHING, pending, drift, HERE, **{"reference": "a:1", **act}), "image": "a:1"}


def runs(file: str, plan: dict[str, Any] | None, whole: bool = False, **changed: Any) -> list[str]:
    """Return what of a file's tasks would run, until one ends the role or, unless ``whole``, makes another plan."""
    return shown(tasks_that_run("training_image", file, plan, **changed), called, whole)


def called(key: str, task: dict[str, Any]) -> str:
    return MODULES.get(key) or (str(task[key]) if key == "ansible.builtin.include_tasks" else task["name"])


def every(file: str) -> Iterator[dict[str, Any]]:
    for task in load(f"training_image/tasks/{file}.yml"):
        yield task
        for part in ("block", "rescue", "always"):
            yield from task.get(part, [])


def test_where_nothing_is_planned_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load("training_image/tasks/main.yml")
    assert first["ansible.builtin.meta"] == "end_role"
    assert runs("main", planned(False)) == ["end"]


@pytest.mark.parametrize("plan", [None, {}, {"pending": {HERE: {"docker": False}}}])
@pytest.mark.parametrize("file", ["main", "verify"])
def test_what_this_run_has_not_planned_it_plans(file: str, plan: dict[str, Any] | None) -> None:
    assert runs(file, plan) == ["gather and plan"]


@pytest.mark.parametrize(
    ("act", "ran"),
    [
        ({}, []),
        ({"pull": True}, ["converge.yml"]),
        ({"archive": "/x.tar"}, ["converge.yml"]),
        ({"build": {"context": "/x"}}, ["converge.yml"]),
        (CHAIN, ["distribute.yml"]),
        ({"prune": ["a:0"]}, ["prune.yml"]),
        ({"build": {"context": "/x"}, **CHAIN, "prune": ["a:0"]}, ["converge.yml", "distribute.yml", "prune.yml"]),
    ],
)
def test_each_part_of_the_plan_has_its_tasks_and_all_is_planned_again(act: dict[str, Any], ran: list[str]) -> None:
    given = planned(True, **act)
    assert runs("main", given, whole=True) == ["report", *ran, "gather and plan", "assert"]
    assert runs("main", given, ansible_check_mode=True) == ["report"]
    again = load("training_image/tasks/main.yml")[-2]
    assert again["ansible.builtin.include_role"]["tasks_from"] == "again"
    assert again["vars"] == {"_preflight_roles": ["training_image"]}


@pytest.mark.parametrize(
    ("act", "ran"),
    [({"pull": True}, "Pull the image"), ({"archive": "/x.tar"}, "archive.yml"), ({"build": {"x": 1}}, "build.yml")],
)
def test_one_way_leads_to_the_image(act: dict[str, Any], ran: str) -> None:
    assert runs("converge", planned(True, **act)) == [ran]


@pytest.mark.parametrize(("chain", "right"), [([], True), (CHAIN["chain"], False)])
def test_that_the_image_has_arrived_is_seen_in_the_new_plan(chain: list[str], right: bool) -> None:
    *dummy, last = load("training_image/tasks/main.yml")
    given = variables(swarmspeed_plan=planned(True, chain=chain, there="sha256:a", holder="gpu1"))
    assert templar(given).evaluate_conditional(last["ansible.builtin.assert"]["that"]) is right
    reported = templar(given).template(last["ansible.builtin.assert"]["fail_msg"])
    assert "sha256:a on gpu1" in reported and "docker rmi -f a:1" in reported


def test_verify_fails_at_what_is_left_to_change_and_at_another_content() -> None:
    dummy, left, content = load("training_image/tasks/verify.yml")
    for task, read, drift, right in (
        (left, {}, "image a:1 is missing", False),
        (left, {}, "", True),
        (content, {"content": ""}, "", False),
        (content, {"content": "sha256:b", "there": "sha256:a"}, "", False),
        (content, {"content": "sha256:a", "there": "sha256:a"}, "", True),
        (content, {"reference": ""}, "", True),  # without Docker there is none
    ):
        given = variables(swarmspeed_plan=planned(bool(drift), drift, **read))
        assert templar(given).evaluate_conditional(task["ansible.builtin.assert"]["that"]) is right


@pytest.mark.parametrize("own", [False, True])
def test_every_task_of_a_build_has_what_it_reads(tmp_path: Path, own: bool) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\n", encoding="utf-8")
    (tmp_path / "ds.zip").touch()
    (tmp_path / "py_spy-0.4.3-py2.py3-none-manylinux_2_5_x86_64.whl").touch()
    wished: dict[str, Any] = (
        {"training_image_dockerfile": f"{tmp_path}/Dockerfile"}
        if own
        else {"training_image_deepspeed_source": f"{tmp_path}/ds.zip", "training_image_wheelhouse": str(tmp_path)}
    )
    made = {**recipe(**wished, training_image_base_archive="/b.tar").act(), "labels": {"swarmspeed.cluster": "lab"}}
    given = variables("training_image", swarmspeed_plan=planned(True, build=made, root=ROOT), ansible_failed_result={})
    ran = []
    for file in ("build", "context"):
        for task in every(file):
            if "rescue" in task or "fail_msg" in str(task) or "Report" in task["name"] or not acts(task, given):
                continue
            for item in made["texts"] or [{"path": "", "content": "", "mode": ""}]:
                key = next(key for key in task if "." in key)
                parts = {"arguments": task[key], "vars": task.get("vars", {}), "loop": task.get("loop", [])}
                if "block" not in task:
                    templar({**given, "item": item}).template(parts)
            ran.append(task["name"])
    assert ("Send the context of the user's own Dockerfile" in ran) is own
    assert ("Write the Dockerfile" in ran) is not own
    assert "Load the base image from its archive" in ran


def test_an_image_of_this_collection_is_known_by_its_label_and_built_with_the_secret() -> None:
    made = act(plan(), NODES[0])["build"]
    given = variables("training_image", swarmspeed_plan=planned(True, build=made))
    (build,) = [task for task in every("build") if "swarmspeed.cluster.image_build" in task]
    arguments = templar(given).template(build["swarmspeed.cluster.image_build"])
    assert arguments["labels"] == {"swarmspeed.cluster": "lab"}
    assert arguments["secrets"] == {"network": f"{ROOT}/image.build/network"} and arguments["name"] == "a:1"
    (secret,) = [task for task in every("build") if task.get("no_log")]
    assert templar(given).template(secret["ansible.builtin.copy"]["content"]) == made["network"]


def test_the_image_is_known_by_the_plan_or_by_the_run() -> None:
    assert value("_training_image_ref", variables(swarmspeed_plan=planned(False))) == "a:1"
    assert value("_training_image_ref", variables(swarmspeed_plan=planned(False), swarmspeed_image="b:2")) == "b:2"
    assert value("_training_image_ref", variables()) == ""


def test_no_task_has_tags_of_its_own() -> None:
    for path in (ROLES / "training_image/tasks").glob("*.yml"):
        assert [task for task in load(f"training_image/tasks/{path.name}") if "tags" in task] == []


def test_every_name_of_the_plan_that_is_read_is_in_it() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROLES / "training_image").rglob("*.yml")))
    assert set(re.findall(r"_training_image_act\.(\w+)", text)) == set(NOTHING)
    made = act(plan(), NODES[0])["build"]
    assert set(re.findall(r"_training_image_act\.build\.(\w+)", text)) == set(made)
    # Jinja would find the methods of a mapping before its keys.
    assert not {*NOTHING, *made} & set(dir(dict))
