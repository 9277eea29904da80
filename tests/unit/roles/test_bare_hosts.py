# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Roles on servers without Docker: which do nothing there, what others write, and when an environment is made anew."""

from __future__ import annotations

from typing import Any

import pytest

from tests.role_values import acts, load, value, variables

# Whether docker, swarm, overlay_network, ssh_trust and training_container have anything to do is planned:
# tests/unit/plugins/plugin_utils.
OF_DOCKER = (
    "nvidia_container_toolkit",
    "training_image",
)
RECORD = "/opt/train/.swarmspeed"


def done(file: str, **changed: Any) -> list[str]:
    """Return the tasks of a file, as far as a look at their own conditions tells, that would run."""
    given = variables(file.split("/", maxsplit=1)[0], ansible_check_mode=False, **changed)
    return [next(key for key in task if "." in key or key == "block") for task in load(file) if acts(task, given)]


@pytest.mark.parametrize("accelerator", ["cpu", "cuda"])
@pytest.mark.parametrize("role", OF_DOCKER)
def test_a_role_that_needs_docker_does_nothing(role: str, accelerator: str) -> None:
    cluster = {**variables()["swarmspeed_cluster"], "accelerator": accelerator}
    bare = {"deepspeed_launch_runtime": "host", "swarmspeed_cluster": cluster}
    assert done(f"{role}/tasks/main.yml", **bare) == []
    assert done(f"{role}/tasks/verify.yml", **bare) == []


def test_nothing_of_docker_is_verified_there() -> None:
    planned = {"pending": {"gpu2": {"docker": False}}}
    assert done("docker/tasks/verify.yml", deepspeed_launch_runtime="host", swarmspeed_plan=planned) == []
    assert done("docker/tasks/verify.yml", swarmspeed_plan=planned) == ["block"]


@pytest.mark.parametrize("role", OF_DOCKER)
def test_with_containers_it_does_what_it_did(role: str) -> None:
    cluster = {**variables()["swarmspeed_cluster"], "accelerator": "cuda"}
    for file in ("main", "verify"):
        found = done(f"{role}/tasks/{file}.yml", swarmspeed_cluster=cluster)
        assert found and "ansible.builtin.debug" not in found


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, "overlay"),
        ({"deepspeed_launch_runtime": "container"}, "overlay"),
        ({"deepspeed_launch_runtime": "host"}, "host"),
        # preflight refuses this; the roles must not decide it in silence
        ({"deepspeed_launch_runtime": "host", "cluster_network_mode": "overlay"}, "overlay"),
        ({"cluster_network_mode": "host"}, "host"),
    ],
)
def test_without_docker_the_network_is_the_hosts(given: dict[str, str], mode: str) -> None:
    assert value("cluster_network_mode", variables(**given)) == mode


def workspace(record: str | None = None, *, folder: bool = True, **changed: Any) -> dict[str, Any]:
    there = {"exists": record is not None, "content": record} if record is not None else {"exists": False}
    facts = {
        "files": {"/opt/train": {"exists": folder}, RECORD: there},
        "packages": {"python3": "3.11.2-1", "g++": None},
        "jobs": {"a": "running", "b": "failed", "c": "starting"},
        "trees": {},
    }
    asked = {"workspace_python_environment": "/opt/train", "ansible_facts": {"swarmspeed": facts}}
    return variables("workspace", **{**asked, **changed})


def fingerprint(**changed: Any) -> str:
    return str(value("_workspace_python_hash", workspace(**changed)))


CHANGES: list[dict[str, Any]] = [
    {"workspace_python": "python3.12"},
    {"workspace_python_torch": "torch==2.12.1"},
    {"training_image_torch": "torch==2.12.1"},
    {"workspace_python_torch_index": "https://mirror.example/cpu"},
    {"workspace_python_deepspeed_version": "0.18.9"},
    {"workspace_python_deepspeed_ops": ["CPU_ADAM"]},
    {"workspace_python_packages": ["scikit-learn"]},
    {"training_image_python_packages": ["scikit-learn"]},
    {"swarmspeed_cluster": {**variables()["swarmspeed_cluster"], "accelerator": "cuda"}},
]


@pytest.mark.parametrize("changed", CHANGES, ids=lambda changed: next(iter(changed)))
def test_a_change_of_what_goes_in_makes_another_environment(changed: dict[str, Any]) -> None:
    assert fingerprint(**changed) != fingerprint()


@pytest.mark.parametrize(
    "changed",
    [{"inventory_hostname": "gpu3"}, {"workspace_apt_packages": ["git"]}, {"deepspeed_launch_args": ["--x"]}],
)
def test_other_changes_leave_it_alone(changed: dict[str, Any]) -> None:
    assert fingerprint(**changed) == fingerprint()


def test_the_wheels_count_by_name() -> None:
    # How they are listed is the controller's affair (fileglob); here only what follows from the names.
    first, second = (fingerprint(_workspace_python_wheels=[name]) for name in ("a-1.whl", "a-2.whl"))
    assert len({first, second, fingerprint(_workspace_python_wheels=[])}) == 3
    # With wheels no index is asked, so another index makes no other environment.
    other = {"workspace_python_torch_index": "https://mirror.example/cpu"}
    assert fingerprint(_workspace_python_wheels=["a-1.whl"], **other) == first


@pytest.mark.parametrize(
    ("record", "folder", "found", "foreign"),
    [
        (None, False, None, False),
        (None, True, None, True),  # somebody else's: it would be emptied
        ("incomplete\n", True, "incomplete", False),
        ("0123\n", True, "0123", False),
    ],
)
def test_what_lies_there_is_known_by_its_record(
    record: str | None, folder: bool, found: str | None, foreign: bool
) -> None:
    given = workspace(record, folder=folder)
    assert value("_workspace_python_found", given) == found
    assert value("_workspace_python_foreign", given) is foreign


def test_it_is_made_where_the_job_runs() -> None:
    assert value("_workspace_python_here", workspace()) is True
    assert value("_workspace_python_here", workspace(deepspeed_launch_exclude="gpu2")) is False
    assert value("_workspace_python_here", workspace(deepspeed_launch_include="gpu1@gpu2")) is True
    assert value("_workspace_python_here", workspace(workspace_python_environment="")) is False


def test_nothing_is_asked_of_a_node_without_an_environment() -> None:
    given = workspace(workspace_python_environment="")
    assert value("_workspace_looks", given) == []
    assert value("_workspace_python_apt", given) == []
    assert value("_preflight_place", workspace(workspace_python_environment="", deepspeed_launch_runtime="host")) == ""
    assert value("_preflight_place", workspace(deepspeed_launch_runtime="host")) == "/opt/train"
    assert value("_preflight_place", workspace()) == "/var/lib/docker"


def test_what_is_missing_and_what_runs() -> None:
    given = workspace(workspace_apt_packages=["git"])
    missing = ["python3-venv", "python3-dev", "g++", "make", "numactl", "git"]
    assert value("_workspace_python_apt_missing", given) == missing
    assert value("_workspace_jobs_running", given) == ["a", "c"]


@pytest.mark.parametrize("consent", [True, "true"])  # the command line (-e workspace_remove=true) gives text
def test_teardown_removes_by_consent_alone(consent: bool | str) -> None:
    given = workspace("0123\n")["ansible_facts"]
    asked = {"workspace_python_environment": "/opt/train", "ansible_facts": given}
    assert done("workspace/tasks/teardown.yml", **asked) == []
    removed = done("workspace/tasks/teardown.yml", **asked, workspace_remove=consent, workspace_python_remove=consent)
    assert removed == ["ansible.builtin.file", "ansible.builtin.file"]
    # Never a folder that this role did not make.
    foreign = {**asked, "ansible_facts": workspace(None)["ansible_facts"]}
    assert done("workspace/tasks/teardown.yml", **foreign, workspace_python_remove=consent) == []
