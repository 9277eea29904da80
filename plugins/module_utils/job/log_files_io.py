# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Both ends of gathering logs: the folder of a job on a node, and its copy on the controller."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..common.secret_names import Hide, hider
from ..common.untrusted_folder import UntrustedFolder
from ..common.untrusted_text import parse_json
from ..common.whole_file import whole_file
from .environment import ranks_environment
from .log_files import REPLY_BYTES, WANTED, LogsError, Piece, identity, same_run, shorten
from .private import host_jobs_dir
from .record import check_environment
from .summary import clean

MOST_HANGS = 20
"""Examinations of a hang, the last ones, that leave the node."""
NOTE_BYTES = 2048
"""Bytes that the note of a shortened file may take beyond the limit."""


def masked(name: str, data: bytes, hide: Hide) -> bytes:
    """A file as it leaves the node: without the secrets of the job's environment."""
    text = data.decode("utf-8", "surrogateescape")
    if name.endswith(".json"):
        # Within JSON a mask could take a quote with it.
        with contextlib.suppress(ValueError):
            return json.dumps(clean(parse_json(data), hide)).encode()
    return hide(text).encode("utf-8", "surrogateescape")


class NodeFolder:
    """``JOBS_DIR/NAME`` on a node, or where a job of the host lies; read-only."""

    def __init__(self, jobs_dir: str, name: str, node: str, limit: int) -> None:
        host = UntrustedFolder(host_jobs_dir(jobs_dir), LogsError)
        on_host = host.kind(f"{name}/state.json") is not None
        self._jobs = host if on_host else UntrustedFolder(jobs_dir, LogsError)
        self.path, self._name, self._node, self._limit = self._jobs.root / name, name, node, limit
        self._hide = hider({**ranks_environment(jobs_dir), **self._environment()})

    def _environment(self) -> dict[str, str]:
        """Variables of the job itself, as it was started."""
        try:
            spec = (self._jobs.read_json(f"{self._name}/spec.json") or {}).get("spec")
        except LogsError:
            return {}
        return check_environment(spec.get("environment")) if isinstance(spec, dict) else {}

    def _names(self) -> list[str]:
        found = []
        hangs = [f"hangs/{name}" for name in self._entries("hangs")][-MOST_HANGS:]
        for folder in ("", "ranks", *hangs):
            found += [f"{folder}/{name}".lstrip("/") for name in self._entries(folder)]
        return [name for name in found if WANTED.fullmatch(name)]

    def _entries(self, folder: str) -> list[str]:
        below = f"{self._name}/{folder}".rstrip("/")
        return list(self._jobs.entries(below)) if self._jobs.kind(below) == "a folder" else []

    def run(self) -> dict[str, Any]:
        """Which run the files are of."""
        try:
            found = self._jobs.read_json(f"{self._name}/state.json")
        except LogsError:
            return {}
        return {} if found is None else identity(found)

    def _read(self, name: str) -> Piece:
        opened = self._jobs.open(f"{self._name}/{name}")
        if opened is None:
            raise LogsError(f"{self._jobs.where(self._name)}/{name} is gone.")
        with opened:
            about = os.fstat(opened.fileno())
            if about.st_size <= self._limit:
                return Piece(name, about.st_mtime_ns, masked(name, opened.read(about.st_size), self._hide))
            opened.seek(about.st_size - self._limit)
            tail = opened.read(self._limit)
        where = str(self.path / name)
        kept = shorten(self._node, where, about.st_size, tail, lambda data: masked(name, data, self._hide))
        return Piece(name, about.st_mtime_ns, kept, True)

    def pieces(self, have: dict[str, list[int]], skip: set[str]) -> Iterator[Piece | str]:
        """Each file of which the controller does not have just this, or a text where one cannot be read."""
        for name in self._names():
            if name not in skip:
                try:
                    piece = self._read(name)
                except LogsError as error:
                    yield str(error)
                    continue
                # A mask may be longer than what it hides, and the controller takes no more than the limit.
                piece = replace(piece, data=piece.data[-self._limit - NOTE_BYTES :])
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
        """Which run the files here are of. A node has written them, and may have written anything."""
        try:
            found = parse_json((self.path / "state.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return identity(found) if isinstance(found, dict) else {}

    def _files(self) -> list[str]:
        paths = [*self.path.glob("*"), *self.path.glob("ranks/*"), *self.path.glob("hangs/*/*")]
        found = [path.relative_to(self.path).as_posix() for path in paths]
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
            with whole_file(path) as file:
                file.write(piece.data)
        os.utime(path, ns=(piece.mtime_ns, piece.mtime_ns))
        return not same

    @staticmethod
    def _make(folder: Path) -> None:
        """Folders made here are private; those that were there before stay as they are."""
        for part in [*reversed(folder.parents), folder]:
            if not part.is_dir():
                part.mkdir(mode=0o700, exist_ok=True)
