# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role workspace, over invented nodes: code that differs, and when an environment is made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.code_places import CODE
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.trees import code_digest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.controller import NAMES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import change_lines, drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.variables import VariableError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.environment import CUDA_SCRIPT, cuda_home
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.gathered import by_role_vars
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.planner import (
    LISTED,
    NOTHING,
    WorkspacePlanner,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.role_values import NODES, value, variables
from tests.workspace_nodes import CLUSTER, HERE, PATH, PYTHON, RECORD, ROLE_VARS, ROOT, SOURCE, host, plan, task_input

WITH: dict[str, Any] = {"workspace_python_environment": PYTHON}
EMPTY = hashlib.sha256().hexdigest()
TREE = f"{CODE}/{'c' * 64}"
WHEELS: dict[str, Any] = {"workspace_python_wheelhouse": "/srv/wheels"}
AS_REQUESTED = "cf2b4c098ba30254"
"""What the environment of the defaults is recorded as, by this release and those before it."""


def wanted(**changed: Any) -> str:
    return str(task_input(plan(host(), **{**WITH, **changed}))["wanted"])


# What is gathered


def test_whatever_is_compared_is_gathered(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/index").write_text("1", encoding="utf-8")
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    found = by_role_vars({**ROLE_VARS, **WITH, "workspace_source": str(tmp_path), "workspace_apt_packages": ["git"]})
    tree = f"{CODE}/{code_digest({'train.py': EMPTY}, str(tmp_path))}"
    assert found["trees"] == {PATH: {"train.py": EMPTY, f"{tree}/train.py": EMPTY}}
    assert found["code"] == PATH
    assert found["files"] == [{"path": PYTHON}, {"path": RECORD, "content": True}]
    assert found["jobs"] == f"{ROOT}/jobs"
    planned = plan(host(packages={}), **WITH, workspace_apt_packages=["git"])
    assert task_input(planned)["packages"] == found["packages"]
    assert found["packages"] == ["python3", "python3-venv", "python3-dev", "g++", "make", "numactl", "git"]


def test_the_release_of_a_package_cannot_be_compared_with_what_is_installed() -> None:
    given: dict[str, Any] = {"workspace_apt_packages": ["git/bookworm-backports", "bc=1.07*"]}
    (refusal,) = plan(host(packages={}), **WITH, **given).refusals
    assert refusal.text.startswith("workspace_apt_packages: git/bookworm-backports has a release")
    assert plan(host(packages={}), **given).refusals == ()


def test_of_a_node_without_code_and_environment_only_the_folder_is_named() -> None:
    """Below it no link is followed, whatever file another role has node_facts read."""
    folders = {"cluster": "lab", "root": ROOT, "paths": [ROOT, PATH]}
    assert by_role_vars({**ROLE_VARS, "workspace_source": ""}) == {"trees": {PATH: {}}, "folders": folders}


def test_a_source_that_is_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        VariableError, match=rf"^workspace_source: {tmp_path}/gone is not a directory on the controller$"
    ):
        by_role_vars({**ROLE_VARS, "workspace_source": str(tmp_path / "gone")})


def test_the_bundle_has_the_packages_that_an_environment_needs() -> None:
    packages = by_role_vars({**ROLE_VARS, **WITH, "workspace_source": ""})["packages"]
    for environment, wanted_there in ((PYTHON, packages), ("", [])):
        given_there = variables("workspace", "host", workspace_python_environment=environment)
        assert value("_host_bundle_workspace", given_there) == wanted_there


# Code


@pytest.mark.parametrize("desired", [{}, {"workspace_source": ""}])
def test_nothing_to_do(desired: dict[str, Any]) -> None:
    made = plan(host(), **desired)
    assert (made.changes, made.refusals) == ((), ()) and task_input(made) == NOTHING


def test_each_file_is_named_with_what_becomes_of_it() -> None:
    made = plan(host(differing=["train.py"], missing=["data/a.txt"]))
    assert [change_lines(change) for change in made.changes] == [
        [f"+ {PATH}/data/a.txt: as in {SOURCE}"],
        [f"~ {PATH}/train.py: different → as in {SOURCE}"],
    ]
    assert [drift_text(change) for change in made.changes] == [
        f"{PATH}/data/a.txt is missing",
        f"{PATH}/train.py is different, but should be as in {SOURCE}",
    ]
    assert task_input(made)["code"] == {
        "folders": [{"path": ROOT, "mode": "0700"}, {"path": PATH, "mode": "0755"}],
        "source": SOURCE,
        "path": PATH,
        "archive": f"{ROOT}/workspace.tar.gz",
        "trees": [],
        "copies": True,
        "record": True,
        "kept": {},
        "copied": {},
        "absent": [],
    }


@pytest.mark.parametrize("state", ["in_use", "theirs"])
def test_a_workspace_of_the_users_keeps_its_mode(state: str) -> None:
    found = host(missing=["data/a.txt"])
    found["folders"] = {ROOT: {"real": ROOT, "state": "ours"}, PATH: {"real": PATH, "state": state}}
    assert task_input(plan(found))["code"]["folders"] == [{"path": ROOT, "mode": "0700"}]


def planned(**facts: Any) -> tuple[list[str], Mapping[str, Any], Plan]:
    """Return the lines of the plan of a host, what the tasks get, and the plan from the facts afterwards."""
    wrong, code = facts.pop("wrong", []), facts
    found = host(missing=wrong)
    found["code"] = {**found["code"], **code}
    made = plan(found)
    lines = [line for change in made.changes for line in change_lines(change)]
    return lines, task_input(made).get("code", {}), plan(made.facts[HERE])


def test_the_code_that_runs_start_from_is_written_whole() -> None:
    lines, wanted, after = planned(wrong=[f"{TREE}/a.py", f"{TREE}/b/c.py"])
    assert lines == [f"+ {PATH}/{TREE}: as in {SOURCE}  # for runs to start from"]
    assert (wanted["trees"], wanted["copies"], wanted["record"]) == ([TREE], False, False)
    assert after.changes == ()


def test_what_the_source_has_lost_is_removed_unless_somebody_has_changed_it() -> None:
    lines, wanted, after = planned(left=["old.py"], copied={"old.py": EMPTY}, kept={"mine.py": "b" * 64})
    assert lines == [f"- {PATH}/old.py: copied from an earlier source  # not in {SOURCE}"]
    assert wanted["absent"] == [{"path": "old.py", "sha256": EMPTY}]
    assert (wanted["kept"], wanted["copied"]) == ({"mine.py": "b" * 64}, {"old.py": EMPTY})
    assert after.changes == ()


def test_code_that_no_job_needs_goes_when_other_code_comes() -> None:
    """Not by itself: verify would find a difference that only time has made."""
    assert planned(unneeded=["d" * 64])[0] == []
    lines, wanted, after = planned(wrong=[f"{TREE}/a.py"], unneeded=["d" * 64])
    assert lines[1:] == [f"- {PATH}/{CODE}/{'d' * 64}: code of an earlier source  # no job was started from it"]
    assert wanted["absent"] == [{"path": f"{CODE}/{'d' * 64}"}]
    assert after.changes == ()


@pytest.mark.parametrize(("job", "expected"), [("a", []), ("b", [f"{PATH}/train.py is missing"])])
def test_verify_does_not_fail_at_what_a_later_job_brought_while_the_job_runs(job: str, expected: list[str]) -> None:
    """Also on a host that takes no part in it. The change itself is planned."""
    there = host()
    there["code"] = {**there["code"], "running": {"a": []}}
    made = plan(host(missing=["train.py"]), there, deepspeed_launch_name=job)
    assert [drift_text(change) for change in made.changes if not change.tolerated] == expected
    assert len(made.changes) == 1


def test_what_a_job_of_an_earlier_release_reads_stays_as_it_is() -> None:
    """It runs in the workspace itself. What later jobs start from is beside it."""
    changes = {"left": ["old.py"], "copied": {"old.py": EMPTY}, "recorded": False, "readers": ["a"]}
    lines, wanted, after = planned(wrong=["train.py", f"{TREE}/train.py"], **changes)
    assert lines == [f"+ {PATH}/{TREE}: as in {SOURCE}  # for runs to start from"]
    assert (wanted["copies"], wanted["record"], wanted["absent"]) == (False, False, [])
    assert after.changes == ()


def test_of_a_repository_the_fetched_files_are_compared_and_sent(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("", encoding="utf-8")
    name = "https://example.com/t.git at v1 (commit 0123456789ab)"
    of = {"workspace_source": "https://example.com/t.git", "workspace_source_ref": "v1"}
    fetched: dict[str, Any] = {**of, "swarmspeed_source": {"folder": str(tmp_path), "name": name}}
    assert "train.py" in by_role_vars({**ROLE_VARS, **fetched})["trees"][PATH]
    made = plan(host(missing=["train.py"]), **fetched)
    assert [change_lines(change) for change in made.changes] == [[f"+ {PATH}/train.py: as in {name}"]]
    assert task_input(made)["code"]["source"] == str(tmp_path)
    # What could not be fetched was reported by then.
    failed: dict[str, Any] = {**of, "swarmspeed_source": {"folder": "", "name": ""}}
    assert by_role_vars({**ROLE_VARS, **failed})["trees"] == {PATH: {}}
    assert plan(host(missing=["train.py"]), **failed).changes == ()


def test_a_relative_source_starts_where_the_playbook_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("", encoding="utf-8")
    monkeypatch.setenv("PWD", str(tmp_path))
    assert "train.py" in by_role_vars({**ROLE_VARS, "workspace_source": "src"})["trees"][PATH]


def test_of_many_files_some_are_named_and_the_others_counted() -> None:
    made = plan(host(missing=[f"f{number:04}" for number in range(1000)], differing=["g"] * (LISTED + 1)))
    assert [change.what for change in made.changes][-2:] == [f"{PATH}/g", f"1 more different files below {PATH}"]
    assert made.changes[LISTED].what == f"{1000 - LISTED} more files below {PATH}"
    assert len(made.changes) == LISTED + 1 + 2


def test_what_a_name_holds_is_not_obeyed_by_a_terminal() -> None:
    names = ["a\x1b[2Jb", "a\u202eb", "c\nd"]
    made = plan(host(missing=names, differing=["c d"]))
    text = "\n".join(line for change in made.changes for line in change_lines(change))
    assert not {"\x1b", "\u202e"} & set(text) and len(text.splitlines()) == len(made.changes)
    assert task_input(made)["code"]


def test_facts_of_an_earlier_form_say_less() -> None:
    facts = {key: value for key, value in host(missing=["train.py"]).items() if key != "trees_missing"}
    assert [change.action for change in plan(facts).changes] == ["~"]


# The environment


def test_it_is_made_where_the_job_runs() -> None:
    def nodes(**desired: Any) -> list[str]:
        made = plan(*[host(packages={})] * 3, **{**WITH, **desired})
        having = [name for name in NODES if task_input(made, name)["interpreter"]]
        assert all(task_input(made, name)["nodes"] == having for name in NODES)
        assert all(
            bool(task_input(made, name)["environment"]) == bool(task_input(made, name)["packages"]) for name in NODES
        )
        return having

    assert nodes() == list(NODES)
    assert nodes(deepspeed_launch_exclude="gpu2") == ["gpu1", "gpu3"]
    assert nodes(deepspeed_launch_include="gpu1@gpu2") == ["gpu1", "gpu2"]
    assert nodes(workspace_python_environment="") == []


def test_a_filter_of_the_job_that_names_no_host_is_refused_here_too() -> None:
    made = plan(host(), **WITH, deepspeed_launch_include="gpu9")
    (refusal,) = made.refusals
    assert "gpu9" in refusal.text and "\n" not in refusal.sentence
    assert refusal.remedy == "correct deepspeed_launch_include and deepspeed_launch_exclude"
    assert made.changes == () and task_input(made)["environment"] == {}


@pytest.mark.parametrize("cluster", [{}, {"hosts": list(NODES)}])
def test_where_the_cluster_is_not_known_nothing_is_made(cluster: dict[str, Any]) -> None:
    made = plan(host(), cluster=cluster, **WITH)
    assert (made.changes, made.refusals, task_input(made)) == ((), (), NOTHING)


@pytest.mark.parametrize(
    ("record", "folder", "sign", "before"),
    [
        (None, False, "+", ""),
        ("incomplete\n", True, "~", "half made → "),
        ("0123\n", True, "~", "made from other requirements → "),
    ],
)
def test_what_lies_there_is_known_by_its_record(record: str | None, folder: bool, sign: str, before: str) -> None:
    made = plan(host(record=record, folder=folder), **WITH)
    line = f"{sign} Python environment {PYTHON}: {before}torch==2.13.0, deepspeed==0.19.8"
    assert [change_lines(change) for change in made.changes] == [[line]] and made.refusals == ()
    assert task_input(made)["made"] is (record is not None)


def test_an_environment_that_is_as_desired_stays() -> None:
    made = plan(host(record=f"{AS_REQUESTED}\n", jobs={"a": "running"}), **WITH)
    assert (made.changes, made.refusals) == ((), ())
    assert task_input(made) == {
        **NOTHING,
        "nodes": list(NODES),
        "interpreter": f"{PYTHON}/bin/python",
        "wanted": AS_REQUESTED,
        "made": True,
    }


def test_a_folder_of_somebody_else_is_not_emptied() -> None:
    (refusal,) = plan(host(folder=True), **WITH).refusals
    assert refusal.text == f"{PYTHON} already exists and was not created by this role; it would be emptied"
    assert task_input(plan(host(folder=True), **WITH))["made"] is False


def test_a_running_job_keeps_its_environment() -> None:
    jobs = {"a": "running", "b": "failed", "c": "starting"}
    (refusal,) = plan(host(record="0123\n", jobs=jobs), **WITH).refusals
    assert refusal.text == f"{PYTHON} must be re-created, but job a, c runs"
    # Code and packages are no reason to stop.
    made = plan(host(record=f"{AS_REQUESTED}\n", jobs=jobs, packages={}, differing=["train.py"]), **WITH)
    assert made.refusals == () and len(made.changes) == 7


CHANGES: list[dict[str, Any]] = [
    {"workspace_python": "python3.12"},
    {"workspace_python_torch": "torch==2.12.1"},
    {"cluster": {**CLUSTER, "versions": {**CLUSTER["versions"], "torch": "torch==2.12.1"}}},
    {"workspace_python_torch_index": "https://mirror.example/cpu"},
    {"workspace_python_deepspeed_version": "0.18.9"},
    {"workspace_python_deepspeed_ops": ["CPU_ADAM"]},
    {"training_image_deepspeed_ops": ["CPU_ADAM"]},
    {"deepspeed_launch_ds_config_preset": "zero2_offload"},
    {"deepspeed_launch_ds_config": {"optimizer": {"type": "Lion"}}},
    {"workspace_python_packages": ["scikit-learn"]},
    {"cluster": {**CLUSTER, "accelerator": "cuda"}},
]


@pytest.mark.parametrize("changed", CHANGES, ids=lambda changed: next(iter(changed)))
def test_a_change_of_what_goes_in_makes_another_environment(changed: dict[str, Any]) -> None:
    assert wanted(**changed) != wanted()


@pytest.mark.parametrize(
    "changed",
    [
        {"workspace_apt_packages": ["git"]},
        {"workspace_source": ""},
        {"deepspeed_launch_exclude": "gpu3"},
        {"workspace_python_environment": "/opt/other"},
    ],
)
def test_other_changes_leave_it_alone(changed: dict[str, Any]) -> None:
    assert wanted(**changed) == wanted()


@pytest.mark.parametrize(
    ("changed", "recorded"),
    [
        ({}, AS_REQUESTED),
        ({"workspace_python_torch": "torch==2.12.1"}, "f3c1587f8dc4f227"),
        (
            {"workspace_python_deepspeed_ops": ["CPU_ADAM"], "workspace_python_packages": ["scikit-learn"]},
            "4dfba31a2728f20e",
        ),
        ({"cluster": {**CLUSTER, "accelerator": "cuda"}}, "b051e300fa7ef661"),
        ({**WHEELS, "files": {f"{NAMES}/srv/wheels": "a-1.whl\nb-2.whl"}}, "f2adc8f3b15731a9"),
        ({"workspace_python_deepspeed_ops": ["async_io"]}, "98947e2e4b3b4bb5"),
    ],
)
def test_an_environment_that_an_earlier_release_made_is_kept(changed: dict[str, Any], recorded: str) -> None:
    """The values are those of the role's former expressions."""
    assert wanted(**changed) == recorded


def test_the_wheels_count_by_name() -> None:
    def of(*names: str, **more: Any) -> str:
        return wanted(**WHEELS, **more, files={f"{NAMES}/srv/wheels": "\n".join(names)})

    assert len({of("a-1.whl"), of("a-2.whl"), of()}) == 3
    # With wheels no index is asked, so another index makes no other environment.
    assert of("a-1.whl", workspace_python_torch_index="https://mirror.example/cpu") == of("a-1.whl")
    assert list(WorkspacePlanner().files({**ROLE_VARS, **WITH, **WHEELS})) == [f"{NAMES}/srv/wheels", CUDA_SCRIPT]
    without = {**ROLE_VARS, **WITH, **WHEELS, "workspace_python_compiler": False}
    assert list(WorkspacePlanner().files(without)) == [f"{NAMES}/srv/wheels"]
    assert list(WorkspacePlanner().files({**ROLE_VARS, **WHEELS})) == []


def test_the_commands_that_make_it() -> None:
    made = task_input(
        plan(host(), **WITH, workspace_python_packages=["scikit-learn"], workspace_python_torch="torch==2 x")
    )
    found = made["environment"]
    pip = [f"{PYTHON}/bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    assert found["create"] == ["python3", "-m", "venv", PYTHON]
    assert found["torch"] == [*pip, "--index-url", CLUSTER["versions"]["torch_index"], "torch==2", "x"]
    assert found["deepspeed"] == [*pip, "--no-deps", "--no-build-isolation", "deepspeed==0.19.8"]
    assert found["rest"] == [*pip, "deepspeed==0.19.8", "torch==2", "x", "scikit-learn"]
    assert found["variables"] == {
        "DS_BUILD_FUSED_ADAM": "1",
        "DS_BUILD_SHM_COMM": "1",
        "MAX_JOBS": "8",
        "PATH": f"{PYTHON}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "DS_ACCELERATOR": "cpu",
    }
    assert (found["record"], found["recorded"]) == (RECORD, made["wanted"])


def test_on_gpus_nothing_is_compiled_that_is_not_named() -> None:
    cluster = {**CLUSTER, "accelerator": "cuda"}
    found = task_input(plan(host(), cluster=cluster, **WITH))["environment"]["variables"]
    assert found["CUDA_VISIBLE_DEVICES"] == "" and not [name for name in found if name.startswith("DS_BUILD")]
    named = task_input(plan(host(), cluster=cluster, **WITH, workspace_python_deepspeed_ops=["cpu_adam"]))
    assert named["environment"]["variables"]["DS_BUILD_CPU_ADAM"] == "1"
    assert "CUDA_VISIBLE_DEVICES" not in named["environment"]["variables"]


NVCC = ["cuda-toolkit[nvcc,cccl]==13.0.2"]
CUDA: dict[str, Any] = {
    **CLUSTER,
    "accelerator": "cuda",
    "versions": {**CLUSTER["versions"], "compiler": NVCC, "capabilities": ["8.0", "9.0"]},
}


def test_on_gpus_the_compiler_comes_from_wheels_and_the_operators_of_the_job_are_compiled() -> None:
    found = task_input(plan(host(), cluster=CUDA, files={CUDA_SCRIPT: "the script\n"}, **WITH))["environment"]
    assert found["compiler"] == {
        "script": f"{PYTHON}/cuda_home.py",
        "content": "the script\n",
        "argv": [f"{PYTHON}/bin/python", "-I", f"{PYTHON}/cuda_home.py", f"{PYTHON}/cuda", *NVCC],
        "variables": {"PATH": found["variables"]["PATH"], "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    }
    built = found["variables"]
    assert (built["CUDA_HOME"], built["TORCH_CUDA_ARCH_LIST"]) == (f"{PYTHON}/cuda", "8.0;9.0")
    assert built["DS_BUILD_FUSED_ADAM"] == "1" and "CUDA_VISIBLE_DEVICES" not in built
    wheels = task_input(plan(host(), cluster=CUDA, **WITH, **WHEELS))["environment"]["compiler"]["variables"]
    assert (wheels["PIP_NO_INDEX"], wheels["PIP_FIND_LINKS"]) == ("1", f"{ROOT}/wheelhouse")


@pytest.mark.parametrize(
    ("cluster", "desired"),
    [
        ({**CUDA, "accelerator": "cpu"}, {}),
        (CUDA, {"workspace_python_compiler": False}),
        (CUDA, {"workspace_python_torch": "torch==2.9.1"}),  # it was chosen for another PyTorch
        (CUDA, {"workspace_python_torch_index": "https://mirror.example/cu126"}),
        ({**CUDA, "versions": {**CUDA["versions"], "compiler": []}}, {}),  # CUDA 12
    ],
)
def test_without_a_fitting_compiler_none_is_installed(cluster: dict[str, Any], desired: dict[str, Any]) -> None:
    found = task_input(plan(host(), cluster=cluster, **WITH, **desired))["environment"]
    assert found["compiler"] == {} and "CUDA_HOME" not in found["variables"]
    assert cuda_home({**ROLE_VARS, **WITH, **desired}, cluster) == ""


def test_ranks_find_it_by_the_same_rule() -> None:
    assert cuda_home({**ROLE_VARS, **WITH}, CUDA) == f"{PYTHON}/cuda"
    assert cuda_home({**ROLE_VARS, **WITH, "workspace_python_torch": "torch==2.13.0"}, CUDA) == f"{PYTHON}/cuda"
    assert cuda_home(ROLE_VARS, CUDA) == ""  # no environment of this role's


def test_another_compiler_makes_another_environment() -> None:
    other = {**CUDA, "versions": {**CUDA["versions"], "compiler": ["cuda-toolkit[nvcc]==13.2.2"]}}
    found = {wanted(cluster=one, files={CUDA_SCRIPT: text}) for one in (CUDA, other) for text in ("a\n", "b\n")}
    assert len(found) == 4


def test_with_a_wheelhouse_no_index_is_asked() -> None:
    found = task_input(plan(host(), **WITH, **WHEELS, files={f"{NAMES}/srv/wheels": "a-1.whl"}))["environment"]
    for name in ("torch", "tools", "deepspeed", "rest"):
        command = " ".join(found[name])
        assert f"--no-index --find-links {ROOT}/wheelhouse" in command and "--index-url" not in command
    assert (found["wheelhouse"], found["wheels"]) == ("/srv/wheels", f"{ROOT}/wheelhouse")


# Properties

_NAMES = st.lists(st.sampled_from(["train.py", "a b", "c\nd", "x/y", "z" * 300]), unique=True, max_size=5)


@settings(max_examples=examples(60))
@given(
    st.tuples(_NAMES, _NAMES),
    st.sampled_from([None, "incomplete\n", "0123\n", f"{AS_REQUESTED}\n"]),
    st.dictionaries(st.sampled_from("ab"), st.sampled_from(["running", "starting", "failed"])),
    st.sampled_from([{}, dict.fromkeys(["python3", "g++"], "1")]),
    st.sampled_from(["", "gpu2", "gpu1"]),
)
def test_what_is_applied_is_not_planned_again(
    code: tuple[list[str], list[str]],
    record: str | None,
    jobs: dict[str, str],
    packages: dict[str, str],
    exclude: str,
) -> None:
    facts = host(*code, record, jobs=jobs, packages=packages)
    desired = {**WITH, "deepspeed_launch_exclude": exclude}
    made = plan(facts, **desired)
    doing = task_input(made)
    assert bool(made.changes) == bool(doing["code"] or doing["packages"] or doing["environment"])
    assert bool(doing["code"]) == any(code)
    if exclude == HERE:
        assert not (doing["packages"] or doing["environment"] or made.refusals)
    after = plan(made.facts[HERE], **desired)
    assert (after.changes, after.refusals) == ((), ())
    json.dumps(outcome(made, "run", ["workspace"]))
