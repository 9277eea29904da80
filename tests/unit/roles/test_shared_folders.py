# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Roles write below folders that containers can write by mounted_files only, and know whose container they stop."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.planned_roles import every
from tests.role_values import ROLES, templar, variables

BY_PATH = ("copy", "template", "file", "blockinfile", "lineinfile", "replace", "assemble", "get_url", "slurp", "fetch")
BELOW = re.compile(r"workspace_path\s*(?:\}\})?\s*(?:~\s*')?/|/jobs/")


def through_links(task: dict[str, Any]) -> bool:
    """Whether a module of the task acts by path below such a folder, where root in a container may have put a link."""
    for module, given in task.items():
        name = str(module).rpartition(".")[2]
        if name in ("unarchive", "synchronize") and "workspace_path" in str(given):
            return True
        if (name in BY_PATH or name == "managed_files") and BELOW.search(f"{given} {task.get('loop', '')}"):
            return True
    return False


def test_no_role_acts_by_path_below_a_folder_that_containers_can_write() -> None:
    files = [*ROLES.glob("*/tasks/*.yml"), *ROLES.glob("*/handlers/*.yml")]
    assert len(files) > 50
    found = [
        f"{path.relative_to(ROLES)}: {task.get('name')}"
        for path in files
        for task in every(yaml.safe_load(path.read_text(encoding="utf-8")))
        if through_links(task)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"ansible.builtin.unarchive": {"src": "x", "dest": "{{ workspace_path }}"}}, True),
        ({"swarmspeed.cluster.managed_files": {"files": [{"path": "{{ workspace_path }}/.vscode"}]}}, True),
        ({"ansible.builtin.copy": {"dest": "{{ workspace_path ~ '/x' }}", "content": ""}}, True),
        ({"ansible.builtin.file": {"path": "{{ item }}"}, "loop": ["{{ cluster_root }}/jobs/x"]}, True),
        ({"ansible.builtin.file": {"path": "{{ workspace_path }}", "state": "directory"}}, False),
        ({"swarmspeed.cluster.mounted_files": {"root": "{{ workspace_path }}"}}, False),
    ],
)
def test_what_the_test_above_finds(task: dict[str, Any], expected: bool) -> None:
    assert through_links(task) is expected


@pytest.mark.parametrize(
    ("containers", "found", "own"),
    [
        ({}, False, False),
        ({"lab-gpu2": {"labels": {"swarmspeed.cluster": "lab"}}}, True, True),
        ({"lab-gpu2": {"labels": {"swarmspeed.cluster": "other"}}}, True, False),
        ({"lab-gpu2": {"labels": {}}}, True, False),
    ],
)
def test_whose_container_teardown_stops(containers: dict[str, Any], found: bool, own: bool) -> None:
    given = variables(cluster_name="lab", ansible_facts={"swarmspeed": {"docker": {"containers": containers}}})
    for name, expected in (("_deepspeed_launch_container_found", found), ("_deepspeed_launch_own_container", own)):
        assert templar(given).template(given[name]) is expected
