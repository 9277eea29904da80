# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""With which options git is run: it asks no one, runs no program of others, and fetches one commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository import parse
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository_io import fetch, run_git

SETTINGS = {
    # No program but git itself.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "filter.lfs.smudge=",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "gc.auto=0",
    # The same files on every controller.
    "core.autocrlf=false",
    "core.eol=lf",
    "core.symlinks=true",
    "fetch.recurseSubmodules=false",
    "advice.detachedHead=false",
}
VARIABLES = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_ALLOW_PROTOCOL": "file:https:http:ssh:git",
}


def test_git_can_ask_no_one_and_runs_no_program_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    started: dict[str, Any] = {}

    def popen(words: list[str], **options: Any) -> None:
        started.update(options, words=words)
        raise OSError("not run")

    monkeypatch.setattr(subprocess, "Popen", popen)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"):
        monkeypatch.setenv(name, "/elsewhere")
    run_git(["status"], 1.0, {"OWN": "1"})
    words = started["words"]
    assert words[0] == "git" and words[-1] == "status"
    settings = [words[number + 1] for number, word in enumerate(words) if word == "-c"]
    assert set(settings) == SETTINGS and len(words) == 2 + 2 * len(SETTINGS)
    assert started["stdin"] == subprocess.DEVNULL and started["start_new_session"] is True
    protocols = set(started["env"]["GIT_ALLOW_PROTOCOL"].split(":"))
    assert "ext" not in protocols and "https" in protocols
    assert {name: started["env"].get(name) for name in VARIABLES} == {
        **VARIABLES,
        "GIT_ALLOW_PROTOCOL": started["env"]["GIT_ALLOW_PROTOCOL"],
    }
    assert "OWN" in started["env"] and not {
        name for name in started["env"] if name.startswith("GIT_") and started["env"][name] == "/elsewhere"
    }


def test_one_commit_is_fetched_and_nothing_that_it_refers_to(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    own = ["git", "-C", str(origin), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    origin.mkdir()
    for words in (["init", "--quiet", "--initial-branch=main"], ["commit", "--quiet", "--allow-empty", "--message=x"]):
        subprocess.run([*own, *words], check=True)
    requested: list[list[str]] = []

    def git(arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult:
        requested.append(list(arguments))
        return run_git(arguments, timeout, variables)

    fetch(parse(f"file://{origin}", "main", ""), tmp_path / "cache", git)
    (made,) = (words for words in requested if "init" in words)
    assert {"--bare", "--template="} <= set(made) and made[-2] == "--"
    (listed,) = (words for words in requested if "ls-remote" in words)
    assert listed[1:3] == ["--", f"file://{origin}"]
    (fetched,) = (words for words in requested if "fetch" in words)
    assert {"--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"} <= set(fetched)
    assert fetched[-3:-1] == ["--", f"file://{origin}"]
    (verified,) = (words for words in requested if "rev-parse" in words)
    assert "--verify" in verified
    (written,) = (words for words in requested if "checkout-index" in words)
    assert {"--all", "--force"} <= set(written)
    (staged,) = (words for words in requested if "ls-files" in words)
    assert {"--stage", "-z"} <= set(staged)


def test_folders_of_the_cache_are_for_this_account_only(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        test_one_commit_is_fetched_and_nothing_that_it_refers_to(tmp_path)
    finally:
        os.umask(before)
    cache = tmp_path / "cache"
    (own,) = cache.iterdir()
    assert [folder.stat().st_mode & 0o777 for folder in (cache, own, own / "trees")] == [0o700] * 3
