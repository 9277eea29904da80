# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The folder in which a run starts: its own copy of the source, seen together with the rest of the workspace.

Part of the supervisor's archive: standard library, Python 3.8 or later.

A container may neither mount nor overlay anything, so the two are joined by links. What the workspace has beside the
source is linked into the start folder; what the run makes there is linked into the workspace within a second, and moved
there when no process of the run is left. Names of the source win. The nodes of a run may share the workspace, so every
step may be done by several supervisors at once, and what another one has done already is no error.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ...common.digests import Hashed
from ...common.untrusted_folder import FolderError
from ...common.untrusted_links import LinkingFolder
from ..code_places import (
    CACHE,
    CODE,
    COPIED,
    folders_of,
    is_ours,
    joined,
    link_to_run,
    link_to_workspace,
    parent,
    run_of,
)

INTERVAL = 1.0
"""Seconds between two searches for what is new."""
SETTLED = 2.0
"""Seconds after which a folder whose time did not change has nothing new: file systems count in steps."""


class CodeError(Exception):
    """The code of the job is not what was to be started. The text says where, and what to do."""


@dataclass(frozen=True)
class _Laid:
    """What was laid out for a run, and what of it the next one keeps."""

    files: Mapping[str, Any]
    keep: Mapping[str, str]
    kept: set[str]
    """Folders of what is kept."""
    folders: set[str]

    @classmethod
    def of(cls, recorded: Mapping[str, Any], keep: Mapping[str, str]) -> _Laid:
        """Read the record, which containers can write."""
        files, more = recorded.get("files"), recorded.get("folders")
        files = files if isinstance(files, dict) else {}
        others = {one for one in more if isinstance(one, str)} if isinstance(more, list) else set()
        return cls(files, keep, folders_of(keep), folders_of([*files, *keep]) | others)


class StartFolder:
    """``name`` below ``workspace``; ``wanted`` are the files of the source ``digest`` with their SHA-256."""

    def __init__(
        self,
        workspace: str,
        name: str,
        digest: str,
        wanted: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.workspace, self._name, self._wanted, self._clock = workspace.rstrip("/"), name, dict(wanted), clock
        self.path = f"{self.workspace}/{name}"
        self._tree = f"{CODE}/{digest}"
        self._files = LinkingFolder(self.workspace)
        self._folders = folders_of(wanted)
        self._others: set[str] = set()
        """Files and folders of other sources in the workspace: a run does not see them."""
        self._all_folders = self._folders
        """Those of any source."""
        self.tick: Callable[[], None] = lambda: None
        """Called while files are copied or compared, which may take a while."""
        self._learned = 0
        self._linked: set[str] = set()
        """What was linked once: where the run removes such a link, it stays away."""
        self._shown: set[str] = set()
        self._listed: dict[str, tuple[int, int]] = {}
        self._next = 0.0

    def holds(self, path: str) -> str:
        """Return where the run has its own copy of a file of the source in the workspace; else the path itself."""
        name = path[len(self.workspace) + 1 :]
        if path == self.workspace:
            return self.path
        own = path.startswith(f"{self.workspace}/") and (name in self._wanted or name in self._folders)
        return f"{self.path}/{name}" if own else path

    # --- before the run

    def prepare(self, again: bool = False) -> None:
        """Lay out what the run starts from. ``again``: it has started already, and what it has changed stays."""
        self._learn()
        if not again:
            self._collect(self._wanted)
            self._files.make_folder(parent(self._name), 0o755)
            laid = {"files": self._wanted, "folders": sorted(self._all_folders - self._folders)}
            self._files.write(f"{self._name}.json", json.dumps(laid).encode())
        self._files.make_folder(self._name, 0o755)
        for name, digest in self._wanted.items():
            self._copy(name, digest, again)
        self._link()

    def _copy(self, name: str, digest: str, again: bool) -> None:
        source, target = f"{self._tree}/{name}", f"{self._name}/{name}"
        self.tick()
        if self._files.kind(target) == "a plain file" and (again or self._files.digest(target) == digest):
            return
        with contextlib.ExitStack() as stack:
            try:
                file = self._files.open(source)
            except FolderError:
                file = None
            if file is None:
                raise self._wrong(name, "is missing")
            stack.enter_context(file)
            status, read = os.fstat(file.fileno()), Hashed(file, self.tick)
            self._files.make_folder(parent(target), 0o755)
            self._files.write(target, read, stat.S_IMODE(status.st_mode) & 0o777, status.st_mtime)  # type: ignore[arg-type]
        if read.sha256 != digest:
            self._files.remove(target)
            raise self._wrong(name, "is not what was to be started")

    def _wrong(self, name: str, what: str) -> CodeError:
        return CodeError(
            f"{self._files.where(f'{self._tree}/{name}')} {what}: another run of the playbook, or a process in a "
            "container, has changed the job's code. Launch again, which restores it."
        )

    def _learn(self) -> None:
        """Read which files of the workspace are of other sources. Role workspace writes that first, then the files."""
        with contextlib.suppress(FolderError):
            status = self._files.status(COPIED)
            if status is not None and status.st_mtime_ns != self._learned:
                self._learned = status.st_mtime_ns
                copied = self._read(COPIED)
                folders = folders_of(copied)
                self._others = ({*copied} | folders) - {*self._wanted} - self._folders
                self._all_folders = self._folders | folders

    def _link(self) -> None:
        """Link what the workspace has beside the source."""
        self._learn()
        for folder in sorted(self._all_folders):
            for name, kind in self._new(folder):
                rel = joined(folder, name)
                if is_ours(name) or rel in self._wanted or rel in self._folders or rel in self._others:
                    continue
                if rel in self._linked or (kind == "a link" and self._files.link_text(rel) == self._shown_as(rel)):
                    continue
                target = f"{self._name}/{rel}"
                if self._files.kind(target) is None:
                    self._files.make_folder(parent(target), 0o755)
                    self._files.make_link(target, link_to_workspace(rel))
                self._linked.add(rel)

    def _new(self, folder: str) -> Iterator[tuple[str, str]]:
        """What lies in a folder; nothing where nothing has come or gone since the last call."""
        with contextlib.suppress(FolderError):  # a link of somebody's in the place of a folder of the source
            status = self._files.status(folder)
            if status is None or not stat.S_ISDIR(status.st_mode):
                return
            now, seen = int(self._clock()), self._listed.get(folder)
            if seen is not None and seen[0] == status.st_mtime_ns and seen[1] - status.st_mtime_ns // 10**9 > SETTLED:
                return
            yield from self._files.entries(folder).items()
            self._listed[folder] = (status.st_mtime_ns, now)  # not where one of them could not be dealt with

    def _shown_as(self, rel: str) -> str:
        return link_to_run(self._name, rel)

    # --- while it runs

    def refresh(self) -> None:
        """Show in the workspace what the run has made, and in the start folder what is new in the workspace."""
        if self._clock() < self._next:
            return
        self._next = self._clock() + INTERVAL
        with contextlib.suppress(OSError, FolderError):  # a full disk must not end the job
            self._show()
            self._link()

    def _show(self) -> None:
        for folder in sorted(self._all_folders):
            for name, kind in self._new(joined(self._name, folder) if folder else self._name):
                rel = joined(folder, name)
                if is_ours(name) or rel in self._wanted or rel in self._folders or rel in self._others:
                    continue
                if kind == "a link" and self._files.link_text(f"{self._name}/{rel}") == link_to_workspace(rel):
                    continue
                with contextlib.suppress(FolderError):  # somebody's link in the place of a folder
                    self._show_one(folder, rel, kind)
        for rel in [rel for rel in self._shown if self._files.kind(f"{self._name}/{rel}") is None]:
            self._files.remove_link(rel, self._shown_as(rel))
            self._shown.discard(rel)

    def _show_one(self, folder: str, rel: str, kind: str) -> None:
        there = self._files.kind(rel)
        if there is None:
            if folder:
                self._files.make_folder(folder, 0o755)
            self._files.make_link(rel, self._shown_as(rel))
        elif there == kind == "a plain file":
            own = f"{self._name}/{rel}"
            self._files.replace_by_link(rel, self._shown_as(rel), lambda: self._files.kind(own) is not None)
        self._shown.add(rel)

    # --- after it

    def settle(self) -> list[str]:
        """Move what the run has made into the workspace, and remove the rest; return what could not be moved."""
        problems = self._collect({})
        if self._files.kind(self._name) == "a folder":
            self._files.remove_empty(self._name)
        if self._files.kind(self._name) is None:
            self._files.remove(f"{self._name}.json")
        return problems

    def _collect(self, keep: Mapping[str, str]) -> list[str]:
        """Take what a run has made out of its start folder. Of ``keep`` what is there already stays."""
        if self._files.kind(self._name) != "a folder":
            return []
        laid = _Laid.of(self._read(f"{self._name}.json"), keep)
        problems: list[str] = []
        self._empty("", laid, problems)
        for folder in laid.folders:
            with contextlib.suppress(FolderError):
                for name, kind in self._files.entries(folder).items():
                    rel = joined(folder, name)
                    if kind == "a link" and self._files.kind(f"{self._name}/{rel}") is None:
                        self._files.remove_link(rel, self._shown_as(rel))
        return problems

    def _empty(self, folder: str, laid: _Laid, problems: list[str]) -> None:
        for name, kind in self._files.entries(joined(self._name, folder) if folder else self._name).items():
            own = f"{self._name}/{joined(folder, name)}"
            try:
                with self._unless_done(own):
                    if not self._own(joined(folder, name), kind, laid, problems):
                        self._move(own, self._home(joined(folder, name)))
            except (OSError, FolderError) as error:
                problems.append(str(error))

    @contextlib.contextmanager
    def _unless_done(self, own: str) -> Iterator[None]:
        """What fails here is not an error where another supervisor has moved or removed it meanwhile."""
        try:
            yield
        except (OSError, FolderError):
            if self._files.kind(own) is not None:
                raise

    def _own(self, rel: str, kind: str, laid: _Laid, problems: list[str]) -> bool:
        """Remove what is ours and no longer needed; say whether it is ours."""
        own, name = f"{self._name}/{rel}", rel.rpartition("/")[2]
        if kind == "a folder" and rel in laid.folders:
            self._empty(rel, laid, problems)
            if rel not in laid.kept:
                self._files.remove_empty(own)
            return True
        if kind == "a plain file" and (rel in laid.files or rel in laid.keep):
            self.tick()
            digest = self._files.digest(own)
            if digest is None or digest not in (laid.files.get(rel), laid.keep.get(rel)):
                return False  # the run has changed it
            if digest != laid.keep.get(rel):
                self._files.remove(own)
            return True
        linked = kind == "a link" and self._files.link_text(own) == link_to_workspace(rel)
        # What is being written may be another node's that prepares the same run.
        if name == CACHE or ((linked or is_ours(name)) and not laid.keep):
            self._files.remove(own)
        return linked or is_ours(name)

    def _home(self, rel: str) -> str:
        """Where an output belongs: where another run has made what has its name, that one takes it along."""
        parts = rel.split("/")
        for above in ("/".join(parts[: depth + 1]) for depth in range(len(parts))):
            text = self._files.link_text(above)
            run = run_of(text, above) if text else ""
            if run == self._name and above != rel:
                self._files.remove_link(above, text or "")
            elif run and run != self._name and self._files.kind(f"{run}/{above}") is not None:
                return f"{run}/{rel}"
        return rel

    def _move(self, own: str, to: str) -> None:
        """Several supervisors may do this at once, so nothing is checked and removed in two steps."""
        kind, there = self._files.kind(own), self._files.kind(to)
        if kind == "a link" and self._files.link_text(own) == link_to_workspace(own[len(self._name) + 1 :]):
            self._files.unlink(own)
            return
        if kind == there == "a folder":
            for name in self._files.entries(own):
                with self._unless_done(f"{own}/{name}"):
                    self._move(f"{own}/{name}", f"{to}/{name}")
            self._files.remove_empty(own)
            return
        if there == "a folder":
            raise FolderError(f"{self._files.where(to)} is a folder, and the run has made {kind} of that name")
        if kind == "a folder" and there is not None:
            self._files.unlink(to)  # a file takes its place without: by then it may be what another one has moved
        if parent(to):
            self._files.make_folder(parent(to), 0o755)
        self._files.rename(own, to)

    def _read(self, name: str) -> dict[str, Any]:
        """Return what we have written there; nothing where it is damaged: containers can write it."""
        with contextlib.suppress(OSError, FolderError):
            return self._files.read_json(name) or {}
        return {}
