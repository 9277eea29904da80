# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A .vsix, the zip in which an extension of VS Code comes: checked as a whole, then unpacked.

It is hostile until it is checked: no member may lie elsewhere or be a link, and what it can take of memory and disk is
bounded before it is read.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ..common.untrusted_folder import JSON_BYTES, kind_of
from ..common.untrusted_text import on_one_line, parse_json, printable

MOST_FILES = 50_000
"""Members, and folders that these need and that may be no members."""
MOST_BYTES = 2 << 30
"""What an extension may have unpacked. The largest known have a quarter of that."""
MOST_DIRECTORY = 16 << 20
"""Bytes of the zip's list of members, which is read whole."""
CONTENT, MANIFEST, PLATFORM = "extension/", "extension/package.json", "extension.vsixmanifest"
GENERIC = ("", "undefined", "universal")
"""Target platforms of an extension that runs on any."""
PLATFORMS = {"x86_64": "linux-x64", "aarch64": "linux-arm64", "armv7l": "linux-armhf"}
"""VS Code's names of what a kernel reports as its machine."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TARGET = re.compile(rb"""\sTargetPlatform\s*=\s*["']([a-z0-9-]{0,40})["']""")
_END, _LARGE = b"PK\x05\x06", b"PK\x06\x07"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# zipfile raises any of these at damaged files, and RuntimeError where it lacks a decompressor.
_DAMAGES = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, OverflowError, RuntimeError)


class VsixError(Exception):
    """The file is not an extension that can be unpacked. The text says which file, why, and what to do."""


@dataclass(frozen=True)
class Extension:
    """``files`` are its files by their path below the extension's folder, ``size`` is what they have together."""

    id: str
    version: str
    platform: str
    size: int
    files: Mapping[str, zipfile.ZipInfo] = field(repr=False, compare=False)

    @property
    def folder(self) -> str:
        """The folder's name, as VS Code has it."""
        return f"{self.id}-{self.version}{f'-{self.platform}' if self.platform else ''}"

    def entry(self, sha256: str) -> dict[str, Any]:
        """Return what is recorded of it; ``sha256`` is that of the file."""
        names = ("id", "version", "platform", "size")
        return {"sha256": sha256, **{name: getattr(self, name) for name in names}}


def read_extension(file: BinaryIO, where: str, machine: str) -> Extension:
    """Check the whole list of members, and return what the extension says of itself. Nothing is unpacked."""
    with _opened(file, where) as archive:
        found = _members(archive, where)
        platform = _platform(archive, found, where)
        here = PLATFORMS.get(machine, machine)
        if platform and platform != here:
            raise _refused(where, f"it is for {platform}, and this node is {here}", f"fetch the one for {here}")
        publisher, name, version = _identity(archive, found, where)
        files = {path[len(CONTENT) :]: one for path, one in found.items() if path.startswith(CONTENT)}
        size = sum(one.file_size for one in files.values())
        # VS Code compares ids whatever their case, and writes them in small letters.
        return Extension(f"{publisher}.{name}".lower(), version, platform, size, files)


def unpack_extension(file: BinaryIO, where: str, extension: Extension, target: Path) -> None:
    """Write the files of an extension that ``read_extension`` returned for the same file into an empty folder."""
    with _opened(file, where) as archive:
        for path, info in extension.files.items():
            _make_folder((target / path).parent, target)
            with archive.open(info) as source, os.fdopen(os.open(target / path, _NEW, 0o600), "wb") as written:
                # zipfile returns no more bytes than are declared, and fails where their checksum is another.
                piece = source.read(1 << 20)
                while piece:
                    written.write(piece)
                    piece = source.read(1 << 20)
                os.fchmod(written.fileno(), 0o755 if (info.external_attr >> 16) & 0o100 else 0o644)


@contextmanager
def _opened(file: BinaryIO, where: str) -> Iterator[zipfile.ZipFile]:
    _check_directory(file, where)
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except _DAMAGES as error:
        text = on_one_line(str(error)).rstrip(".") or type(error).__name__
        raise _refused(where, f"it cannot be read: {text}", "fetch it again") from error


def _check_directory(file: BinaryIO, where: str) -> None:
    """Refuse a list of members that is too large to be read, before zipfile reads it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - (1 << 16) - 42))
    tail = file.read()
    end = tail.rfind(_END)
    if end < 0 or len(tail) - end < 22:
        raise _refused(where, "it is not a zip", "name a .vsix, as the extension's publisher offers it")
    (length,) = struct.unpack("<I", tail[end + 12 : end + 16])
    # A zip of more than 4 GiB says so before its end, and has another length there.
    if length > MOST_DIRECTORY or tail[max(0, end - 20) : end].startswith(_LARGE):
        raise _refused(where, "its list of members is too long", _OTHER)


def _members(archive: zipfile.ZipFile, where: str) -> dict[str, zipfile.ZipInfo]:
    """Return the files in the archive by path; every member is one that may be written below a folder."""
    members = archive.infolist()
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise _refused(where, f"it has more than {MOST_BYTES >> 30} GiB unpacked", _OTHER)
    files: dict[str, zipfile.ZipInfo] = {}
    folders: set[str] = set()
    for member in members:
        # Python 3.11's own is_dir fails where a member has no name.
        is_folder = member.filename.endswith("/")
        path = member.filename[:-1] if is_folder else member.filename
        shown = f"member {printable(path, 200)!r}"
        if not _is_path(path):
            raise _refused(where, f"{shown} has no path below a folder", _OTHER)
        mode = member.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _refused(where, f"{shown} is {kind_of(mode)}", _OTHER)
        if member.flag_bits & 1 or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _refused(where, f"{shown} is encrypted, or compressed otherwise than VS Code can read", _OTHER)
        parts = path.split("/")
        above = {"/".join(parts[:count]) for count in range(1, len(parts))}
        if path in files or not files.keys().isdisjoint(above) or (path in folders and not is_folder):
            raise _refused(where, f"{shown} is there twice", _OTHER)
        folders |= above
        if len(members) + len(folders) > MOST_FILES:
            raise _refused(where, f"it has more than {MOST_FILES} files and folders", _OTHER)
        if not is_folder:
            files[path] = member
    return files


def _is_path(path: str) -> bool:
    parts = path.split("/")
    plain = path.isprintable() and "\\" not in path and len(path) <= 1000 and len(parts) <= 64
    return plain and all(part not in ("", ".", "..") and len(part.encode()) <= 255 for part in parts)


def _identity(archive: zipfile.ZipFile, files: Mapping[str, zipfile.ZipInfo], where: str) -> list[str]:
    try:
        found: Any = parse_json(_text(archive, files, MANIFEST, where).removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise _refused(where, f"{MANIFEST} in it is not JSON: {on_one_line(str(error))}", "fetch it again") from error
    values = []
    for name in ("publisher", "name", "version"):
        value = found.get(name) if isinstance(found, dict) else None
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise _refused(where, f"{name} in {MANIFEST} is not one word of letters, digits and ._-", _OTHER)
        values.append(value)
    return values


def _platform(archive: zipfile.ZipFile, files: Mapping[str, zipfile.ZipInfo], where: str) -> str:
    """Return the platform that the extension is for; empty where it runs on any."""
    if PLATFORM not in files:
        return ""
    # Not with a parser of XML, which entities can keep busy: one attribute of one element is needed.
    identity = _text(archive, files, PLATFORM, where).partition(b"<Identity")[2].partition(b">")[0]
    match = _TARGET.search(identity)
    platform = match[1].decode() if match else ""
    return "" if platform in GENERIC else platform


def _text(archive: zipfile.ZipFile, files: Mapping[str, zipfile.ZipInfo], path: str, where: str) -> bytes:
    if path not in files:
        raise _refused(where, f"there is no {path} in it", "name a .vsix of VS Code")
    if files[path].file_size > JSON_BYTES:
        raise _refused(where, f"{path} in it is larger than {JSON_BYTES >> 20} MiB", _OTHER)
    with archive.open(files[path]) as source:
        # Without a number zipfile would unpack all that is there, whatever is declared.
        return source.read(files[path].file_size)


def _make_folder(folder: Path, below: Path) -> None:
    """Make a folder and those above it, up to ``below``, readable by all whatever the umask is."""
    if not folder.is_dir():
        _make_folder(folder.parent, below)
        folder.mkdir()
        folder.chmod(0o755)


_OTHER = "do not use this file, and fetch the extension from its publisher"


def _refused(where: str, cause: str, remedy: str) -> VsixError:
    return VsixError(f"{where}: {cause}. Remedy: {remedy}.")
