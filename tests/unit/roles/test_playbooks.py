# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The playbooks apply the roles in the order of the design, and every file that a task names exists."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import NAMES as ROLE_NAMES
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.controller import (
    CURRENT,
    CURRENT_PACKAGE,
    LEAST,
)

from tests import write_defaults

ROOT = Path(__file__).parents[3]
PLAYBOOKS, ROLES = ROOT / "playbooks", ROOT / "roles"
PREFIX = "swarmspeed.cluster."
NAMES = (
    *("site", "verify", "launch", "status", "stop", "teardown"),
    *("bench_network", "report", "bundle", "plan", "tensorboard", "doctor"),
)
INIT = "init"
"""Before there is an inventory: it applies no role."""
FIRST = "find_cluster"
"""The first play of each of the others."""
WITHOUT_PLAN = ("status", "stop", "doctor", "tensorboard")
"""Playbooks that must work on a broken cluster: they apply one role, and a node that is down does not end them."""

DESIGN = list(ROLE_NAMES)
"""In the order data flows through them."""
UNDONE = [role for role in reversed(DESIGN) if (ROLES / role / "tasks/teardown.yml").exists()]

IMPORTS = tuple(f"{prefix}{name}" for prefix in ("ansible.builtin.", "") for name in ("import_role", "include_role"))
TASK_FILES = tuple(
    f"{prefix}{name}" for prefix in ("ansible.builtin.", "") for name in ("import_tasks", "include_tasks")
)


@functools.cache
def load(path: Path) -> Any:
    return DataLoader().load_from_file(str(path))


def flat(tasks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each task, those in blocks too."""
    for task in tasks:
        yield task
        for part in ("block", "rescue", "always"):
            yield from flat(task.get(part) or [])


VERIFY = PLAYBOOKS / "tasks/verify_roles.yml"
"""Of verify.yml, and of the end of site.yml."""


def role_tasks(tasks: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return name, arguments and task of each role that these tasks, or those of ``VERIFY``, import or include."""
    found = []
    for task in flat(tasks):
        if Path(str(task.get("ansible.builtin.import_tasks"))).name == VERIFY.name:
            found += role_tasks(load(VERIFY))
        for key in IMPORTS:
            if key in task:
                found.append((str(task[key]["name"]).removeprefix(PREFIX), task[key], task))
    return found


def second_play(name: str) -> Any:
    """Return the play of a playbook, after the one that all begin with."""
    first, second = load(PLAYBOOKS / f"{name}.yml")
    # By its file: ansible-lint inside Galaxy's importer finds none by a full name.
    assert first["ansible.builtin.import_playbook"] == f"{FIRST}.yml"
    return second


def roles_of(name: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the roles that a playbook applies, and preflight where it only provides the variables of all roles."""
    return role_tasks(second_play(name)["tasks"])


def walked(name: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    return [entry for entry in roles_of(name) if entry[1].get("tasks_from") != "variables"]


@pytest.mark.parametrize("name", [INIT, *NAMES])
def test_a_root_playbook_is_one_import(name: str) -> None:
    (only,) = load(ROOT / f"{name}.yml")
    assert set(only) == {"name", "ansible.builtin.import_playbook"}
    assert only["ansible.builtin.import_playbook"] == PREFIX + name
    assert (PLAYBOOKS / f"{name}.yml").is_file()


def test_these_are_all_playbooks() -> None:
    assert sorted(path.stem for path in PLAYBOOKS.glob("*.yml")) == sorted([FIRST, INIT, *NAMES])
    assert {path.name for path in ROLES.iterdir() if path.is_dir()} == set(DESIGN)


WALKED = {
    **dict.fromkeys(("site", "verify"), DESIGN),
    "launch": ["preflight", "workspace", "deepspeed_launch"],
    "plan": ["preflight"],
    "teardown": ["preflight", *UNDONE],
    "bench_network": ["preflight", "overlay_network"],
    # These check nothing.
    "bundle": ["host"],
    "report": [],
    **{name: ["deepspeed_launch"] for name in WITHOUT_PLAN},
}


@pytest.mark.parametrize("name", NAMES)
def test_each_playbook_walks_its_roles_in_order_and_knows_the_variables_of_all(name: str) -> None:
    assert [role for role, dummy, dummy in walked(name)] == WALKED[name]
    assert roles_of(name)[0][0] == "preflight"
    checked = name in ("bundle", "report", *WITHOUT_PLAN)
    assert len(roles_of(name)) - len(walked(name)) == checked
    assert not UNDONE or "preflight" not in UNDONE


def test_the_tasks_of_verify_walk_the_same_roles() -> None:
    assert [role for role, dummy, dummy in role_tasks(load(PLAYBOOKS / "tasks/verify.yml"))] == DESIGN[1:]


@pytest.mark.parametrize("name", ["Determine what differs", "Assert that nothing differs"])
def test_what_differs_is_listed_with_the_tag_of_any_role(name: str) -> None:
    (task,) = [task for task in load(VERIFY) if task["name"] == name]
    assert task["tags"] == [*DESIGN[1:], "hostfile", "ds_config"]


def test_preflight_has_the_defaults_of_all_roles() -> None:
    file = write_defaults.FILE
    assert file.read_text(encoding="utf-8") == write_defaults.text(), "run: python -m tests.write_defaults"
    assert set(load(file)) == {name for role in DESIGN[1:] for name in load(ROLES / role / "defaults/main.yml")}
    assert load(ROLES / "preflight/tasks/variables.yml") == []


ENTRIES = {
    "site": None,
    "bundle": "bundle",
    "bench_network": "bench",
    "launch": None,
    **{name: name for name in ("verify", "teardown", *WITHOUT_PLAN)},
}


@pytest.mark.parametrize("name", NAMES)
def test_each_playbook_enters_the_roles_by_its_own_tasks(name: str) -> None:
    for role, arguments, dummy in walked(name):
        assert arguments.get("tasks_from") == (None if role == "preflight" else ENTRIES[name]), role


@pytest.mark.parametrize("name", NAMES)
def test_each_import_has_its_roles_tag_and_leaves_the_variables_to_preflight(name: str) -> None:
    entries = roles_of(name)
    assert entries
    for role, arguments, task in entries:
        assert "ansible.builtin.import_role" in task, role  # static, so that tags reach the tasks
        assert arguments["name"] == PREFIX + role
        assert arguments["rolespec_validate"] is False, role
        assert task["tags"] == (["always"] if role == "preflight" else [role])


def test_the_cluster_is_searched_for_on_no_host_and_with_any_tag() -> None:
    play, watched = load(PLAYBOOKS / f"{FIRST}.yml")
    assert play["hosts"] == "localhost" and play["gather_facts"] is False
    core, check = play["tasks"]
    assert core["tags"] == check["tags"] == ["always"]
    least, newest = ".".join(map(str, LEAST)), f"ansible>={CURRENT_PACKAGE}', which brings ansible-core {CURRENT}"
    assert f"'{least}'" in core["ansible.builtin.assert"]["that"]
    assert f"older than {least}, " in core["ansible.builtin.assert"]["fail_msg"]
    assert newest in core["ansible.builtin.assert"]["fail_msg"]
    assert "-i" in check["ansible.builtin.assert"]["fail_msg"]
    assert "swarmspeed.cluster." in check["name"]  # what loads the filters before the fork
    assert watched["gather_facts"] is False
    assert all(task["tags"] == ["always"] for task in watched["tasks"])


@pytest.mark.parametrize("name", NAMES)
def test_a_playbook_goes_to_the_cluster_as_root_and_stops_together(name: str) -> None:
    play = second_play(name)
    # A bundle is made where there is internet, mostly on other hosts.
    requested = "{{ 'bundle' if groups['bundle'] | default([]) else 'cluster' }}" if name == "bundle" else "cluster"
    assert play["hosts"] == requested
    assert play["gather_facts"] is False
    assert play["become"] is True and play["any_errors_fatal"] is (name not in (*WITHOUT_PLAN, "report"))


def task_files() -> list[Path]:
    return sorted([*ROLES.glob("*/tasks/*.yml"), *ROLES.glob("*/handlers/*.yml"), *PLAYBOOKS.glob("tasks/*.yml")])


def test_a_rescue_is_for_the_hosts_that_failed() -> None:
    """With any_errors_fatal the others come to it, too, without a result; from there on ansible_play_hosts lacks them.

    So a rescue in a role does nothing on hosts without a result, and ends in a failure: where the play is to go on, the
    result is judged after failed_when: false. The rescues of verify.yml save the results of all hosts, and then fail.
    """
    tasks = [(path, task) for path in task_files() if path.is_relative_to(ROLES) for task in flat(load(path) or [])]
    rescues = [(path, task) for path, block in tasks for task in block.get("rescue", [])]
    assert len(rescues) > 5
    for path, task in rescues:
        assert task.get("when") == "ansible_failed_result is defined", f"{path}: {task['name']}"


@pytest.mark.parametrize("path", task_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_tasks_that_is_named_exists(path: Path) -> None:
    check_named_files(path, load(path) or [])


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_tasks_that_a_playbook_names_exists(name: str) -> None:
    check_named_files(PLAYBOOKS / f"{name}.yml", second_play(name)["tasks"])


def check_named_files(path: Path, tasks: list[dict[str, Any]]) -> None:
    for task in flat(tasks):
        for key in TASK_FILES:
            if key in task:
                named = task[key]["file"] if isinstance(task[key], dict) else task[key]
                if path.name == "again.yml":  # one of two, both of which test_docker_role names
                    continue
                assert (path.parent / named).is_file(), f"{path}: {task.get('name')}: {named}"
    for role, arguments, task in role_tasks(tasks):
        folder = ROLES / role / "tasks"
        assert role in DESIGN, f"{path}: {task.get('name')}"
        assert (folder / f"{arguments.get('tasks_from', 'main').removesuffix('.yml')}.yml").is_file(), (
            f"{path}: {task.get('name')}"
        )


def test_a_file_that_is_not_there_is_noticed() -> None:
    """Test the check itself, as all files are there."""
    nested = [{"name": "x", "block": [{"ansible.builtin.include_tasks": {"file": "none.yml"}}]}]
    with pytest.raises(AssertionError, match=r"none\.yml"):
        check_named_files(PLAYBOOKS / "site.yml", nested)
    wrong = {"ansible.builtin.include_role": {"name": PREFIX + "preflight", "tasks_from": "none"}}
    with pytest.raises(AssertionError, match="refresh it"):
        check_named_files(PLAYBOOKS / "site.yml", [{"name": "refresh it", **wrong}])
