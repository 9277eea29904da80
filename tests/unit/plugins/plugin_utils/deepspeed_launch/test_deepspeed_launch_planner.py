# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role deepspeed_launch: the files of a job. What it plans is what the modules would write."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import io
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import render
from ansible_collections.swarmspeed.cluster.plugins.modules import ds_config, hostfile
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.deepspeed_launch.planner import (
    NOTHING,
    DeepspeedLaunchPlanner,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs, Sealed, Unknown
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.controller import read, split_kind
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import drift_text
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.role_values import defaults

ROLE = "deepspeed_launch"
HOSTS = ("gpu1", "gpu2")
ROOT = "/srv/lab"
HOSTFILE, DS_CONFIG, KEY = f"{ROOT}/etc/hostfile", f"{ROOT}/etc/ds_config.json", f"{ROOT}/etc/job_key"
VSCODE = f"{ROOT}/workspace/.vscode/launch.json"
MICRO = {"train_micro_batch_size_per_gpu": 1}
ROLE_VARS = defaults(
    cluster_name="lab",
    cluster_root=ROOT,
    training_image_deepspeed_version="0.19.2",
    training_container_ulimits=["memlock:-1:-1"],
    deepspeed_launch_ds_config=MICRO,
)
JOB: dict[str, Any] = {"deepspeed_launch_script": "train.py"}
BARE: dict[str, Any] = {**JOB, "deepspeed_launch_runtime": "host", "workspace_python_deepspeed_version": "0.19.2"}
CLUSTER: dict[str, Any] = {
    "hosts": list(HOSTS),
    "slots": {"gpu1": 2, "gpu2": 2},
    "gpus": None,
    "gpus_known": True,
    "host_memory": None,
    "underlay": {"addresses": {"gpu1": "10.1.0.1", "gpu2": "10.1.0.2"}},
}


def file(text: str, **changed: Any) -> dict[str, Any]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    known = {"exists": True, "sha256": digest, "mode": "0644", "owner": 0, "group": 0, "plain": True}
    return {**known, "content": text, **changed}


def plan(files: Mapping[str, Any] | None = None, of_cluster: Mapping[str, Any] | None = None, **desired: Any) -> Plan:
    """The plan for two hosts that have these files, gpu2 alone those that are named by it."""
    role_vars = {**ROLE_VARS, **desired}
    facts = {host: {"files": dict((files or {}).get(host, files or {}))} for host in HOSTS}
    view = CLUSTER if of_cluster is None else of_cluster
    return fold([DeepspeedLaunchPlanner()], facts, dict.fromkeys(HOSTS, role_vars), Inputs(view, {}, "key"))


def shown(made: Plan, host: str = "gpu1") -> list[tuple[str, str]]:
    return [(change.action, change.what) for change in made.changes if change.host == host]


def task_input(made: Plan, host: str = "gpu1") -> Mapping[str, Any]:
    return made.task_inputs[host][ROLE]


def done(**desired: Any) -> dict[str, Any]:
    """The files of gpu1 as they are once all is written."""
    found = copy.deepcopy(plan(**desired).facts["gpu1"]["files"])
    return {path: {**fact, "plain": True} for path, fact in found.items()}


# What is gathered


def test_what_a_job_is_passed_may_be_known_later() -> None:
    """``swarmspeed_cluster`` is worked out once the hosts' facts are gathered, and the plan made again after."""
    known = {name: value for name, value in {**ROLE_VARS, **JOB}.items() if name != "deepspeed_launch_args"}
    facts: dict[str, Any] = {host: {"files": {}} for host in HOSTS}
    role_vars = dict.fromkeys(HOSTS, known | {"deepspeed_launch_vscode": True})
    made = fold([DeepspeedLaunchPlanner()], facts, role_vars, Inputs(CLUSTER, {}, "key"))
    assert [change.what for change in made.changes] == [HOSTFILE, DS_CONFIG] * 2


@pytest.mark.parametrize("desired", [{}, JOB, {**JOB, "deepspeed_launch_vscode": True}, BARE])
def test_whatever_is_compared_is_gathered(desired: dict[str, Any]) -> None:
    assert GATHERED.by_role_vars is not None
    entries = {entry["path"]: entry for entry in GATHERED.by_role_vars({**ROLE_VARS, **desired})["files"]}
    made = {change.what for change in plan(**desired).changes}
    assert made and made <= set(entries)
    # The text of a key is never gathered, that of the others is compared.
    assert all(bool(entries[path].get("content")) is (path != KEY) for path in made)


# Which files


@pytest.mark.parametrize(
    ("desired", "first", "second"),
    [
        ({}, [HOSTFILE], [HOSTFILE]),
        (JOB, [HOSTFILE, DS_CONFIG], [HOSTFILE, DS_CONFIG]),
        ({**JOB, "deepspeed_launch_config_argument": ""}, [HOSTFILE], [HOSTFILE]),
        ({"deepspeed_launch_vscode": True}, [HOSTFILE], [HOSTFILE]),
        ({**JOB, "deepspeed_launch_vscode": True}, [HOSTFILE, DS_CONFIG, VSCODE], [HOSTFILE, DS_CONFIG]),
        (BARE, [HOSTFILE, DS_CONFIG, KEY], [HOSTFILE, DS_CONFIG, KEY]),
    ],
)
def test_the_files_of_a_job(desired: dict[str, Any], first: list[str], second: list[str]) -> None:
    made = plan(**desired)
    assert [what for dummy, what in shown(made)] == first
    assert [what for dummy, what in shown(made, "gpu2")] == second
    assert {change.action for change in made.changes} == {"+"} and not made.refusals
    assert task_input(made)["slots"] == CLUSTER["slots"] and task_input(made)["etc"] == f"{ROOT}/etc"
    assert shown(plan(done(**desired), **desired)) == []


def test_vs_codes_file_is_of_the_node_of_rank_0() -> None:
    desired: dict[str, Any] = {**JOB, "deepspeed_launch_vscode": True, "deepspeed_launch_include": "gpu2"}
    made = plan(**desired)
    assert VSCODE in [what for dummy, what in shown(made, "gpu2")]
    assert VSCODE not in [what for dummy, what in shown(made)]
    (started,) = json.loads(task_input(made, "gpu2")["launch_json"])["configurations"]
    assert started["args"][started["args"].index("--master_addr") + 1] == "lab-gpu2"
    assert task_input(made)["launch_json"] == ""
    # Those of others stay.
    by_hand = file('{"configurations": [{"name": "mine"}]}')
    again = json.loads(task_input(plan({"gpu1": {}, "gpu2": {VSCODE: by_hand}}, **desired), "gpu2")["launch_json"])
    assert [one["name"] for one in again["configurations"]] == ["mine", "swarmspeed: job"]


@pytest.mark.parametrize(("desired", "address"), [({}, "lab-gpu1"), ({"cluster_network_mode": "host"}, "10.1.0.1")])
def test_how_rank_0_is_reached(desired: dict[str, Any], address: str) -> None:
    text = task_input(plan(**JOB, deepspeed_launch_vscode=True, **desired))["launch_json"]
    assert f'"{address}"' in text and ("lab-gpu1" in text) is (address == "lab-gpu1")


# What is compared


@pytest.mark.parametrize(
    ("path", "fact", "words"),
    [
        (HOSTFILE, ABSENT, "is missing"),
        (HOSTFILE, file("gpu1 slots=9\n"), "has other content"),
        (
            HOSTFILE,
            file("gpu1 slots=2\ngpu2 slots=2\n", mode="0600"),
            "is mode 0600, owner 0, group 0, but should be mode 0644",
        ),
        (HOSTFILE, file(""), "has other content"),
        (DS_CONFIG, file("{}\n"), "has other content"),
        (DS_CONFIG, file(render(MICRO), owner=1), "has other content"),
        (DS_CONFIG, ABSENT, "is missing"),
    ],
)
def test_what_differs_is_named(path: str, fact: dict[str, Any], words: str) -> None:
    made = plan({**done(**JOB), path: fact}, **JOB)
    assert [drift_text(change).startswith(f"{path} {words}") for change in made.changes] == [True, True]


def test_a_configuration_that_means_the_same_stays_as_it_is_written() -> None:
    there = done(**JOB)
    config = json.loads(there[DS_CONFIG]["content"])
    by_hand = "// mine\n" + json.dumps(config)
    assert shown(plan({**there, DS_CONFIG: file(by_hand)}, **JOB)) == []
    # Its mode is another matter.
    assert shown(plan({**there, DS_CONFIG: file(by_hand, mode="0666")}, **JOB)) == [("~", DS_CONFIG)]


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        (HOSTFILE, "this is a list of things to do\n", "DeepSpeed hostfile"),
        (DS_CONFIG, "not: [a configuration", "DeepSpeed configuration"),
        (DS_CONFIG, "[]", "DeepSpeed configuration"),
    ],
)
def test_what_is_no_such_file_is_refused_and_left_alone(path: str, text: str, what: str) -> None:
    made = plan({**done(**JOB), path: file(text)}, **JOB)
    assert made.changes == () and [refusal.subject for refusal in made.refusals] == list(HOSTS)
    assert made.refusals[0].text.startswith(f"{path} is not a {what}: ")
    assert made.refusals[0].sentence.endswith("It was left as it is. Remedy: correct or remove it")


@pytest.mark.parametrize(
    ("changed", "there"),
    [({}, "0.15.4"), ({"training_image_dockerfile": "x"}, "0.15.4"), ({"training_image_source": "pull"}, "0.15.4")],
)
def test_of_an_image_whose_release_is_not_known_what_any_release_is_given_is_right(
    changed: dict[str, Any], there: str
) -> None:
    """The role asks the container for the release before it writes the file."""
    desired: dict[str, Any] = {**JOB, "deepspeed_launch_ds_config_preset": "zero2", "deepspeed_launch_ds_config": MICRO}
    written = done(**desired, training_image_deepspeed_version=there)
    made = plan(written, **desired, **changed)
    assert shown(made) == []
    other = plan({**written, DS_CONFIG: file('{"zero_optimization": {"stage": 1}}')}, **desired, **changed)
    assert shown(other) == [("~", DS_CONFIG)]


def test_a_secret_of_the_configuration_is_nowhere_to_be_seen() -> None:
    desired: dict[str, Any] = {
        **JOB,
        "deepspeed_launch_ds_config": {**MICRO, "comet": {"enabled": True, "api_key": "never-to-be-seen"}},
    }
    before = done(**JOB)
    for made in (plan(**desired), plan(before, **desired)):
        changes = [change for change in made.changes if change.what == DS_CONFIG]
        assert changes and all(isinstance(change.after, Sealed) for change in changes)
        reported = outcome(made, "", [ROLE])
        assert "never-to-be-seen" not in json.dumps(
            [reported["document"], reported["text"], reported["diffs"], reported["task_inputs"]]
        )
    after = done(**desired)
    again: dict[str, Any] = {**ROLE_VARS, **desired, "deepspeed_launch_ds_config": MICRO}
    made = plan(after, **again)
    assert "never-to-be-seen" not in json.dumps(outcome(made, "", [ROLE])["document"])


# Before it is known what the hosts have


def test_before_a_driver_works_the_files_are_known_after_apply() -> None:
    unknown = {**CLUSTER, "gpus_known": False}
    auto: dict[str, Any] = {**JOB, "deepspeed_launch_ds_config_preset": "auto"}
    for desired in (JOB, auto):
        made = plan(None, unknown, **desired)
        assert {change.what for change in made.changes} == {HOSTFILE, DS_CONFIG}
        assert all(isinstance(change.after, Unknown) for change in made.changes)
        # What is there is compared once they are known.
        assert plan(done(**JOB), unknown, **desired).changes == ()


def test_where_nothing_is_known_of_the_hosts_nothing_is_planned() -> None:
    made = plan(None, {})
    assert made.changes == () and made.refusals == ()
    assert task_input(made) == {**NOTHING, "etc": f"{ROOT}/etc"}


def test_what_preflight_says_of_the_configuration_is_not_planned() -> None:
    desired: dict[str, Any] = {**JOB, "deepspeed_launch_ds_config": {"zero_optimization": {"stge": 1}}}
    assert [what for dummy, what in shown(plan(**desired))] == [HOSTFILE]


def test_slots_that_are_not_there_are_refused() -> None:
    made = plan(**JOB, deepspeed_launch_include="gpu7")
    assert made.changes == () and [one.subject for one in made.refusals] == list(HOSTS)
    assert "gpu7" in made.refusals[0].text and "\n" not in made.refusals[0].text


@pytest.mark.parametrize(
    ("desired", "words"),
    [
        ({"deepspeed_launch_launcher": "torchrun"}, "not for torchrun with deepspeed_launch_runtime: container"),
        ({"deepspeed_launch_runtime": "host"}, "not for deepspeed with deepspeed_launch_runtime: host"),
        ({"deepspeed_launch_args": ["${HOME}"]}, "'${HOME}' has ${ in it, which VS Code would replace"),
    ],
)
def test_what_one_process_cannot_start_is_refused(desired: dict[str, Any], words: str) -> None:
    (refusal,) = plan(**{**JOB, "deepspeed_launch_vscode": True, **desired}).refusals
    assert refusal.subject == "gpu1" and words in refusal.text
    assert refusal.remedy.endswith("set deepspeed_launch_vscode: false")
    assert plan(**{**JOB, **desired}).refusals == ()


# The key of a job on the hosts themselves


def key(digest: str, **changed: Any) -> dict[str, Any]:
    return {"exists": True, "sha256": digest, "mode": "0600", "owner": 0, "group": 0, **changed}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (key("a"), key("a"), {}),
        (key("a"), key("a", mode="0644"), {"gpu2": ("~", "mode 0644", "mode 0600")}),
        (key("a", mode="0644"), key("a"), {"gpu1": ("~", "mode 0644", "mode 0600")}),
        (key("a"), key("b"), {"gpu2": ("~", Sealed("b"), Sealed("a"))}),
        (key("a"), ABSENT, {"gpu2": ("+", None, Sealed("a"))}),
        (ABSENT, ABSENT, {"gpu1": ("+", None, Unknown), "gpu2": ("+", None, Unknown)}),
        (ABSENT, key("b"), {"gpu1": ("+", None, Unknown), "gpu2": ("~", Sealed("b"), Unknown)}),
    ],
)
def test_the_key_is_that_of_the_first_node(first: Any, second: Any, expected: dict[str, Any]) -> None:
    written = done(**BARE)
    made = plan({"gpu1": {**written, KEY: first}, "gpu2": {**written, KEY: second}}, **BARE)
    found = {
        change.host: (
            change.action,
            change.before,
            Unknown if isinstance(change.after, Unknown) else change.after,
        )
        for change in made.changes
    }
    assert found == expected
    # The first node reads it for the others, so that all take part.
    assert [task_input(made, host)["share_key"] for host in HOSTS] == [bool(expected)] * 2
    assert plan({host: made.facts[host]["files"] for host in HOSTS}, **BARE).changes == ()


# The modules


texts = {
    HOSTFILE: st.sampled_from(
        ["gpu1 slots=2\ngpu2 slots=2\n", "gpu1 slots=2\n", "# mine\ngpu1 slots=2\ngpu2 slots=2\n", ""]
    ),
    DS_CONFIG: st.sampled_from(
        [
            *(done(**JOB, deepspeed_launch_ds_config_preset=name)[DS_CONFIG]["content"] for name in ("zero1", "zero3")),
            "{}",
            "",
            '{"train_micro_batch_size_per_gpu": 1.0}',
            "no configuration: [",
        ]
    ),
}


def predicted(module: ModuleType, found: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
    """Return what a module says in check mode of a file that is there."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(found["content"], encoding="utf-8")
        path.chmod(int(found["mode"], 8))
        with (
            patch_module_args({"path": str(path), "_ansible_check_mode": True, **arguments}),
            contextlib.redirect_stdout(printed),
            pytest.raises(SystemExit),
        ):
            module.main()
    result: dict[str, Any] = json.loads(printed.getvalue())
    return result


@settings(max_examples=examples(300))
@given(
    path=st.sampled_from([HOSTFILE, DS_CONFIG]),
    data=st.data(),
    mode=st.sampled_from(["0644", "0600"]),
    preset=st.sampled_from(["zero1", "zero2", "zero3"]),
)
def test_what_is_planned_is_what_the_module_would_write(path: str, data: Any, mode: str, preset: str) -> None:
    files = {path: file(data.draw(texts[path]), mode=mode)}
    desired: dict[str, Any] = {**JOB, "deepspeed_launch_ds_config_preset": preset}
    made = plan(files, **desired)
    arguments: dict[str, Any] = {"hosts": CLUSTER["slots"]}
    if path == DS_CONFIG:
        arguments = {
            "preset": preset,
            "config": MICRO,
            "deepspeed_version": "0.19.2",
            "world_size": 4,
            "memlock": -1,
        }
    result = predicted(hostfile if path == HOSTFILE else ds_config, files[path], **arguments)
    refused = any(path in refusal.text for refusal in made.refusals)
    assert bool(result.get("failed")) is refused
    if not refused:
        assert result["changed"] is (path in [what for dummy, what in shown(made)])
        assert (Path(path).name in task_input(made)["writes"]) is result["changed"]
        if path == DS_CONFIG:
            assert task_input(made)["ds_config"] == result["config"]
    if not refused:
        assert all(shown(plan(dict(made.facts[host]["files"]), **desired)) == [] for host in HOSTS)


# What the module ds_config is asked for


def test_the_request_has_all_options_of_the_module_but_the_world_size_and_what_may_be_secret() -> None:
    request = task_input(plan(**JOB))["request"]
    assert {*request, "config", "world_size"} == {field.name for field in dataclasses.fields(Request)}
    assert task_input(plan(**{**JOB, "deepspeed_launch_config_argument": ""}))["request"] == {}
    # Also where the hosts of the job cannot be chosen: preflight lists all that is wrong at once.
    assert task_input(plan(**{**JOB, "deepspeed_launch_include": "nosuch"}))["request"] == request


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, -1),
        ({"training_container_ulimits": ["memlock:8388608:8388608"]}, 8388608),
        ({"training_container_ulimits": ["nofile:1024", "memlock:65536"]}, 65536),
        ({"training_container_ulimits": []}, None),
        ({"training_container_ulimits": ["memlock:unlimited"]}, None),
        ({"deepspeed_launch_runtime": "host"}, None),
    ],
)
def test_memlock_is_a_number(changed: dict[str, Any], expected: int | None) -> None:
    """As text it was refused by preflight, which hands it on as it is: with the defaults no job could be launched."""
    found = task_input(plan(**{**JOB, **changed}))["request"]["memlock"]
    assert found == expected and isinstance(found, (int, type(None)))
    assert not [error for error in build(Request(memlock=found)).errors if error.path == "memlock"]


# How the script gets ds_config.json


def of_source(folder: Path, text: str, **desired: Any) -> Plan:
    """The plan for a script that is read on the controller, as the action reads what the planner names."""
    (folder / "train.py").write_text(text, encoding="utf-8")
    role_vars = {**ROLE_VARS, **JOB, "workspace_source": str(folder), **desired}
    planner = DeepspeedLaunchPlanner()
    files = {name: read(*split_kind(name)) for name in planner.files(role_vars)}
    facts: dict[str, Any] = {host: {"files": {}} for host in HOSTS}
    return fold([planner], facts, dict.fromkeys(HOSTS, role_vars), Inputs(CLUSTER, files, "key"))


TRAINER = "from transformers import Trainer\n"


def test_a_trainer_needs_no_variable(tmp_path: Path) -> None:
    desired: dict[str, Any] = {"deepspeed_launch_ds_config": {"train_micro_batch_size_per_gpu": "auto"}}
    made = of_source(tmp_path, TRAINER, **desired)
    assert (
        task_input(made)["config_argument"] == "--deepspeed"
        and task_input(made)["request"]["integration"] == "huggingface"
    )
    assert task_input(made)["integration"] == (
        "Integration: huggingface, because train.py line 1 imports transformers.Trainer. The script gets "
        "ds_config.json through --deepspeed."
    )
    assert task_input(made)["ds_config"]["train_micro_batch_size_per_gpu"] == "auto"
    assert DS_CONFIG in {what for dummy, what in shown(made)} and made.refusals == ()


def test_accelerate_is_given_the_file_in_the_environment(tmp_path: Path) -> None:
    made = task_input(of_source(tmp_path, "from accelerate import Accelerator\n"))
    assert (made["config_argument"], made["by_environment"], made["configured"]) == ("", True, True)
    assert made["request"]["integration"] == "accelerate"


def test_without_deepspeed_there_is_no_file(tmp_path: Path) -> None:
    made = of_source(tmp_path, "import torch\n")
    assert task_input(made)["request"] == {} and task_input(made)["configured"] is False
    assert [what for dummy, what in shown(made)] == [HOSTFILE]


@pytest.mark.parametrize(
    ("desired", "words"),
    [
        ({"workspace_source": ""}, "the script is not on the controller"),
        ({"deepspeed_launch_script": "-m pkg.train"}, "a module, which the controller does not have"),
        ({"deepspeed_launch_script": "llamafactory-cli"}, "a command, which the controller does not have"),
        (
            {"workspace_source": "https://x.test/a.git", "workspace_source_ref": "v1"},
            "the repository is not fetched yet",
        ),
        ({"deepspeed_launch_script": "other.py"}, "other.py: it is not in workspace_source"),
    ],
)
def test_what_cannot_be_read_is_as_it_was(desired: dict[str, Any], words: str, tmp_path: Path) -> None:
    made = task_input(of_source(tmp_path, TRAINER, **desired))
    assert (made["config_argument"], made["request"]["integration"]) == ("--deepspeed_config", "deepspeed")
    assert "not determined" in made["integration"] and words in made["integration"]


def test_a_fetched_repository_is_read(tmp_path: Path) -> None:
    source = {"workspace_source": "https://x.test/a.git", "workspace_source_ref": "v1"}
    made = of_source(tmp_path, TRAINER, **source, swarmspeed_source={"folder": str(tmp_path), "name": "a"})
    assert task_input(made)["config_argument"] == "--deepspeed"


def test_a_script_by_its_path_in_the_container_is_read(tmp_path: Path) -> None:
    made = of_source(tmp_path, TRAINER, deepspeed_launch_script="/workspace/train.py")
    assert task_input(made)["config_argument"] == "--deepspeed"


def test_two_configurations_are_refused_before_anything_is_changed(tmp_path: Path) -> None:
    made = of_source(tmp_path, TRAINER, deepspeed_launch_args=["--deepspeed", "my.json"])
    assert made.changes == () and {refusal.subject for refusal in made.refusals} == set(HOSTS)
    assert made.refusals[0].sentence == (
        "deepspeed_launch_args has --deepspeed, but the script also gets the cluster's ds_config.json. Remedy: "
        "write it into deepspeed_launch_ds_config instead, or set deepspeed_launch_integration: none"
    )
    own: dict[str, Any] = {"deepspeed_launch_args": ["--deepspeed", "my.json"], "deepspeed_launch_integration": "none"}
    none = of_source(tmp_path, TRAINER, **own)
    assert none.refusals == () and task_input(none)["request"] == {}


@pytest.mark.parametrize(("job", "fails"), [("a", False), ("b", True)])
def test_verify_does_not_fail_at_files_of_a_later_job_while_the_job_runs(job: str, fails: bool) -> None:
    """The job has copies of them."""
    facts: dict[str, Any] = {host: {"files": {}} for host in HOSTS}
    facts["gpu1"]["code"] = {"running": {"a": []}}
    role_vars = {host: {**ROLE_VARS, "deepspeed_launch_name": job} for host in HOSTS}
    made = fold([DeepspeedLaunchPlanner()], facts, role_vars, Inputs(CLUSTER, {}, "key"))
    assert made.changes
    assert {change.tolerated for change in made.changes if "/etc/" in change.what} == {not fails}
