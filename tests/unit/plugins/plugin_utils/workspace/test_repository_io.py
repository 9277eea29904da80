# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Fetching from real repositories, made for each test and reached by file://, with the git of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository import SourceError, parse
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.workspace.repository_io import (
    Fetched,
    fetch,
    place,
    run_git,
)


class Repository:
    """A repository with one branch, ``main``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"file://{folder}"
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        own = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"]
        done = subprocess.run(["git", "-C", str(self.folder), *own, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=x")
        return self.git("rev-parse", "HEAD")


class Counted:
    """Runs git, and counts what goes to the repository."""

    def __init__(self, unreachable: bool = False) -> None:
        self.requested: list[str] = []
        self.unreachable = unreachable

    def __call__(self, arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult:
        remote = [word for word in arguments if word in ("ls-remote", "fetch")]
        self.requested += remote
        if remote and self.unreachable:
            return CommandResult(128, stderr="fatal: unable to access: Could not resolve host: example.com")
        return run_git(arguments, timeout, variables)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "train.git")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def get(url: str, reference: str, cache: Path, folder: str = "", git: Counted | None = None) -> Fetched:
    return fetch(parse(url, reference, folder), cache, git or Counted())


def texts(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }


def test_a_branch_a_tag_and_a_commit(repository: Repository, cache: Path) -> None:
    first = repository.commit(train_py="1", sub__more_py="m")
    repository.git("tag", "--annotate", "--message=x", "v1")
    second = repository.commit(train_py="2")
    for reference, commit in (("main", second), ("v1", first), (first, first), ("refs/heads/main", second)):
        fetched = get(repository.url, reference, cache)
        assert fetched.commit == commit and fetched.notes == []
        assert texts(fetched.folder) == {"train.py": "1" if commit == first else "2", "sub/more.py": "m"}
    assert texts(get(repository.url, "v1", cache, "sub").folder) == {"more.py": "m"}
    assert texts(get(str(repository.folder), "v1", cache).folder)["train.py"] == "1"


def test_what_was_fetched_before_is_not_fetched_again(repository: Repository, cache: Path) -> None:
    commit = repository.commit(train_py="1")
    git = Counted()
    get(repository.url, "main", cache, git=git)
    get(repository.url, "main", cache, git=git)
    assert git.requested == ["ls-remote", "fetch", "ls-remote"]
    # A commit is what it is: neither network nor git.
    get(repository.url, commit, cache, git=git)
    assert git.requested == ["ls-remote", "fetch", "ls-remote"]
    moved = repository.commit(train_py="2")
    assert get(repository.url, "main", cache, git=git).commit == moved


def test_without_a_network_the_last_known_commit_is_used_with_a_warning(repository: Repository, cache: Path) -> None:
    commit = repository.commit(train_py="1")
    get(repository.url, "main", cache)
    fetched = get(repository.url, "main", cache, git=Counted(unreachable=True))
    assert fetched.commit == commit
    assert fetched.notes == [
        f"workspace_source: {repository.url} cannot be reached from the controller (fatal: unable to access: Could not "
        f"resolve host: example.com). What was fetched before is used, commit {commit}."
    ]
    with pytest.raises(SourceError, match="cannot be reached from the controller"):
        get(repository.url, "v1", cache, git=Counted(unreachable=True))


@pytest.mark.parametrize(
    "output", ["Host key verification failed.", "fatal: Authentication failed for 'https://example.com/t.git/'"]
)
def test_what_was_fetched_before_is_not_used_where_the_server_refuses(
    repository: Repository, cache: Path, output: str
) -> None:
    repository.commit(train_py="1")
    get(repository.url, "main", cache)

    def refuses(arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult:
        return CommandResult(128, stderr=output)

    with pytest.raises(SourceError, match=re.escape(output.rstrip("."))):
        fetch(parse(repository.url, "main", ""), cache, refuses)


def test_a_commit_whose_files_were_removed_from_the_cache_is_not_the_last_known_one(
    repository: Repository, cache: Path
) -> None:
    repository.commit(train_py="1")
    get(repository.url, "main", cache)
    (own,) = cache.iterdir()
    shutil.rmtree(own / "trees")
    with pytest.raises(SourceError, match="cannot be reached from the controller"):
        get(repository.url, "main", cache, git=Counted(unreachable=True))


def test_a_branch_that_moves_while_it_is_fetched_is_refused(repository: Repository, cache: Path) -> None:
    """What is fetched must be the commit that was planned."""
    first = repository.commit(train_py="1")
    later: list[str] = []

    def moved(arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult:
        done = run_git(arguments, timeout, variables)
        if "ls-remote" in arguments:
            later.append(repository.commit(train_py="2"))
        return done

    with pytest.raises(SourceError) as error:
        fetch(parse(repository.url, "main", ""), cache, moved)
    assert str(error.value) == (
        f"workspace_source: {repository.url}: main moved from {first[:12]} to {later[0][:12]} meanwhile. "
        "Remedy: run again."
    )
    assert not list(cache.glob("*/trees/*"))


@pytest.mark.parametrize("reference", ["v9", "9" * 40])
def test_a_reference_that_is_not_there(repository: Repository, cache: Path, reference: str) -> None:
    repository.commit(train_py="1")
    with pytest.raises(SourceError) as error:
        get(repository.url, reference, cache)
    assert error.value.subject == "workspace_source_ref" and reference in error.value.text


def test_what_is_no_repository_and_what_is_no_folder_of_it(repository: Repository, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="is not a git repository"):
        get(f"file://{tmp_path}/empty", "main", cache)
    repository.commit(train_py="1", sub__more_py="m")
    for folder in ("gone", "train.py"):
        with pytest.raises(SourceError) as error:
            get(repository.url, "main", cache, folder)
        assert str(error.value) == (
            f"workspace_source_folder: {repository.url} has no folder {folder} at main. Remedy: correct it; it is "
            "relative to the root of the repository."
        )


def test_no_link_of_a_repository_sends_files_of_the_controller_to_nodes(
    repository: Repository, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "id_ed25519").write_text("secret", encoding="utf-8")
    repository.folder.joinpath("key").symlink_to(tmp_path / "id_ed25519")
    repository.folder.joinpath("again").symlink_to("key")
    repository.folder.joinpath("up").symlink_to("..", target_is_directory=True)
    repository.folder.joinpath("good").symlink_to("train.py")
    repository.folder.joinpath("circle").symlink_to("circle")
    repository.commit(train_py="1")
    fetched = get(repository.url, "main", cache)
    assert texts(fetched.folder) == {"train.py": "1", "good": "1"}
    assert fetched.notes == [
        f"workspace_source: {repository.url}: links that lead out of it are left out: again, key, up."
    ]
    # Also where it is there already.
    assert get(repository.url, "main", cache).notes == fetched.notes


def test_neither_submodules_nor_large_files_are_fetched(repository: Repository, cache: Path, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit(lib_py="l")
    repository.commit(
        **{"train_py": "1", ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs\n", "a.bin": "pointer"}
    )
    repository.git("submodule", "--quiet", "add", other.url, "third")
    repository.commit()
    fetched = get(repository.url, "main", cache)
    assert not list((fetched.folder / "third").glob("*")) and texts(fetched.folder)["a.bin"] == "pointer"
    assert fetched.notes == [
        f"workspace_source: {repository.url}: its submodules are not fetched, so their folders are empty: third.",
        f"workspace_source: {repository.url}: its large files (Git LFS) are not fetched and remain pointers: "
        ".gitattributes.",
    ]


def test_no_setting_and_no_hook_of_the_user_changes_the_files(
    repository: Repository, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "post-merge", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(
        f"[core]\n autocrlf = true\n hooksPath = {hooks}\n[init]\n templateDir = {hooks.parent}\n", encoding="utf-8"
    )
    repository.commit(train_py="1\n2\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", "/gone")
    fetched = get(repository.url, "main", cache)
    assert (fetched.folder / "train.py").read_bytes() == b"1\n2\n" and not (tmp_path / "ran").exists()


def test_an_interrupted_fetch_leaves_nothing_that_is_taken_for_whole(repository: Repository, cache: Path) -> None:
    repository.commit(train_py="1")

    def interrupted(arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult:
        if "checkout-index" in arguments:
            return CommandResult(128, stderr="fatal: no space left on device")
        return run_git(arguments, timeout, variables)

    with pytest.raises(SourceError, match="no space left on device"):
        fetch(parse(repository.url, "main", ""), cache, interrupted)
    assert texts(get(repository.url, "main", cache).folder) == {"train.py": "1"}
    assert [path.name for path in next(cache.iterdir()).iterdir() if path.name.startswith("part-")] == []


def test_a_lock_that_a_killed_git_left_keeps_no_later_run_out(repository: Repository, cache: Path) -> None:
    repository.commit(train_py="1")
    get(repository.url, "main", cache)
    (bare,) = cache.glob("*/repository")
    (bare / "index.lock").touch()
    repository.commit(train_py="2")
    assert texts(get(repository.url, "main", cache).folder) == {"train.py": "2"}


def test_a_controller_without_git(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/gone")
    with pytest.raises(SourceError) as error:
        fetch(parse("https://example.com/t.git", "v1", ""), cache)
    assert str(error.value) == (
        "workspace_source: it is a git repository, but this controller cannot run git. Remedy: install git on the "
        "controller."
    )


def test_a_cache_that_others_can_write_is_not_used(repository: Repository, cache: Path) -> None:
    repository.commit(train_py="1")
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(SourceError, match="it is not a folder that only you can write"):
        get(repository.url, "main", cache)


def test_a_cache_that_is_a_link_or_another_accounts_is_not_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    cache.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="it is not a folder that only you can write"):
        get("https://example.com/t.git", "main", cache)
    cache.unlink()
    cache.mkdir(mode=0o700)
    other = cache.stat().st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(SourceError, match="it is not a folder that only you can write"):
        get("https://example.com/t.git", "main", cache)


def test_git_and_what_it_starts_ends_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = tmp_path / "git"
    stand_in.write_text("#!/bin/sh\n/bin/sleep 60 &\nwait\n", encoding="utf-8")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run_git(["ls-remote"], 0.2, {})
    assert (done.rc, done.stderr) == (124, "no answer within 0.2 seconds")


def test_credentials_are_in_no_argument(cache: Path) -> None:
    seen: list[tuple[list[str], dict[str, str]]] = []

    def watched(arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult:
        seen.append((list(arguments), variables))
        return CommandResult(128, stderr="fatal: Authentication failed for 'https://example.com/t.git/'")

    with pytest.raises(SourceError) as error:
        fetch(parse("https://me:geheim77@example.com/t.git", "v1", ""), cache, watched)
    assert "needs a login, or does not exist" in str(error.value) and "geheim77" not in str(error.value)
    assert seen and all("geheim77" not in " ".join(arguments) for arguments, dummy in seen)
    assert all("GIT_CONFIG_VALUE_0" in variables for dummy, variables in seen)


def test_the_cache_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert place() == tmp_path / "swarmspeed" / "sources"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    assert place() == tmp_path / ".cache" / "swarmspeed" / "sources"
