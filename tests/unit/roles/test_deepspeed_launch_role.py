# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role deepspeed_launch: which of its tasks run, and what it does alone, by ansible-playbook on stand-ins."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile

from tests.adversary.hostile import facts as honest
from tests.planned_roles import END, HERE, REPORT, PlannedRole
from tests.role_values import task_inputs, templar, variables
from tests.stand_ins import StandIns, changed

ROLE = PlannedRole(
    *("deepspeed_launch", "training_container", "workspace"),
    modules=True,
    ansible_run_tags=["all"],
    training_image_source="build",
)
JOB: dict[str, Any] = {"deepspeed_launch_script": "train.py"}
EXTENSIONS = "swarmspeed.cluster.vscode_extensions"
TAGS = ["hostfile", "ds_config", "launch"]
"""Without them it does nothing under --tags hostfile."""


def planned(pending: bool, **task_input: Any) -> dict[str, Any]:
    return ROLE.plan(pending, **{"etc": "/e", "slots": {HERE: 1}, "configured": True, **task_input})


def test_the_tags_of_files_let_it_plan_and_end() -> None:
    end, plan, *dummy = ROLE.tasks("main")
    assert end["tags"] == plan["tags"] == plan["ansible.builtin.include_role"]["apply"]["tags"] == TAGS


def test_what_is_planned_has_its_task() -> None:
    assert ROLE.runs("main", planned(True)) == ["assert", "files.yml", END]
    # The first node reads the key for the others.
    assert ROLE.runs("main", planned(False, share_key=True), **JOB)[:2] == ["assert", "files.yml"]
    assert ROLE.runs("files", planned(True)) == [REPORT]
    assert ROLE.runs("files", planned(True, launch_json="{}")) == [REPORT, "swarmspeed.cluster.mounted_files"]
    assert ROLE.runs("files", planned(True, share_key=True)) == [REPORT, "key.yml"]
    extensions = {"root": "/r", "files": ["/a/x.vsix"]}
    assert ROLE.runs("files", planned(True, extensions=extensions)) == [REPORT, EXTENSIONS]
    both = planned(True, share_key=True, launch_json="{}", extensions=extensions)
    assert ROLE.runs("files", both, ansible_check_mode=True) == [REPORT]


DECIDE, DECIDE_NAME = "swarmspeed.cluster.training_job", "Decide whether to start the job"


@pytest.mark.parametrize(
    ("decided", "follow", "after"),
    [
        ({"todo": "start"}, True, "block"),
        ({"todo": "start"}, False, "block"),
        ({"todo": "none", "job": {"state": "running"}}, True, "block"),
        ({"todo": "none", "job": {"state": "running"}}, False, END),
        ({"todo": "none", "job": {"state": "finished"}}, True, END),
    ],
)
def test_the_role_ends_where_no_job_is_to_be_started_or_followed(decided: Any, follow: bool, after: str) -> None:
    play = {"_deepspeed_launch_rank0": "gpu1", "hostvars": {"gpu1": {"_deepspeed_launch_planned": decided}}}
    given_here = {**JOB, **play, "deepspeed_launch_follow": follow}
    assert ROLE.runs("main", planned(False), **given_here) == ["assert", after]
    first = {**given_here, "_deepspeed_launch_rank0": HERE, "hostvars": {HERE: {"_deepspeed_launch_planned": decided}}}
    assert ROLE.runs("main", planned(False), **first) == ["assert", DECIDE, after]


def test_a_job_is_checked_started_followed_and_its_logs_collected() -> None:
    *dummy, job = ROLE.tasks("main")
    decide = ROLE.task("main", DECIDE_NAME)
    assert decide["module_defaults"] == job["module_defaults"]
    names = [decide["name"], *(task["name"] for part in ("block", "always") for task in job[part])]
    assert names == [
        DECIDE_NAME,
        "Check every node before the start",
        "Start the job on its nodes",
        "Follow the job to its end",
        "Copy the results of the job",
        "Collect the logs of the job",
    ]


@pytest.mark.parametrize(
    ("state", "wanted", "not_now", "brought"),
    [
        ("succeeded", ["out"], "", True),
        ("succeeded", ["out"], "there", False),
        ("succeeded", ["out"], "check", False),
        ("succeeded", [], "", False),
        ("failed", ["out"], "", False),
        ("running", ["out"], "", False),
    ],
)
def test_results_that_did_not_arrive_are_brought_by_the_next_run(
    tmp_path: Path, state: str, wanted: list[str], not_now: str, brought: bool
) -> None:
    decided = {"todo": "none", "job": {"state": state}}
    if not_now == "there":
        (tmp_path / "train" / "results").mkdir(parents=True)
    more = {
        **JOB,
        "_deepspeed_launch_rank0": HERE,
        "hostvars": {HERE: {"_deepspeed_launch_planned": decided}},
        "deepspeed_launch_follow": False,
        "deepspeed_launch_name": "train",
        "deepspeed_launch_results": wanted,
        "deepspeed_launch_logs_dir": str(tmp_path),
        "ansible_check_mode": not_now == "check",
    }
    assert ROLE.runs("main", planned(False), **more) == ["assert", DECIDE, *(["block"] if brought else []), END]


def test_what_is_included_for_the_results_is_not_decided_again_once_they_are_there() -> None:
    task = ROLE.task("main", "Copy the results of a job that succeeded")
    assert "when" not in task and "is exists" in task["block"][0]["when"]


@pytest.mark.parametrize(
    ("check", "tags", "requested"),
    [
        (False, ["all"], True),
        (False, ["hostfile"], True),
        (True, ["all"], False),
        (True, ["launch"], False),
        (True, ["deepspeed_launch", "hostfile"], False),
        (True, ["hostfile"], True),
        (True, ["ds_config"], True),
    ],
)
def test_in_check_mode_the_report_predicts_but_where_a_tag_names_a_file(
    check: bool, tags: list[str], requested: bool
) -> None:
    cluster = {**variables()["swarmspeed_cluster"], "gpus_known": True}
    more = {"ansible_check_mode": check, "ansible_run_tags": tags, "swarmspeed_cluster": cluster, **JOB}
    expected = ["swarmspeed.cluster.hostfile", "swarmspeed.cluster.ds_config"] if requested else []
    assert ROLE.runs("files", planned(True, writes=["hostfile", "ds_config.json"]), **more) == [REPORT, *expected]
    assert ROLE.runs("files", planned(True, writes=["hostfile"]), **more) == [REPORT, *expected[:1]]


def test_the_configuration_is_compared_again_where_an_image_was_asked_for_its_release() -> None:
    cluster = {**variables()["swarmspeed_cluster"], "gpus_known": True}
    more = {"swarmspeed_cluster": cluster, **JOB}
    assert ROLE.runs("files", planned(False), **more) == [REPORT]
    requested = ROLE.runs("files", planned(False), _deepspeed_launch_release={"stdout": "0.18.9"}, **more)
    assert requested == [REPORT, "swarmspeed.cluster.ds_config"]
    assert ROLE.runs("files", planned(False), _deepspeed_launch_release={"skipped": True}, **more) == [REPORT]


def test_the_fingerprint_has_the_configuration_of_the_module_or_of_the_plan() -> None:
    *dummy, job = ROLE.tasks("main")
    text = job["module_defaults"]["swarmspeed.cluster.training_job"]["fingerprint"]["ds_config"]
    found = planned(True, ds_config={"of": "the plan"})
    for ran, expected in (({"skipped": True}, "the plan"), ({"config": {"of": "the module"}}, "the module")):
        values = ROLE.given(found, _deepspeed_launch_ds_config=ran)
        assert templar(values).template(text) == {"of": expected}
    assert templar(ROLE.given(found)).template(text) == {"of": "the plan"}


# Alone


NAMES = ("gpu1", "gpu2")
ETC = "/srv/swarmspeed/swarmspeed/etc"
CLUSTER: dict[str, Any] = {"cluster_network_mode": "host", "cluster_accelerator": "cpu"}


def found(number: int, text: str | None) -> dict[str, Any]:
    facts = copy.deepcopy(honest(number))
    fact: dict[str, Any] = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}
    if text is not None:
        digest = ManagedFile("/x", text).sha256
        fact = {
            "exists": True,
            "sha256": digest,
            "mode": "0644",
            "owner": 0,
            "group": 0,
            "content": text,
        }
    facts["files"], facts["vscode"] = {f"{ETC}/hostfile": fact}, {}
    return facts


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    made = StandIns(tmp_path, ROLE.role)
    for number, name in enumerate(NAMES, 1):
        made.add(name, found(number, None))
    return made


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_alone_it_keeps_the_hostfile(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff", **CLUSTER)
    assert changed(output) == dict.fromkeys(NAMES, 1), output
    assert f"+ {ETC}/hostfile: (2 lines)" in output
    assert [hosts.modules(name) for name in NAMES] == [["node_facts"]] * 2
    output = hosts.play(**CLUSTER)
    assert changed(output) == dict.fromkeys(NAMES, 1), output
    assert [hosts.modules(name) for name in NAMES] == [["node_facts", "hostfile"]] * 2


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_alone_a_second_run_ends_at_once(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, ROLE.role)
    for number, name in enumerate(NAMES, 1):
        slots = {1: honest(1), 2: honest(2)}
        hosts.add(
            name, found(number, "".join(f"gpu{one} slots={len(slots[one]['gpu']['gpus']) or 1}\n" for one in (1, 2)))
        )
    output = hosts.play(**{**CLUSTER, "cluster_accelerator": "auto"})
    assert changed(output) == dict.fromkeys(NAMES, 0), output
    assert [hosts.modules(name) for name in NAMES] == [["node_facts"]] * 2
    assert changed(hosts.play(entry="verify", **{**CLUSTER, "cluster_accelerator": "auto"})) == dict.fromkeys(NAMES, 0)


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_alone_verify_names_what_is_missing(hosts: StandIns) -> None:
    output = " ".join(hosts.play(entry="verify", **CLUSTER).split())
    assert f"gpu1: role deepspeed_launch: {ETC}/hostfile is missing. Remedy: ansible-playbook site.yml" in output


def test_alone_a_job_is_refused_before_anything_is_written(hosts: StandIns) -> None:
    output = " ".join(hosts.play(**CLUSTER, **JOB).split())
    assert "gpu1: a job needs what other roles know" in output and "launch.yml starts the job" in output
    assert [hosts.modules(name) for name in NAMES] == [["node_facts"]] * 2


BOARD = "swarmspeed.tensorboard"


@pytest.mark.parametrize(
    ("docker", "removed"),
    [
        ({"containers": {"swarmspeed.tensorboard": {"labels": {BOARD: "x"}}}}, True),
        ({"containers": {"swarmspeed.tensorboard": {"labels": {}}}}, False),
        ({"containers": {"swarmspeed.tensorboard": {}, "other": {"labels": {BOARD: "x"}}}}, False),
        ({"containers": {}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_teardown_removes_the_container_of_tensorboard_that_is_ours(docker: Any, removed: bool) -> None:
    task = ROLE.task("teardown", "Remove the container of TensorBoard")
    assert task["community.docker.docker_container"]["state"] == "absent"
    facts = {"swarmspeed": {} if docker is None else {"docker": docker}}
    assert task_inputs(task, ROLE.given(None, ansible_facts=facts)) is removed


@pytest.mark.parametrize(
    ("ended", "stops"),
    [
        ({"skipped": True, "changed": False}, False),
        ({"job": {"state": "stopped"}, "changed": True}, False),
        ({"failed": False, "msg": "training job digits: state.json is not readable"}, True),
        ({"failed": False, "msg": "Timed out after 600 second(s)."}, True),
    ],
)
def test_teardown_stops_the_container_of_a_job_that_could_not_be_stopped(ended: dict[str, Any], stops: bool) -> None:
    block = ROLE.task("teardown", "Stop the container of a job")
    given = ROLE.given(None, _deepspeed_launch_ended=ended)
    assert task_inputs(block, given) is stops
    if stops:
        ours = ROLE.task("teardown", "Assert that remaining processes")["ansible.builtin.assert"]
        assert str(templar(given).template(ours["fail_msg"])) == ended["msg"]
