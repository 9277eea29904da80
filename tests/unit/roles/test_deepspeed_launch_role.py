# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role deepspeed_launch: which of its tasks run, and what it does alone, by ansible-playbook on stand-ins."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.planner import NOTHING
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.managed_file import ManagedFile

from tests.adversary.hostile import facts as honest
from tests.planned_roles import plan_of
from tests.role_values import ROLES, acts, load, templar, variables
from tests.stand_ins import StandIns, changed

ROLE = "deepspeed_launch"
HOST = "gpu2"
END, PLAN, REPORT = "ansible.builtin.meta", "ansible.builtin.include_role", "swarmspeed.cluster.plan"
FILES, INCLUDE = "ansible.builtin.import_tasks", "ansible.builtin.include_tasks"
JOB: dict[str, Any] = {"deepspeed_launch_script": "train.py"}


def planned(pending: bool, drift: str = "", **act: Any) -> dict[str, Any]:
    return plan_of(ROLE, NOTHING, pending, drift, HOST, **{"etc": "/e", "slots": {HOST: 1}, "configured": True, **act})


def given(found: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    play = {"ansible_check_mode": False, "ansible_run_tags": ["all"], "training_image_source": "build"}
    plan = {} if found is None else {"swarmspeed_plan": found}
    return variables("training_container", "workspace", ROLE, **{**play, **plan, **more})


def runs(found: dict[str, Any] | None, file: str = "main", **more: Any) -> list[str]:
    """Return what of a file's tasks would run, until one ends the role or makes another plan."""
    ran: list[str] = []
    for task in load(f"{ROLE}/tasks/{file}.yml"):
        key = next(key for key in task if "." in key or key == "block")
        values = given(found, **more)
        # A block that only carries a tag runs where one of its tasks does.
        parts = task["block"] if key == "block" and "always" not in task else [{}]
        if acts(task, values) and any(acts(part, values) for part in parts):
            ran.append(key)
            if key in (END, PLAN):
                break
    return ran


ASSERT, EXTENSIONS = "ansible.builtin.assert", "swarmspeed.cluster.vscode_extensions"


def test_where_nothing_is_planned_and_there_is_no_job_the_role_ends_at_its_first_task() -> None:
    (first, *dummy) = load(f"{ROLE}/tasks/main.yml")
    assert first[END] == "end_role"
    assert first["tags"] == ["hostfile", "ds_config", "launch"]  # without them it does nothing under --tags hostfile
    assert runs(planned(False)) == [END]


@pytest.mark.parametrize("found", [None, {}, {"pending": {HOST: {"docker": False}}}])
def test_what_this_run_has_not_planned_it_plans(found: dict[str, Any] | None) -> None:
    assert runs(found) == [PLAN]
    assert runs(found, "verify") == [PLAN]
    (task,) = [one for one in load(f"{ROLE}/tasks/main.yml") if PLAN in one]
    assert task[PLAN]["apply"]["tags"] == task["tags"]


def test_what_is_planned_has_its_task() -> None:
    assert runs(planned(True)) == [ASSERT, INCLUDE, END]
    # The first node reads the key for the others.
    assert runs(planned(False, share_key=True), **JOB)[:2] == [ASSERT, INCLUDE]
    assert runs(planned(True), "files") == [REPORT]
    assert runs(planned(True, launch_json="{}"), "files") == [REPORT, "swarmspeed.cluster.mounted_files"]
    assert runs(planned(True, share_key=True), "files") == [REPORT, INCLUDE]
    extensions = {"root": "/r", "files": ["/a/x.vsix"]}
    assert runs(planned(True, extensions=extensions), "files") == [REPORT, EXTENSIONS]
    both = planned(True, share_key=True, launch_json="{}", extensions=extensions)
    assert runs(both, "files", ansible_check_mode=True) == [REPORT]


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
    assert runs(planned(False), **given_here) == [ASSERT, after]
    first = {**given_here, "_deepspeed_launch_rank0": HOST, "hostvars": {HOST: {"_deepspeed_launch_planned": decided}}}
    assert runs(planned(False), **first) == [ASSERT, DECIDE, after]


def test_a_job_is_checked_started_followed_and_its_logs_collected() -> None:
    *dummy, job = load(f"{ROLE}/tasks/main.yml")
    decide = next(task for task in dummy if task["name"] == DECIDE_NAME)
    assert decide["module_defaults"] == job["module_defaults"]
    names = [decide["name"], *(task["name"] for part in ("block", "always") for task in job[part])]
    assert names == [
        DECIDE_NAME,
        "Check every node before the start",
        "Start the job on its nodes",
        "Follow the job to its end",
        "Bring the results of the job",
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
        "_deepspeed_launch_rank0": HOST,
        "hostvars": {HOST: {"_deepspeed_launch_planned": decided}},
        "deepspeed_launch_follow": False,
        "deepspeed_launch_name": "train",
        "deepspeed_launch_results": wanted,
        "deepspeed_launch_logs_dir": str(tmp_path),
        "ansible_check_mode": not_now == "check",
    }
    assert runs(planned(False), **more) == [ASSERT, DECIDE, *(["block"] if brought else []), END]


def test_what_is_included_for_the_results_is_not_decided_again_once_they_are_there() -> None:
    (task,) = [task for task in load(f"{ROLE}/tasks/main.yml") if task.get("name", "").startswith("Bring the results")]
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
    assert runs(planned(True, writes=["hostfile", "ds_config.json"]), "files", **more) == [REPORT, *expected]
    assert runs(planned(True, writes=["hostfile"]), "files", **more) == [REPORT, *expected[:1]]


def test_the_configuration_is_compared_again_where_an_image_was_asked_for_its_release() -> None:
    cluster = {**variables()["swarmspeed_cluster"], "gpus_known": True}
    more = {"swarmspeed_cluster": cluster, **JOB}
    assert runs(planned(False), "files", **more) == [REPORT]
    requested = runs(planned(False), "files", _deepspeed_launch_release={"stdout": "0.18.9"}, **more)
    assert requested == [REPORT, "swarmspeed.cluster.ds_config"]
    assert runs(planned(False), "files", _deepspeed_launch_release={"skipped": True}, **more) == [REPORT]


def test_the_fingerprint_has_the_configuration_of_the_module_or_of_the_plan() -> None:
    *dummy, job = load(f"{ROLE}/tasks/main.yml")
    text = job["module_defaults"]["swarmspeed.cluster.training_job"]["fingerprint"]["ds_config"]
    found = planned(True, ds_config={"of": "the plan"})
    for ran, expected in (({"skipped": True}, "the plan"), ({"config": {"of": "the module"}}, "the module")):
        values = given(found, _deepspeed_launch_ds_config=ran)
        assert templar(values).template(text) == {"of": expected}
    assert templar(given(found)).template(text) == {"of": "the plan"}


@pytest.mark.parametrize(("drift", "right"), [("", True), ("hostfile is missing", False)])
def test_verify_fails_at_what_is_left_to_change(drift: str, right: bool) -> None:
    judged = load(f"{ROLE}/tasks/verify.yml")[1]
    values = given(planned(bool(drift), drift))
    assert templar(values).evaluate_conditional(judged[ASSERT]["that"]) is right


def test_every_name_of_the_plan_that_is_read_is_in_it() -> None:
    paths = [*sorted((ROLES / ROLE / "tasks").glob("*.yml")), ROLES / f"{ROLE}/vars/main.yml"]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    of_preflight = {"integration"}
    assert set(re.findall(r"_deepspeed_launch_act\.(\w+)", text)) == set(NOTHING) - of_preflight


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
    made = StandIns(tmp_path, ROLE)
    for number, name in enumerate(NAMES, 1):
        made.add(name, found(number, None))
    return made


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
    hosts = StandIns(tmp_path, ROLE)
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
    (task,) = [one for one in load(f"{ROLE}/tasks/teardown.yml") if "of TensorBoard" in one["name"]]
    assert task["community.docker.docker_container"]["state"] == "absent"
    facts = {"swarmspeed": {} if docker is None else {"docker": docker}}
    assert acts(task, given(None, ansible_facts=facts)) is removed
