# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Models and data sets on a node's disk: what is recorded of them, what is there, and putting new files in place.

Beside the folders of the assets lies one of this collection's own. It has a record of each asset: the digest of its
list of files, and of each file size, SHA-256 and time of change when it was verified. A file whose size and time are
still those counts as unchanged, so that a second run does not read terabytes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

from ...common.digests import Hashed
from ...common.reported import file_name, relative_path
from ...common.untrusted_folder import UntrustedFolder

OWN = ".swarmspeed"
"""Folder of this collection below the assets."""
INCOMING = f"{OWN}/incoming"
RECORD_BYTES = 256 << 20
"""Most bytes of a record: a million files have about 150 MiB."""

File = Sequence[Any]
"""Relative path, size and SHA-256."""


class AssetFolderError(OSError):
    """Something in the folder of the assets that this collection did not put there. The text says where and what."""


def opened(root: Path) -> UntrustedFolder:
    """Return the folder of the assets. What lies below it may have been put there by somebody else, links above all."""
    return UntrustedFolder(root, AssetFolderError)


def own_folder(root: Path) -> Path:
    return root / OWN


def incoming(root: Path) -> Path:
    """Return where what is received lies until it is whole: on the same disk, so that it moves without being copied."""
    return root / INCOMING


def prepare(root: Path) -> None:
    """Make the folders into which files are received."""
    if not root.is_dir():
        root.mkdir(parents=True)
        root.chmod(0o755)
    _make_folder(opened(root), OWN)
    if opened(root).kind(INCOMING) != "a folder":
        opened(root).make_folder(INCOMING, 0o700)


def record_path(root: Path, name: str) -> Path:
    return root / _record(name)


def _record(name: str) -> str:
    return f"{OWN}/{name}.json"


def read_record(root: Path, name: str) -> dict[str, Any]:
    """Return the record of an asset; empty where there is none that can be read, or that names files elsewhere."""
    try:
        found = json.loads(opened(root).read(_record(name), RECORD_BYTES) or b"")
        files = {
            relative_path(path): (int(size), str(sha256), int(time))
            for path, (size, sha256, time) in found["files"].items()
        }
        return {"digest": str(found["digest"]), "files": files}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return {}


def unchanged(folder: UntrustedFolder, name: str, size: int, time: int) -> bool:
    """Whether a regular file is as it was when it was verified, by size and time of change."""
    try:
        found = folder.status(name)
    except OSError:
        return False
    return found is not None and (stat.S_ISREG(found.st_mode), found.st_size, found.st_mtime_ns) == (True, size, time)


def changed_paths(root: Path, name: str, record: Mapping[str, Any]) -> list[str]:
    """Return which recorded files are missing, or were changed since."""
    folder, files = opened(root), record.get("files") or {}
    return [path for path, (size, dummy, time) in files.items() if not unchanged(folder, f"{name}/{path}", size, time)]


def file_digest(folder: UntrustedFolder, name: str, alive: Callable[[], Any]) -> str:
    """Return the SHA-256 of a file, empty where it is not a regular file."""
    try:
        file = folder.open(name)
    except OSError:
        return ""
    if file is None:
        return ""
    with file:
        return Hashed(file, alive).read_all().sha256


def lacking(root: Path, name: str, files: Iterable[File], alive: Callable[[], Any]) -> list[File]:
    """Return the files that are not there as listed. What is not known from the record is read, where the size fits."""
    folder, record = opened(root), read_record(root, name).get("files") or {}
    found: list[File] = []
    for path, size, sha256 in files:
        place, known = f"{name}/{path}", record.get(path)
        if known and known[:2] == (size, sha256) and unchanged(folder, place, size, known[2]):
            continue
        with contextlib.suppress(OSError):
            status = folder.status(place)
            if status and status.st_size == size and file_digest(folder, place, alive) == sha256:
                continue
        found.append((path, size, sha256))
    return found


def verify(root: Path, name: str, alive: Callable[[], Any] = lambda: None) -> list[str]:
    """Return which recorded files do not have their digest, all of them read."""
    folder, files = opened(root), read_record(root, name).get("files") or {}
    return [
        path for path, (dummy, sha256, time) in files.items() if file_digest(folder, f"{name}/{path}", alive) != sha256
    ]


def offer(root: Path, name: str, files: Iterable[File], spool: Path) -> None:
    """Show files that are in place to those that read the spool, under their digests."""
    folder = opened(root)
    for path, dummy, sha256 in files:
        if folder.kind(f"{name}/{path}") == "a plain file":
            with contextlib.suppress(FileExistsError):
                (spool / sha256).symlink_to(root / name / path)


def install(root: Path, name: str, manifest: Mapping[str, Any], missing: Sequence[File]) -> None:
    """Put an asset's missing files in place and record all of them. They are whole, where files are received.

    A new asset appears in one step. In one that is there each file is replaced in one step, and those that were
    recorded and are listed no longer are removed.
    """
    folder, former, staged = opened(root), read_record(root, name), f"{OWN}/{name}.new"
    is_new = folder.kind(name) is None
    if is_new:
        folder.remove(staged)
    place = staged if is_new else name
    _make_folder(folder, place)
    for path, dummy, sha256 in missing:
        _make_folder(folder, f"{place}/{path}".rpartition("/")[0])
        _put(folder, f"{place}/{path}", f"{INCOMING}/{sha256}")
    if is_new:
        folder.rename(staged, name)
    wanted = {path for path, dummy, dummy_digest in manifest["files"]}
    for path in former.get("files") or {}:
        if path not in wanted:
            _remove(folder, name, path)
    write_record(root, name, manifest)


def differs(root: Path, name: str, asset: Mapping[str, Any]) -> bool:
    """Whether putting an asset in place changes anything: a file, or what is recorded of one."""
    record = read_record(root, name)
    return bool(asset["missing"]) or record.get("digest") != asset["digest"] or bool(changed_paths(root, name, record))


def write_record(root: Path, name: str, manifest: Mapping[str, Any]) -> None:
    """Record an asset of which all files have been verified."""
    folder, files = opened(root), {}
    for path, size, sha256 in manifest["files"]:
        status = folder.status(f"{name}/{path}")
        if status is None:
            raise AssetFolderError(f"{folder.where(f'{name}/{path}')} is gone again")
        files[path] = [size, sha256, status.st_mtime_ns]
    text = json.dumps({"digest": manifest["digest"], "files": files}, sort_keys=True)
    folder.write(_record(name), text.encode(), 0o644)


def remove(root: Path, name: str) -> bool:
    """Remove an asset's recorded files and its record, and the folders that are empty then. Return whether any was."""
    folder = opened(root)
    for path in read_record(root, name).get("files") or {}:
        _remove(folder, name, path)
    folder.remove_if_empty(name)
    there = folder.kind(_record(name)) is not None
    folder.remove(_record(name))
    return there


def recorded_names(root: Path) -> list[str]:
    """Return the names of the assets that have a record. Others than this collection gives are none."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for name, kind in opened(root).entries(OWN).items():
            with contextlib.suppress(ValueError):
                if name.endswith(".json") and kind == "a plain file":
                    found.append(file_name(name[: -len(".json")]))
    return found


def remove_received(root: Path) -> None:
    """Remove what was received and is in no asset."""
    with contextlib.suppress(OSError):
        opened(root).remove(INCOMING)


def remove_empty(root: Path) -> None:
    """Remove this collection's folder below the assets, and that of the assets where nothing else is in it."""
    opened(root).remove(OWN)
    with contextlib.suppress(OSError):
        root.rmdir()


def _make_folder(folder: UntrustedFolder, name: str) -> None:
    """Make a folder and those above it, readable by all whatever the umask is. One that is there stays as it is."""
    if folder.kind(name) == "a folder":
        return
    parent = name.rpartition("/")[0]
    if parent:
        _make_folder(folder, parent)
    folder.make_folder(name, 0o755, exact=True)


def _put(folder: UntrustedFolder, name: str, source: str) -> None:
    file = folder.open(source)
    if file is None:
        raise AssetFolderError(f"{folder.where(source)} is gone")
    with file:
        os.fchmod(file.fileno(), 0o644)
        if folder.kind(name) == "a folder":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), folder.where(name))
        folder.link(name, file)


def _remove(folder: UntrustedFolder, name: str, path: str) -> None:
    """Remove a file, and the folders below the asset's that are empty then."""
    with contextlib.suppress(OSError):
        if folder.kind(f"{name}/{path}") not in (None, "a folder"):
            folder.remove(f"{name}/{path}")
    parent = path.rpartition("/")[0]
    while parent and folder.remove_if_empty(f"{name}/{parent}"):
        parent = parent.rpartition("/")[0]
