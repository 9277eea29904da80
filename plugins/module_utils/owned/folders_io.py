# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders on a host, and the record of those that are ours, which only root can read and write.

The record lies in no folder that a container mounts: root in a container could forge a mark in one that it can write.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from ..common.command_io import run_program
from ..common.empty_folder import empty_folder
from ..common.untrusted_folder import UntrustedFolder
from .names import ETC, JOBS, WORKSPACE, etc_is_ours, is_job, replaced, root_is_ours
from .record import Entry, Found, Identity, parse, render, was_made_after

PLACE = "/var/lib/swarmspeed"
NAME = "owned.json"
MOST_JOBS = 1000
"""With more, they are not read one by one."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CLUSTER = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class OwnedError(Exception):
    """A folder or the record cannot be used. The text says which, why and what to do."""


class Folders(Protocol):
    """What is printed of a host, and done there."""

    def real(self, path: str) -> str: ...

    def find(self, path: str) -> Found | None: ...

    def made(self, root: str) -> set[str]: ...

    def replaced(self, real: str) -> list[str]: ...

    def read(self) -> dict[str, Entry]: ...

    def write(self, record: dict[str, Entry]) -> None: ...

    def create(self, path: str) -> Found: ...

    def missing(self, reals: Iterable[str]) -> list[str]: ...

    def contents(self, real: str) -> UntrustedFolder: ...

    def empty(self, found: Found) -> None: ...

    def remove_empty(self, found: Found) -> bool: ...


class SystemFolders:
    """The folders of this host. ``place``: where the records of clusters are."""

    def __init__(self, cluster: str, place: str = PLACE) -> None:
        if not _CLUSTER.fullmatch(cluster):
            raise OwnedError(f"cluster: {cluster!r} is not a valid name of a cluster. Remedy: give cluster_name.")
        self._place, self._cluster = Path(place), cluster

    # --- folders

    def real(self, path: str) -> str:
        """Return the path without links."""
        return os.path.realpath(path)

    def find(self, path: str) -> Found | None:
        """What lies there; a link is followed, as the path is the operator's own."""
        real = os.path.realpath(path)
        with self._opened(real) as handle:
            if handle is None:
                return None
            with os.scandir(handle) as entries:
                is_empty = next(entries, None) is None
            return Found(real, self._identity(handle), is_empty)

    def create(self, path: str) -> Found:
        """Make a folder that is not there. Nothing can be in it before it is recorded."""
        real = os.path.realpath(path)
        try:
            Path(real).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            Path(real).mkdir(mode=0o700)
        except OSError as error:
            raise OwnedError(
                f"{path} cannot be made: {error.strerror}. Remedy: correct the path, or use become."
            ) from error
        found = self.find(real)
        if found is None:
            raise OwnedError(f"{path} is gone again. Remedy: find out who removes it, and run again.")
        return found

    def missing(self, reals: Iterable[str]) -> list[str]:
        """Return which of these are not there any more."""
        return [real for real in reals if not os.path.lexists(real)]

    def contents(self, real: str) -> UntrustedFolder:
        return UntrustedFolder(real, OwnedError)

    def made(self, root: str) -> set[str]:
        """Which folders below the node state directory this collection made before there was a record, by what they
        hold. Of the workspace its age says so, as anything may be in it: it is no older than ``etc``."""
        top = self.find(root)
        if top is None:
            return set()
        etc = self.find(f"{top.real}/{ETC}")
        if etc and (etc.real != f"{top.real}/{ETC}" or not etc_is_ours(self._names(etc.real, "ssh"))):
            etc = None
        found = {top.real} if root_is_ours(self._names(top.real), etc is not None) else set()
        if etc is None or not found:
            return found
        found.add(etc.real)
        found |= {folder for name in JOBS for folder in (f"{top.real}/{name}",) if self._holds_jobs(folder)}
        workspace = self.find(f"{top.real}/{WORKSPACE}")
        if workspace and workspace.real == f"{top.real}/{WORKSPACE}" and was_made_after(workspace, etc):
            found.add(workspace.real)
        return found

    def replaced(self, real: str) -> list[str]:
        """Which files would be replaced if ``etc`` were in this folder, in which this collection never wrote."""
        return replaced(self._names(real, "ssh"))

    def _holds_jobs(self, folder: str) -> bool:
        """Whether nothing but jobs is in a folder. Containers write there: what cannot be read is no proof."""
        inside = self.contents(folder)
        with contextlib.suppress(OwnedError):
            kinds = inside.entries() if self.real(folder) == folder else {"": "a link"}
            return len(kinds) <= MOST_JOBS and all(
                kind == "a folder" and is_job(name, inside.entries(name)) for name, kind in kinds.items()
            )
        return False

    def _names(self, real: str, inner: str = "") -> list[str]:
        """What lies in a folder, and by ``inner/name`` what lies in the folder ``inner`` of it."""
        folder = self.contents(real)
        kinds = folder.entries()
        names = [name for name, kind in kinds.items() if name != inner or kind != "a folder"]
        if kinds.get(inner) == "a folder":
            names += [f"{inner}/{name}" for name in folder.entries(inner)]
        return names

    def empty(self, found: Found) -> None:
        """Remove all that lies in a folder, if it is still the one that was found."""
        with self._same(found) as handle:
            try:
                if handle is not None and not empty_folder(handle):
                    raise OwnedError(
                        f"{found.real} is written while it is emptied. Remedy: stop what writes there, and run again."
                    )
            except OSError as error:
                raise OwnedError(
                    f"{found.real} cannot be emptied: {error.strerror}. "
                    "Remedy: unmount what is mounted in it, and run again."
                ) from error

    def remove_empty(self, found: Found) -> bool:
        """Remove a folder if it is still the one that was found, and empty; say whether it is gone."""
        with self._same(found) as handle:
            if handle is None:
                return True
            with contextlib.suppress(OSError):
                Path(found.real).rmdir()
                return True
        return False

    @contextlib.contextmanager
    def _same(self, found: Found) -> Iterator[int | None]:
        with self._opened(found.real) as handle:
            if handle is not None and not found.identity.is_same(self._identity(handle)):
                raise OwnedError(f"{found.real} was replaced meanwhile. Remedy: find out by whom, and run again.")
            yield handle

    @contextlib.contextmanager
    def _opened(self, real: str) -> Iterator[int | None]:
        handle = self._handle(real)
        try:
            yield handle
        finally:
            if handle is not None:
                os.close(handle)

    @staticmethod
    def _handle(real: str) -> int | None:
        try:
            return os.open(real, _FOLDER)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = "it is not a folder" if isinstance(error, NotADirectoryError) else error.strerror
            raise OwnedError(
                f"{real} cannot be opened: {reason}. Remedy: correct the path, remove what lies there, or use become."
            ) from error

    @staticmethod
    def _identity(handle: int) -> Identity:
        status = os.fstat(handle)
        # Python has no statx().
        printed = run_program(["stat", "--dereference", "--format=%.9W", f"/proc/{os.getpid()}/fd/{handle}"], 10)
        born = printed.stdout.strip() if printed.rc == 0 else ""
        return Identity(status.st_dev, status.st_ino, born if re.fullmatch(r"[1-9][0-9]*\.[0-9]+", born) else "")

    # --- the record

    def read(self) -> dict[str, Entry]:
        """The record; empty where there is none."""
        if not self._is_private(self._place) or not self._is_private(self._place / self._cluster):
            return {}
        data = UntrustedFolder(self._place, OwnedError).read(f"{self._cluster}/{NAME}")
        return parse(data.decode("utf-8", "replace")) if data else {}

    def write(self, record: dict[str, Entry]) -> None:
        """Replace the record at once; without an entry it goes, with its folders where they are empty."""
        folder = UntrustedFolder(self._place, OwnedError)
        if record:
            self._place.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._is_private(self._place)
            folder.make_folder(self._cluster, 0o700, exact=True)
            folder.write(f"{self._cluster}/{NAME}", render(record).encode(), 0o600)
            return
        folder.remove(f"{self._cluster}/{NAME}")
        for path in (self._place / self._cluster, self._place):
            with contextlib.suppress(OSError):
                path.rmdir()

    @staticmethod
    def _is_private(path: Path) -> bool:
        """Whether a folder is there; refuse one that somebody else than root could have written."""
        try:
            found = path.lstat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise OwnedError(f"{path} cannot be read: {error.strerror}. Remedy: use become.") from error
        mode = found.st_mode
        if not stat.S_ISDIR(mode) or found.st_uid not in {0, os.geteuid()} or mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OwnedError(
                f"{path} must be a folder of root that no one else can write: it records which folders teardown may "
                f"remove. It is owned by {found.st_uid}, mode {stat.S_IMODE(mode):04o}. Remedy: find out who "
                f"changed it, then chown root {path} and chmod go-w {path}."
            )
        return True
