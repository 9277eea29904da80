# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role training_image acts on the plan: which of its tasks run, and that none of them decides anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.image_nodes import ROOT, plan, recipe, task_input
from tests.planned_roles import GATHER, HERE, REPORT, PlannedRole, every, module, passes
from tests.role_values import NODES, task_inputs, templar, value, variables

ROLE = PlannedRole("training_image")
CHAIN = {"chain": [NODES[0], HERE]}


def planned(pending: bool, **task_input: Any) -> dict[str, Any]:
    return {**ROLE.plan(pending, **{"reference": "a:1", **task_input}), "image": "a:1"}


@pytest.mark.parametrize(
    ("task_input", "ran"),
    [
        ({"pull": True}, ["converge.yml"]),
        ({"archive": "/x.tar"}, ["converge.yml"]),
        ({"build": {"context": "/x"}}, ["converge.yml"]),
        (CHAIN, ["distribute.yml"]),
        ({"prune": ["a:0"]}, ["prune.yml"]),
        ({"build": {"context": "/x"}, **CHAIN, "prune": ["a:0"]}, ["converge.yml", "distribute.yml", "prune.yml"]),
    ],
)
def test_each_part_of_the_plan_has_its_tasks(task_input: dict[str, Any], ran: list[str]) -> None:
    given = planned(True, **task_input)
    assert ROLE.runs("main", given, whole=True) == [REPORT, *ran, GATHER, "assert"]
    assert ROLE.runs("main", given, ansible_check_mode=True) == [REPORT]


@pytest.mark.parametrize(
    ("task_input", "ran"),
    [({"pull": True}, "Pull the image"), ({"archive": "/x.tar"}, "archive.yml"), ({"build": {"x": 1}}, "build.yml")],
)
def test_one_way_leads_to_the_image(task_input: dict[str, Any], ran: str) -> None:
    assert ROLE.runs("converge", planned(True, **task_input)) == [ran]


@pytest.mark.parametrize(("chain", "right"), [([], True), (CHAIN["chain"], False)])
def test_that_the_image_has_arrived_is_seen_in_the_new_plan(chain: list[str], right: bool) -> None:
    *dummy, last = ROLE.tasks("main")
    given = ROLE.given(planned(True, chain=chain, there="sha256:a", holder="gpu1"))
    assert passes(last, given) is right
    reported = templar(given).template(last["ansible.builtin.assert"]["fail_msg"])
    assert "sha256:a on gpu1" in reported and "docker rmi -f a:1" in reported


@pytest.mark.parametrize(
    ("read", "right"),
    [
        ({"content": ""}, False),
        ({"content": "sha256:b", "there": "sha256:a"}, False),
        ({"content": "sha256:a", "there": "sha256:a"}, True),
        ({"reference": ""}, True),  # without Docker there is none
    ],
)
def test_verify_fails_at_another_content(read: dict[str, str], right: bool) -> None:
    judged = ROLE.task("verify", "Assert that all nodes have the same image")
    assert passes(judged, ROLE.given(planned(False, **read))) is right


@pytest.mark.parametrize("own", [False, True])
def test_every_task_of_a_build_has_what_it_reads(tmp_path: Path, own: bool) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\n", encoding="utf-8")
    (tmp_path / "ds.zip").touch()
    (tmp_path / "py_spy-0.4.3-py2.py3-none-manylinux_2_5_x86_64.whl").touch()
    desired: dict[str, Any] = (
        {"training_image_dockerfile": f"{tmp_path}/Dockerfile"}
        if own
        else {"training_image_deepspeed_source": f"{tmp_path}/ds.zip", "training_image_wheelhouse": str(tmp_path)}
    )
    made = {
        **recipe(**desired, training_image_base_archive="/b.tar").task_input(),
        "labels": {"swarmspeed.cluster": "lab"},
    }
    given = ROLE.given(planned(True, build=made, root=ROOT), ansible_failed_result={})
    ran = []
    for file in ("build", "context"):
        for task in every(ROLE.tasks(file)):
            if "rescue" in task or "fail_msg" in str(task) or "Report" in task["name"] or not task_inputs(task, given):
                continue
            for item in made["texts"] or [{"path": "", "content": "", "mode": ""}]:
                parts = {
                    "arguments": task.get(module(task), {}),
                    "vars": task.get("vars", {}),
                    "loop": task.get("loop", []),
                }
                if "block" not in task:
                    templar({**given, "item": item}).template(parts)
            ran.append(task["name"])
    assert ("Send the context of the user's own Dockerfile" in ran) is own
    assert ("Write the Dockerfile" in ran) is not own
    assert "Load the base image from its archive" in ran


def test_an_image_of_this_collection_is_known_by_its_label_and_built_with_the_secret() -> None:
    made = task_input(plan(), NODES[0])["build"]
    given = ROLE.given(planned(True, build=made))
    (build,) = [task for task in every(ROLE.tasks("build")) if "swarmspeed.cluster.image_build" in task]
    arguments = templar(given).template(build["swarmspeed.cluster.image_build"])
    assert arguments["labels"] == {"swarmspeed.cluster": "lab"}
    assert arguments["secrets"] == {"network": f"{ROOT}/image.build/network"} and arguments["name"] == "a:1"
    (secret,) = [task for task in every(ROLE.tasks("build")) if task.get("no_log")]
    assert templar(given).template(secret["ansible.builtin.copy"]["content"]) == made["network"]


def test_the_image_is_known_by_the_plan_or_by_the_run() -> None:
    assert value("_training_image_ref", variables(swarmspeed_plan=planned(False))) == "a:1"
    assert value("_training_image_ref", variables(swarmspeed_plan=planned(False), swarmspeed_image="b:2")) == "b:2"
    assert value("_training_image_ref", variables()) == ""
