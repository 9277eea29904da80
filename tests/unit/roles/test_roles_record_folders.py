# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders are recorded before a role puts something into them: later, they would look as if they had been in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.role_values import ROLES, load

RECORD = "swarmspeed.cluster.owned_folders"
MAKES = ("swarmspeed.cluster.managed_files", "ansible.builtin.file", "ansible.builtin.copy", "community.crypto")
ROLES_THAT_RECORD = ("ssh_trust", "nccl_env", "training_container", "workspace")


def flat(tasks: list[dict[str, Any]], role: str) -> Iterator[dict[str, Any]]:
    """Tasks in the order in which they run, with those of files that are included."""
    for task in tasks:
        yield task
        for part in ("block", "rescue", "always"):
            yield from flat(task.get(part, []), role)
        included = task.get("ansible.builtin.include_tasks")
        if isinstance(included, str):
            yield from flat(load(f"{role}/tasks/{included}"), role)


@pytest.mark.parametrize("role", ROLES_THAT_RECORD)
def test_folders_are_recorded_before_anything_is_put_into_them(role: str) -> None:
    modules = [next((key for key in task if "." in key), "") for task in flat(load(f"{role}/tasks/main.yml"), role)]
    first = next(number for number, module in enumerate(modules) if module.startswith(MAKES))
    assert modules.index(RECORD) < first


def test_teardown_removes_folders_by_their_record_alone() -> None:
    """``file`` with state absent knows no owner, and ends at a folder that is deep."""
    for role in ("ssh_trust", "workspace", "deepspeed_launch"):
        tasks = list(flat(load(f"{role}/tasks/teardown.yml"), role))
        assert any(RECORD in task for task in tasks)
        removed = [task["ansible.builtin.file"]["path"] for task in tasks if "ansible.builtin.file" in task]
        looped = [name for task in tasks if "ansible.builtin.file" in task for name in task.get("loop", [])]
        named = " ".join(map(str, [*removed, *looped]))
        assert not any(name in named for name in ("workspace_path", "}}/jobs", "}}/etc }}", "host_jobs")), named


def test_every_role_that_plans_records_is_tested_here() -> None:
    found = {
        path.parts[-3] for path in ROLES.glob("*/tasks/*.yml") if "_input.owned" in path.read_text(encoding="utf-8")
    }
    assert found == set(ROLES_THAT_RECORD)
