# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An offline bundle on the controller's disk: read, measured, and written so that it can be taken up again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils._bundle import (
    AGAIN,
    MANIFEST,
    VARIABLE,
    BundleError,
    Entry,
    Manifest,
    parse,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils._preflight import Problem
from ansible_collections.swarmspeed.cluster.plugins.module_utils._preflight_bundle import check_files, check_variables

_CHUNK = 1 << 20
PART = ".part"
"""What a file is called until it is whole."""
SEEN = ".verified"
"""What this controller has read of a bundle, and what it was."""
RECORD = ".json"
"""The name of a record is that of its file with this behind it."""


def digest(path: Path) -> tuple[int, str]:
    """Return size and SHA-256 of a file."""
    worked, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            worked.update(chunk)
            size += len(chunk)
    return size, worked.hexdigest()


def measure(folder: Path, entries: Iterable[Entry]) -> dict[str, tuple[int, str] | str | None]:
    """Return size and digest of each file, why it cannot be read, or None where it is missing.

    One of another size is not read to its end: it is told by that. One that was read before and has not been touched
    since (inode, times of writing and of change to the nanosecond) is not read again: an image has many gigabytes.
    """
    found: dict[str, tuple[int, str] | str | None] = {}
    known, seen = _known(folder), {}
    for entry in entries:
        path = folder / entry.path
        try:
            status = path.stat()
            mark = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
            if status.st_size != entry.size:
                found[entry.path] = (status.st_size, "")
            elif known.get(entry.path) == [*mark, entry.sha256]:
                found[entry.path] = (entry.size, entry.sha256)
                seen[entry.path] = [*mark, entry.sha256]
            else:
                found[entry.path] = measured = digest(path)
                seen[entry.path] = [*mark, measured[1]]
        except FileNotFoundError:
            found[entry.path] = None
        except OSError as error:
            found[entry.path] = error.strerror or "unknown error"
    if seen != known:
        # Only a saving: where it cannot be written, all is read again.
        with contextlib.suppress(OSError):
            write_text(folder / SEEN, json.dumps(seen))
    return found


def _known(folder: Path) -> dict[str, Any]:
    try:
        known = json.loads((folder / SEEN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest; raises ``BundleError`` in words."""
    try:
        return parse((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BundleError(
            f"{folder} has no {MANIFEST}, which is written last: it is no bundle, or not finished"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{folder / MANIFEST} cannot be read ({error})") from error
    except BundleError as error:
        raise BundleError(f"{folder / MANIFEST} is no manifest: {error}") from error


def problems(folder: str, wanted: Mapping[str, Any]) -> Iterator[Problem]:
    """What speaks against using a bundle, before any host is contacted: all digests are worked out."""
    path = Path(folder)
    if not path.is_dir():
        return  # said by the check of files
    try:
        manifest = read_manifest(path)
    except BundleError as error:
        yield Problem(VARIABLE, str(error), AGAIN)
        return
    yield from check_files(manifest, measure(path, manifest.files))
    yield from check_variables(manifest, wanted)


def write_text(path: Path, text: str) -> Entry:
    """Write a text file whole or not at all; what is right already is left alone. Its kind is ``index``."""
    data = text.encode()
    entry = Entry(path.name, len(data), hashlib.sha256(data).hexdigest(), "index")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and path.read_bytes() == data:
        return entry
    part = path.with_name(path.name + PART)
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return entry


def take(source: IO[bytes], path: Path, expected: tuple[int, str]) -> None:
    """Write what ``source`` holds, and give it its name only where size and digest are as expected."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + PART)
    try:
        with part.open("wb") as file:
            shutil.copyfileobj(source, file, _CHUNK)
        found = digest(part)
        if found != expected:
            raise BundleError(f"{path.name} did not arrive as it was sent ({found[0]} of {expected[0]} bytes)")
        part.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()


def unpack(archive: Path, folder: Path, wanted: Mapping[str, tuple[int, str]]) -> list[str]:
    """Take the wanted files out of an archive into a folder; returns the names of those that were not in it."""
    missing = dict(wanted)
    with tarfile.open(archive) as tar:
        for member in tar:
            expected = missing.pop(member.name, None)
            content = tar.extractfile(member) if expected and member.isfile() else None
            if expected and content:
                take(content, folder / member.name, expected)
    return sorted(missing)


def pack(archive: IO[bytes], folder: Path, files: Iterable[str], texts: Mapping[str, str]) -> None:
    """Write files of a folder, and texts, into one archive, flat. Packages are compressed already."""
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text in texts.items():
            info, data = tarfile.TarInfo(name), text.encode()
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
        for name in files:
            info = tar.gettarinfo(str(folder / name), arcname=name)
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            info.mode = 0o644
            with (folder / name).open("rb") as file:
                tar.addfile(info, file)


def whole(folder: Path, wanted: Mapping[str, tuple[int, str]]) -> set[str]:
    """Return the names of the wanted files that are there with the right size and digest."""
    found = set()
    for name, expected in wanted.items():
        path = folder / name
        with contextlib.suppress(OSError):
            if path.stat().st_size == expected[0] and digest(path) == expected:
                found.add(name)
    return found


def prune(folder: Path, kept: Iterable[str]) -> list[str]:
    """Remove what an earlier run has left and the manifest does not name, in the folders that are ours alone."""
    names, removed = set(kept), []
    for part in ("apt", "image", "wheels"):
        for path in sorted((folder / part).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if (path.is_file() or path.is_symlink()) and name not in names:
                path.unlink()
                removed.append(name)
    return removed


def wheel_entry(path: Path, name: str) -> Entry:
    """Return the entry of a wheel or a source archive; its licence is what its metadata says."""
    size, sha256 = digest(path)
    said: dict[str, str] = {}
    with contextlib.suppress(zipfile.BadZipFile, OSError, UnicodeDecodeError), zipfile.ZipFile(path) as wheel:
        metadata = [
            entry for entry in wheel.namelist() if entry.endswith(".dist-info/METADATA") and entry.count("/") == 1
        ]
        if metadata:
            said = dict(HeaderParser().parsestr(wheel.read(metadata[0]).decode("utf-8", "replace")).items())
    stem = path.name.removesuffix(".tar.gz").removesuffix(".zip").split("-")
    licence = (said.get("License-Expression") or said.get("License") or "").strip().splitlines()
    return Entry(
        name,
        size,
        sha256,
        "wheel",
        package=said.get("Name") or stem[0],
        version=said.get("Version") or (stem[1] if len(stem) > 1 else ""),
        source=said.get("Name") or stem[0],
        licence=licence[0][:80] if licence and licence[0] != "UNKNOWN" else None,
    )


def copy_whole(source: Path, path: Path) -> tuple[int, str]:
    """Copy a file of the controller into the bundle where it is not there already; returns size and digest."""
    expected = digest(source)
    if not whole(path.parent, {path.name: expected}):
        with source.open("rb") as file:
            take(file, path, expected)
    return expected


def read_record(path: Path) -> dict[str, Any] | None:
    """Return what is recorded of a file that is there and whole, else None."""
    try:
        record = json.loads(path.with_name(path.name + RECORD).read_text(encoding="utf-8"))
        if isinstance(record, dict) and digest(path) == (record.pop("size", None), record.pop("sha256", None)):
            return record
    except (OSError, ValueError):
        return None
    return None


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Record beside a file what it is, with its size and digest."""
    size, sha256 = digest(path)
    text = json.dumps({**record, "size": size, "sha256": sha256}, sort_keys=True) + "\n"
    write_text(path.with_name(path.name + RECORD), text)
