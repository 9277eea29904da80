# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Models and data sets on a node's disk: what is recorded of them, what is there, and putting new files in place.

Beside the folders of the assets lies one of this collection's own. It has a record of each asset: the digest of its
list of files, and of each file size, SHA-256 and time of change when it was verified. A file whose size and time are
still those counts as unchanged, so that a second run does not read terabytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

OWN = ".swarmspeed"
"""Folder of this collection below the assets."""
BESIDE = ".swarmspeed-new"
"""Ends the name of a file that is about to take its place."""
CHUNK = 1 << 20

File = Sequence[Any]
"""Relative path, size and SHA-256."""


def own_folder(root: Path) -> Path:
    return root / OWN


def incoming(root: Path) -> Path:
    """Return where what is received lies until it is whole: on the same disk, so that it moves without being copied."""
    return own_folder(root) / "incoming"


def record_path(root: Path, name: str) -> Path:
    return own_folder(root) / f"{name}.json"


def read_record(root: Path, name: str) -> dict[str, Any]:
    """Return the record of an asset; empty where there is none that can be read."""
    try:
        found = json.loads(record_path(root, name).read_text(encoding="utf-8"))
        files = {
            str(path): (int(size), str(sha256), int(time)) for path, (size, sha256, time) in found["files"].items()
        }
        return {"digest": str(found["digest"]), "files": files}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def unchanged(path: Path, size: int, time: int) -> bool:
    """Whether a regular file is as it was when it was verified, by size and time of change."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == size and found.st_mtime_ns == time


def changed_paths(folder: Path, record: Mapping[str, Any]) -> list[str]:
    """Return which recorded files are missing, or were changed since."""
    files = record.get("files") or {}
    return [path for path, (size, dummy, time) in files.items() if not unchanged(folder / path, size, time)]


def file_digest(path: Path, alive: Callable[[], Any]) -> str:
    """Return the SHA-256 of a file, empty where it is no regular file."""
    worked = hashlib.sha256()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        while True:
            piece = file.read(CHUNK)
            if not piece:
                return worked.hexdigest()
            worked.update(piece)
            alive()


def lacking(root: Path, name: str, files: Iterable[File], alive: Callable[[], Any]) -> list[File]:
    """Return the files that are not there as listed. What is not known from the record is read, where the size fits."""
    record = read_record(root, name).get("files") or {}
    found: list[File] = []
    for path, size, sha256 in files:
        place = root / name / path
        known = record.get(path)
        if known and known[:2] == (size, sha256) and unchanged(place, size, known[2]):
            continue
        with contextlib.suppress(OSError):
            if place.lstat().st_size == size and file_digest(place, alive) == sha256:
                continue
        found.append((path, size, sha256))
    return found


def verify(root: Path, name: str, alive: Callable[[], Any] = lambda: None) -> list[str]:
    """Return which recorded files do not have their digest, all of them read."""
    files = read_record(root, name).get("files") or {}
    folder = root / name
    return [path for path, (dummy, sha256, time) in files.items() if file_digest(folder / path, alive) != sha256]


def offer(root: Path, name: str, files: Iterable[File], spool: Path) -> None:
    """Show files that are in place to those that read the spool, under their digests."""
    for path, dummy, sha256 in files:
        with contextlib.suppress(FileExistsError):
            (spool / sha256).symlink_to(root / name / path)


def install(root: Path, name: str, manifest: Mapping[str, Any], missing: Sequence[File], spool: Path) -> None:
    """Put an asset's missing files in place and record all of them. They are whole, in the spool.

    A new asset appears in one step. In one that is there each file is replaced in one step, and those that were
    recorded and are listed no longer are removed.
    """
    folder, former = root / name, read_record(root, name)
    for sha256 in {file[2] for file in missing}:
        (spool / sha256).chmod(0o644)
    if folder.exists():
        for path, dummy, sha256 in missing:
            _replace(folder, path, spool / sha256)
    else:
        staged = own_folder(root) / f"{name}.new"
        shutil.rmtree(staged, ignore_errors=True)
        _make_folder(staged)
        for path, dummy, sha256 in missing:
            _make_folder((staged / path).parent, staged)
            os.link(spool / sha256, staged / path)
        staged.rename(folder)
    wanted = {path for path, dummy, dummy_digest in manifest["files"]}
    for path in former.get("files") or {}:
        if path not in wanted:
            _remove(folder, path)
    write_record(root, name, manifest)


def differs(root: Path, name: str, asset: Mapping[str, Any]) -> bool:
    """Whether putting an asset in place changes anything: a file, or what is recorded of one."""
    record = read_record(root, name)
    return bool(asset["missing"]) or record.get("digest") != asset["digest"] or bool(changed_paths(root / name, record))


def write_record(root: Path, name: str, manifest: Mapping[str, Any]) -> None:
    """Record an asset of which all files have been verified."""
    files = {path: [size, sha256, (root / name / path).lstat().st_mtime_ns] for path, size, sha256 in manifest["files"]}
    path = record_path(root, name)
    beside = path.with_name(path.name + BESIDE)
    beside.write_text(json.dumps({"digest": manifest["digest"], "files": files}, sort_keys=True), encoding="utf-8")
    beside.chmod(0o644)
    beside.replace(path)


def remove(root: Path, name: str) -> bool:
    """Remove an asset's recorded files and its record, and the folders that are empty then. Return whether any was."""
    record = read_record(root, name)
    for path in record.get("files") or {}:
        _remove(root / name, path)
    with contextlib.suppress(OSError):
        (root / name).rmdir()
    there = record_path(root, name).exists()
    record_path(root, name).unlink(missing_ok=True)
    return there


def recorded_names(root: Path) -> list[str]:
    """Return the names of the assets that have a record."""
    with contextlib.suppress(OSError):
        return sorted(path.name[: -len(".json")] for path in own_folder(root).iterdir() if path.name.endswith(".json"))
    return []


def _make_folder(folder: Path, below: Path | None = None) -> None:
    """Make a folder and those above it, up to ``below``, readable by all whatever the umask is."""
    if folder.is_dir():
        return
    if below is not None and folder != below:
        _make_folder(folder.parent, below)
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)


def _replace(folder: Path, path: str, source: Path) -> None:
    place = folder / path
    _make_folder(place.parent, folder)
    beside = place.with_name(place.name[:200] + BESIDE)
    beside.unlink(missing_ok=True)
    os.link(source, beside)
    beside.replace(place)
    # rename() of two links of one file does nothing, and leaves both.
    beside.unlink(missing_ok=True)


def _remove(folder: Path, path: str) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        (folder / path).unlink()
    parent = (folder / path).parent
    while parent != folder and folder in parent.parents:
        try:
            parent.rmdir()
        except OSError:
            return
        parent = parent.parent
