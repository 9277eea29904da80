# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Fetches a reference of a git repository into the user's cache on the controller. The only place that runs git."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...module_utils.common.command_io import NOT_STARTED, TIMED_OUT, CommandResult
from ...module_utils.common.whole_file import write_whole
from .repository import (
    FOLDER,
    PROTOCOLS,
    SOURCE,
    UNREACHABLE,
    Repository,
    SourceError,
    failure,
    notes,
    patterns,
    resolve,
)

_ASKS, _FETCHES = 60.0, 3600.0
"""Seconds that a question and a fetch may take."""
_SETTINGS = (
    # No hook, no filter and no conversion of the user's own: the same commit is the same files on every controller.
    *("-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "core.eol=lf", "-c", "core.symlinks=true"),
    *("-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false", "-c", "gc.auto=0"),
    *("-c", "fetch.recurseSubmodules=false", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false"),
)
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_COMMON_DIR")
"""Set where Ansible is run by a hook of git, they would lead to another repository."""


@dataclass(frozen=True)
class Fetched:
    """Where the files are, which commit they are, and what is to be known about them.

    ``tree`` are all files of the commit, ``folder`` those that were asked for.
    """

    folder: Path
    tree: Path
    commit: str
    notes: Sequence[str]


class Git(Protocol):
    """Runs git with its arguments."""

    def __call__(self, arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult: ...


def place() -> Path:
    """Return the user's own folder for this, as the XDG Base Directory Specification has it."""
    own = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(own) if own.startswith("/") else Path.home() / ".cache") / "swarmspeed" / "sources"


def run_git(arguments: Sequence[str], timeout: float, variables: dict[str, str]) -> CommandResult:
    """Run git without a terminal, so that neither it nor ssh can ask anything."""
    environment = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": ""}
    environment |= {
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
        "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    }
    try:
        process = subprocess.Popen(
            ["git", *_SETTINGS, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment | variables,
        )
    except OSError as error:
        return CommandResult(NOT_STARTED, stderr=str(error))
    with process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # With the helpers it has started, which hold its output open.
            os.killpg(process.pid, signal.SIGKILL)
            return CommandResult(TIMED_OUT, stderr=f"no answer within {timeout:g} seconds")
    return CommandResult(process.returncode, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))


def fetch(repository: Repository, cache: Path, git: Git = run_git) -> Fetched:
    """Return the files of the reference, fetched where the cache does not have them. Raises ``SourceError``."""
    own = cache / repository.key
    try:
        private_folder(cache)
        private_folder(own)
        with _locked(own):
            work = _Cache(repository, own, git)
            commit = work.commit()
            tree = own / "trees" / commit
            if not tree.is_dir():
                work.fetch(commit)
            known = json.loads((own / "trees" / f"{commit}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(
            SOURCE, f"the cache {own} cannot be used ({error})", "remove that folder, free some space, and run again"
        ) from error
    folder = tree / repository.folder if repository.folder else tree
    if not folder.is_dir() or not folder.resolve().is_relative_to(tree.resolve()):
        raise SourceError(
            FOLDER,
            f"{repository.url} has no folder {repository.folder} at {repository.reference}",
            "correct it; it is relative to the root of the repository",
        )
    return Fetched(folder, tree, commit, [*work.notes, *notes(repository, known)])


class _Cache:
    """A bare repository, and the files of each commit that was fetched."""

    def __init__(self, repository: Repository, own: Path, git: Git) -> None:
        self.repository, self.own, self.git = repository, own, git
        self.notes: list[str] = []
        self.name = repository.commit

    def commit(self) -> str:
        """Return the commit that the reference means now; of a server that cannot be reached, the last known one."""
        if self.repository.commit:
            return self.repository.commit
        record = self.own / "references.json"
        known = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
        requested = ["ls-remote", "--", self.repository.url, *patterns(self.repository.reference)]
        try:
            self.name, commit = resolve(self.repository, self._git(requested, _ASKS))
        except SourceError as error:
            last = str(known.get(self.repository.reference, ""))
            if UNREACHABLE not in error.text or not (self.own / "trees" / last).is_dir() or not last:
                raise
            self.notes.append(f"{error.subject}: {error.text}. What was fetched before is used, commit {last}.")
            return last
        if known.get(self.repository.reference) != commit:
            write_whole(record, json.dumps({**known, self.repository.reference: commit}, indent=1, sort_keys=True))
        return commit

    def fetch(self, commit: str) -> None:
        """Fetch a commit and write its files, beside their place at first: they are there whole or not at all."""
        bare = self.own / "repository"
        if not (bare / "HEAD").is_file():
            shutil.rmtree(bare, ignore_errors=True)
            self._git(["init", "--quiet", "--bare", "--template=", "--", str(bare)], _ASKS)
        (bare / "info").mkdir(exist_ok=True)
        # Comes before what the repository and the user say: a filter is a command of the user's own configuration.
        write_whole(bare / "info" / "attributes", "* !filter\n")
        local = f"--git-dir={bare}"
        wanted = f"+{self.name}:refs/fetched/{commit}"
        alone = ["--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"]
        self._git([local, "fetch", "--quiet", *alone, "--", self.repository.url, wanted], _FETCHES)
        # A tag stands for a commit, and a branch may have moved since it was asked for.
        got = self._git([local, "rev-parse", "--verify", f"refs/fetched/{commit}^{{commit}}"], _ASKS).strip()
        if got != commit:
            raise SourceError(
                SOURCE,
                f"{self.repository.url}: {self.repository.reference} moved from {commit[:12]} to {got[:12]} meanwhile",
                "run again",
            )
        trees = self.own / "trees"
        trees.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.own, prefix="part-") as part:
            tree, index = Path(part, "tree"), {"GIT_INDEX_FILE": str(Path(part, "index"))}
            tree.mkdir()
            at = [local, f"--work-tree={tree}", "-C", str(tree)]
            self._git([*at, "read-tree", commit], _FETCHES, index)
            self._git([*at, "checkout-index", "--all", "--force"], _FETCHES, index)
            staged = self._git([*at, "ls-files", "--stage", "-z"], _FETCHES, index)
            found = _reviewed(tree, staged)
            write_whole(trees / f"{commit}.json", json.dumps(found, indent=1, sort_keys=True))
            tree.rename(trees / commit)

    def _git(self, arguments: Sequence[str], timeout: float, variables: dict[str, str] | None = None) -> str:
        count = os.environ.get("GIT_CONFIG_COUNT", "")
        given = self.repository.environment(int(count) if count.isdigit() else 0)
        done = self.git(arguments, timeout, {**given, **(variables or {})})
        if done.rc == NOT_STARTED:
            raise SourceError(
                SOURCE, "it is a git repository, but this controller cannot run git", "install git on the controller"
            )
        if done.rc:
            raise failure(self.repository, done.text)
        return done.stdout


def _reviewed(tree: Path, staged: str) -> dict[str, list[str]]:
    """Remove the links that lead out of the tree; return what is not there.

    A link is sent as the file that it leads to, so a repository could otherwise send files of the controller to nodes.
    """
    entries = [entry.partition("\t") for entry in staged.split("\0") if entry]
    found: dict[str, list[str]] = {"links": [], "large": []}
    found["submodules"] = [name for kind, dummy, name in entries if kind.startswith("160000")]
    root = tree.resolve()
    for folder, folders, files in os.walk(tree):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink():
                # A circle of links, which no one can read, counts as the link itself.
                if not Path(os.path.realpath(path)).is_relative_to(root):
                    found["links"].append(str(path.relative_to(tree)))
            elif path.name == ".gitattributes" and path.is_file() and b"filter=lfs" in path.read_bytes():
                found["large"].append(str(path.relative_to(tree)))
    # Only now: a link to a link that is removed would no longer lead out.
    for name in found["links"]:
        (tree / name).unlink()
    return found


def private_folder(folder: Path) -> None:
    """Make a folder that only this user can write: others could put their code in place of what is fetched."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError("it is not a folder that only you can write")


@contextlib.contextmanager
def _locked(own: Path) -> Iterator[None]:
    """Let another run that fetches the same finish first."""
    with (own / "lock").open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
