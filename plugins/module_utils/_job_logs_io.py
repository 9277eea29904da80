# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Both ends of gathering logs: the folder of a job on a node, and its copy on the controller."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_logs import (
    IDENTITY,
    REPLY_BYTES,
    WANTED,
    LogsError,
    Piece,
    same_run,
    shorten,
)

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""The job runs as root in a container and may write this folder: no link of its own leads out of it, no pipe is waited
for."""


class NodeFolder:
    """``JOBS_DIR/NAME`` on a node, read-only."""

    def __init__(self, jobs_dir: str, name: str, node: str, limit: int) -> None:
        self.path, self._node, self._limit = Path(jobs_dir) / name, node, limit

    def _folder(self, name: str) -> int | None:
        """A handle of the job's folder, or of one in it; ``None`` where there is no such folder."""
        try:
            job = os.open(self.path, _FLAGS | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not name:
            return job
        try:
            return os.open(name, _FLAGS | os.O_DIRECTORY, dir_fd=job)
        except (FileNotFoundError, NotADirectoryError):
            return None
        finally:
            os.close(job)

    def _names(self) -> list[str]:
        found = []
        for folder in ("", "ranks"):
            handle = self._folder(folder)
            if handle is not None:
                try:
                    found += [f"{folder}/{name}".lstrip("/") for name in sorted(os.listdir(handle))]  # noqa: PTH208  # a handle
                finally:
                    os.close(handle)
        return [name for name in found if WANTED.fullmatch(name)]

    def run(self) -> dict[str, Any]:
        """Which run the files are of."""
        try:
            found = json.loads(self._read("state.json").data)
        except (LogsError, ValueError):
            return {}
        return {key: found.get(key) for key in IDENTITY} if isinstance(found, dict) else {}

    def _read(self, name: str) -> Piece:
        folder, file = os.path.split(name)
        parent = self._folder(folder)
        if parent is None:
            raise LogsError(f"{self.path / name} is gone.")
        try:
            handle = os.open(file, _FLAGS, dir_fd=parent)
        except OSError as error:
            raise LogsError(f"{self.path / name} can not be read: {error.strerror}.") from error
        finally:
            os.close(parent)
        with os.fdopen(handle, "rb") as opened:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise LogsError(f"{self.path / name} is no plain file.")
            if about.st_size <= self._limit:
                return Piece(name, about.st_mtime_ns, opened.read(about.st_size))
            opened.seek(about.st_size - self._limit)
            tail = opened.read(self._limit)
        return Piece(name, about.st_mtime_ns, shorten(self._node, str(self.path / name), about.st_size, tail), True)

    def pieces(self, have: dict[str, list[int]], skip: set[str]) -> Iterator[Piece | str]:
        """Each file of which the controller does not have just this, or a text where one can not be read."""
        for name in self._names():
            if name not in skip:
                try:
                    piece = self._read(name)
                except LogsError as error:
                    yield str(error)
                    continue
                if piece.mark != have.get(name):
                    yield piece

    def reply(self, have: dict[str, list[int]], skip: set[str]) -> dict[str, Any]:
        """One answer: files until REPLY_BYTES are reached, and whether there are more."""
        files: list[dict[str, Any]] = []
        problems: list[str] = []
        total, more = 0, False
        for piece in self.pieces(have, skip):
            if isinstance(piece, str):
                problems.append(piece)
                continue
            if files and total + len(piece.data) > REPLY_BYTES:
                more = True
                break
            files.append(piece.pack())
            total += len(piece.data)
        return {"files": files, "more": more, "problems": problems}


class Copy:
    """``DEST/NAME/NODE`` on the controller: readable by the one who runs Ansible only."""

    def __init__(self, dest: str, name: str, node: str) -> None:
        self.job = Path(dest) / name
        self.path = self.job / node

    def state(self) -> dict[str, Any]:
        try:
            found = json.loads((self.path / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _files(self) -> list[str]:
        found = [path.relative_to(self.path).as_posix() for path in [*self.path.glob("*"), *self.path.glob("ranks/*")]]
        return sorted(name for name in found if WANTED.fullmatch(name))

    def have(self) -> dict[str, list[int]]:
        """Size and time of each file here: those of the node, when it was gathered."""
        marks = {}
        for name in self._files():
            about = (self.path / name).stat()
            marks[name] = [about.st_size, about.st_mtime_ns]
        return marks

    def turn(self, run: dict[str, Any]) -> bool:
        """Put an earlier run aside as ``runs/NUMBER``, as on the node; return whether there was one."""
        here = self.state()
        if not here or not run or same_run(here, run):
            return False
        number = here.get("run")  # of a file that the node sent
        number = number if isinstance(number, int) and 0 < number < 1 << 31 else 0
        aside = self.path / "runs" / f"{number:04d}"
        # state.json last: until it is moved, a turn that was interrupted is done again.
        for name in sorted(self._files(), key=lambda file: file == "state.json"):
            self._make((aside / name).parent)
            (self.path / name).replace(aside / name)
        return True

    def write(self, piece: Piece) -> bool:
        """Write a file where its content differs; return whether it did. The leader's summary is the job's too."""
        changed = self._write(self.path / piece.path, piece)
        if piece.path == "summary.json":
            changed = self._write(self.job / "summary.json", piece) or changed
        return changed

    def _write(self, path: Path, piece: Piece) -> bool:
        self._make(path.parent)
        same = path.is_file() and path.stat().st_size == len(piece.data) and path.read_bytes() == piece.data
        if not same:
            beside = path.with_name(path.name + ".new")
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(piece.data)
            beside.replace(path)
        os.utime(path, ns=(piece.mtime_ns, piece.mtime_ns))
        return not same

    @staticmethod
    def _make(folder: Path) -> None:
        """Folders of ours are private; those that were there before stay as they are."""
        for part in [*reversed(folder.parents), folder]:
            if not part.is_dir():
                part.mkdir(mode=0o700, exist_ok=True)
