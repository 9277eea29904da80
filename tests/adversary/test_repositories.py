# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A repository in workspace_source has the user's own git run commands, through attributes that name its filters."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository import parse
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository_io import fetch

TEXT = "of the repository\n"


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a filter of the user's writes when it runs. It is configured in every place that git reads."""
    ran = tmp_path / "ran"
    command = tmp_path / "filter"
    command.write_text(f"#!/bin/sh\necho owned | tee -a {ran}\n")
    command.chmod(0o755)
    both = f"smudge = {command}\n\tclean = {command}\n\trequired = true"
    sections = f'[filter "one"]\n\t{both}\n[filter "two"]\n\t{both}\n[filter "three"]\n\tprocess = {command}\n'
    attributes = tmp_path / "attributes"
    attributes.write_text("[attr]users filter=two\n*.cfg filter=one\n")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        (tmp_path / name).write_text(f"{sections}[core]\n\tattributesFile = {attributes}\n")
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "filter.four.smudge")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(command))
    return ran


def git(source: Path, *words: str) -> str:
    """Run git as the maker of the repository, who has none of this."""
    nothing = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_COUNT": "0"}
    command = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@example.com", *words]
    done = subprocess.run(command, env={**os.environ, **nothing}, check=True, capture_output=True, text=True)
    return done.stdout.strip()


ATTRIBUTES = {
    "for all files": {".gitattributes": "* filter=one\n"},
    "for one file": {".gitattributes": "/train.py filter=two\n"},
    "in a folder": {"deep/.gitattributes": "*.py filter=one\n"},
    "that goes on running": {".gitattributes": "*.py filter=three\n"},
    "of the environment": {".gitattributes": "*.py filter=four\n"},
    "by a macro": {".gitattributes": "[attr]mine filter=one\n*.py mine\n"},
    "by a macro of the user's": {".gitattributes": "*.py users\n"},
    "by the user's own file": {"x.cfg": TEXT},
    "again and again": {".gitattributes": "* filter=one\n*.py !filter\n*.py filter=two\n"},
    "with other conversions": {".gitattributes": "* text eol=lf ident filter=one\n"},
}


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_no_filter_of_the_users_runs(tmp_path: Path, ran: Path, case: str) -> None:
    source = tmp_path / "train.git"
    files = {"train.py": TEXT, "deep/train.py": TEXT, **ATTRIBUTES[case]}
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    git(source, "init", "--quiet")
    git(source, "add", "--all")
    git(source, "commit", "--quiet", "--message=x")
    fetched = fetch(parse(f"file://{source}", git(source, "rev-parse", "HEAD"), ""), tmp_path / "cache")
    assert {name: (fetched.folder / name).read_text() for name in files} == files
    assert not ran.exists(), ran.read_text()


def test_a_cache_of_before_is_protected_too(tmp_path: Path, ran: Path) -> None:
    """Where the repository was fetched by an earlier release, and another commit comes."""
    test_no_filter_of_the_users_runs(tmp_path, ran, "for one file")
    (bare,) = (tmp_path / "cache").glob("*/repository")
    (bare / "info" / "attributes").unlink()
    source = tmp_path / "train.git"
    git(source, "commit", "--quiet", "--allow-empty", "--message=y")
    head = git(source, "rev-parse", "HEAD")
    fetched = fetch(parse(f"file://{source}", head, ""), tmp_path / "cache")
    assert fetched.commit == head and (fetched.folder / "train.py").read_text() == TEXT
    assert not ran.exists()
