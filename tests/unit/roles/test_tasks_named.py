# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Tests of the lab that wait for a task to be printed name one that there is: else they fail after half an hour."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TASK = re.compile(r"^ *-? *name: (?P<name>[A-Z].*)$", re.MULTILINE)
# As Ansible prints it: "ROLE : NAME]", or a part of that from the colon on.
WAITED_FOR = re.compile(r"\"(?P<role>[a-z_]*) ?: (?P<name>[A-Z][a-z]+ [^\"]*?)(?P<end>\]?)\"")


def names(role: str) -> list[str]:
    """Return the names of the tasks of a role, or of all roles."""
    files = sorted((ROOT / "roles").glob(f"{role or '*'}/tasks/*.yml"))
    return [match["name"].strip("'\"") for path in files for match in TASK.finditer(path.read_text("utf-8"))]


def waited_for() -> list[tuple[str, str, str, bool]]:
    """Return file, role, name, and whether that is the whole name: a pattern is known up to its first group."""
    files = sorted((ROOT / "molecule").glob("*/tests/*.py"))
    return [
        (path.name, match["role"], match["name"].partition("(\\")[0], bool(match["end"]) and "(\\" not in match["name"])
        for path in files
        for match in WAITED_FOR.finditer(path.read_text("utf-8"))
        if not match["role"] or (ROOT / "roles" / match["role"]).is_dir()
    ]


def test_there_are_some() -> None:
    assert len(waited_for()) >= 5


@pytest.mark.parametrize(("file", "role", "name", "whole"), waited_for())
def test_the_task_exists(file: str, role: str, name: str, *, whole: bool) -> None:
    assert any(known == name if whole else known.startswith(name) for known in names(role)), f"{file}: {role} : {name}"
