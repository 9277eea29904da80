# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An offline bundle on the controller's disk: read, measured, and written so that it can be taken up again."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any

from ...module_utils.common.digests import CHUNK, Hashed
from ...module_utils.common.reported import escaped
from ...module_utils.common.whole_file import whole_file
from ..core.problems import Problem, listing
from .checks import check_files, check_image, check_variables
from .folder import opened, strangers
from .manifest import AGAIN, MANIFEST, VARIABLE, BundleError, Entry, Manifest, parse
from .verified import Memory

_LONGEST_LIST = 256 << 20
FORMER = ".verified"
"""What earlier versions left in a bundle. It is never read."""
RECORD = ".json"
"""The name of a record is that of its file with this behind it."""


def digest(path: Path) -> tuple[int, str]:
    """Return size and SHA-256 of a regular file, not of one behind a link."""
    with opened(path.parent, path.name) as file:
        return _digest(file)


def _digest(file: IO[bytes]) -> tuple[int, str]:
    hashed = Hashed(file).read_all()
    return hashed.size, hashed.sha256


def measure(folder: Path, entries: Iterable[Entry]) -> dict[str, tuple[int, str] | str | None]:
    """Return size and digest of each file, why it cannot be read, or None where it is missing.

    One of another size is not read to its end: that shows it. One that was read before and has not been touched
    since (inode, times of writing and of change to the nanosecond) is not read again: an image has many gigabytes.
    """
    listed = list(entries)
    memory = Memory(folder, listed)
    found: dict[str, tuple[int, str] | str | None] = {}
    known, seen = memory.read(), {}
    for entry in listed:
        try:
            with opened(folder, entry.path) as file:
                status = os.fstat(file.fileno())
                mark = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]
                if status.st_size != entry.size:
                    found[entry.path] = (status.st_size, "")
                elif known.get(entry.path) == [*mark, entry.sha256]:
                    found[entry.path] = (entry.size, entry.sha256)
                    seen[entry.path] = [*mark, entry.sha256]
                else:
                    found[entry.path] = measured = _digest(file)
                    seen[entry.path] = [*mark, measured[1]]
        except FileNotFoundError:
            found[entry.path] = None
        except OSError as error:
            found[entry.path] = error.strerror or "unknown error"
    if seen != known:
        memory.write(seen)
    return found


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest; raises ``BundleError`` in words."""
    try:
        with opened(folder, MANIFEST) as file:
            return parse(file.read(_LONGEST_LIST).decode())
    except FileNotFoundError as error:
        raise BundleError(
            f"{folder} has no {MANIFEST}, which is written last: it is not a bundle, or not finished"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{folder / MANIFEST} cannot be read ({error})") from error
    except BundleError as error:
        raise BundleError(f"{folder / MANIFEST} is not a manifest: {error}") from error


def listed_text(folder: Path, name: str) -> str:
    """Return a text file of the bundle, of which the bytes that are returned have the digest in its manifest."""
    entry = next((entry for entry in read_manifest(folder).files if entry.path == name), None)
    if entry is None:
        raise BundleError(f"{name} is not in {MANIFEST}")
    with opened(folder, name) as file:
        data = file.read(entry.size + 1)
    if (len(data), hashlib.sha256(data).hexdigest()) != (entry.size, entry.sha256):
        raise BundleError(f"{name} has changed since it was verified")
    return data.decode()


def problems(folder: str, wanted: Mapping[str, Any], *, built: bool = False) -> Iterator[Problem]:
    """What forbids using a bundle, before any host is contacted: all digests are worked out.

    ``built``: its image is to be one that this collection's own Dockerfile builds.
    """
    path = Path(folder)
    if not path.is_dir():
        return  # reported by the check of files
    try:
        manifest = read_manifest(path)
    except BundleError as error:
        yield Problem(VARIABLE, str(error), AGAIN)
        return
    extra = strangers(path, {MANIFEST, FORMER, *(entry.path for entry in manifest.files)})
    if extra:
        yield Problem(
            VARIABLE,
            f"{path} holds what {MANIFEST} does not list: {listing(extra)}",
            f"remove it where it should not be there, or {AGAIN}",
        )
        return  # pip and apt would take what lies there
    yield from check_files(manifest, measure(path, manifest.files))
    yield from check_variables(manifest, wanted)
    if built:
        yield from check_image(manifest, folder)


def write_text(path: Path, text: str) -> Entry:
    """Write a text file whole or not at all; what is right already is left alone. Its kind is ``index``."""
    data = text.encode()
    entry = Entry(path.name, len(data), hashlib.sha256(data).hexdigest(), "index")
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError), opened(path.parent, path.name) as there:
        if there.read(len(data) + 1) == data:
            return entry
    with whole_file(path, 0o644, durable=True) as file:
        file.write(data)
    return entry


def take(source: IO[bytes], path: Path, expected: tuple[int, str]) -> None:
    """Write what ``source`` holds, and give it its name only where size and digest are as expected.

    No more is read than one piece beyond the expected size.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    hashed = Hashed(source)
    with whole_file(path, 0o644, durable=True) as file:
        while hashed.size <= expected[0] and (chunk := hashed.read(CHUNK)):
            file.write(chunk)
        if (hashed.size, hashed.sha256) != expected:
            raise BundleError(f"{path.name} did not arrive as it was sent ({hashed.size} of {expected[0]} bytes)")


def unpack(archive: Path, folder: Path, wanted: Mapping[str, tuple[int, str]]) -> list[str]:
    """Take the wanted files out of an archive into a folder; returns the names of those that were not in it."""
    missing = dict(wanted)
    try:
        # Not compressed: a few bytes of a compressed one could unpack to terabytes.
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                expected = missing.pop(member.name, None)
                content = tar.extractfile(member) if expected and member.isfile() else None
                if expected and content:
                    take(content, folder / member.name, expected)
    except (tarfile.TarError, EOFError, ValueError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"the archive of packages arrived incomplete ({escaped(str(error))})") from None
    return sorted(missing)


def pack(archive: IO[bytes], folder: Path, files: Mapping[str, tuple[int, str]], texts: Mapping[str, str]) -> None:
    """Write files of a folder, by size and digest, and texts into one archive, flat. Packages are compressed already.

    Raises ``BundleError`` where a file is not what it was when it was verified.
    """
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text in texts.items():
            info, data = tarfile.TarInfo(name), text.encode()
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
        for name, (size, sha256) in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = size, 0o644
            info.uname = info.gname = "root"
            with opened(folder, name) as file:
                hashed = Hashed(file)
                if os.fstat(file.fileno()).st_size == size:
                    info.mtime = int(os.fstat(file.fileno()).st_mtime)
                    tar.addfile(info, hashed)
            if hashed.sha256 != sha256:
                raise BundleError(f"{name} has changed since it was verified")


def whole(folder: Path, wanted: Mapping[str, tuple[int, str]]) -> set[str]:
    """Return the names of the wanted files that are there with the right size and digest."""
    found = set()
    for name, expected in wanted.items():
        path = folder / name
        with contextlib.suppress(OSError):
            if path.lstat().st_size == expected[0] and digest(path) == expected:
                found.add(name)
    return found


def prune(folder: Path, kept: Iterable[str]) -> list[str]:
    """Remove what an earlier run has left and the manifest does not name, in the folders that are ours alone."""
    names, removed = set(kept), []
    (folder / FORMER).unlink(missing_ok=True)
    for part in ("apt", "image", "wheels", "assets"):
        for path in sorted((folder / part).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if (path.is_symlink() or not path.is_dir()) and name not in names:
                path.unlink()
                removed.append(name)
    return removed


def wheel_entry(path: Path, name: str) -> Entry:
    """Return the entry of a wheel or a source archive; its licence is what its metadata says."""
    size, sha256 = digest(path)
    reported: dict[str, str] = {}
    with contextlib.suppress(zipfile.BadZipFile, OSError, UnicodeDecodeError), zipfile.ZipFile(path) as wheel:
        metadata = [
            entry for entry in wheel.namelist() if entry.endswith(".dist-info/METADATA") and entry.count("/") == 1
        ]
        if metadata:
            reported = dict(HeaderParser().parsestr(wheel.read(metadata[0]).decode("utf-8", "replace")).items())
    stem = path.name.removesuffix(".tar.gz").removesuffix(".zip").split("-")
    licence = (reported.get("License-Expression") or reported.get("License") or "").strip().splitlines()
    return Entry(
        name,
        size,
        sha256,
        "wheel",
        package=reported.get("Name") or stem[0],
        version=reported.get("Version") or (stem[1] if len(stem) > 1 else ""),
        source=reported.get("Name") or stem[0],
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
