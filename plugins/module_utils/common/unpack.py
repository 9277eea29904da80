# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Unpacks a tar archive into a folder that a container can write, member by member and never through a link."""

from __future__ import annotations

import os.path
import tarfile
import zlib
from collections.abc import Iterator
from typing import Callable

from .untrusted_folder import UntrustedFolder
from .untrusted_text import on_one_line, printable

_DAMAGES = (tarfile.TarError, EOFError, OSError, zlib.error, ValueError)


class ArchiveError(Exception):
    """The archive is not one of plain files and folders. The text says which member, and what to do."""


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return f"a link to {printable(member.linkname, 200)}"
    return "a device, a pipe or a socket"


def _name(archive: str, member: tarfile.TarInfo) -> str:
    """The member's path below the folder, empty for the folder itself, or an error."""
    name = os.path.normpath(member.name)
    shown = f"{archive}: member {printable(member.name, 200)!r}"
    if member.name.startswith("/") or name.split("/", 1)[0] == ".." or "\0" in member.name:
        raise ArchiveError(
            f"{shown} would lie outside of the folder. Nothing was unpacked. Remedy: pack relative paths."
        )
    if not (member.isreg() or member.isdir()):
        raise ArchiveError(
            f"{shown} is {_kind(member)}. Nothing was unpacked. Remedy: make the archive of plain files and folders "
            "(tar --dereference --hard-dereference)."
        )
    return "" if name == "." else name


def _members(archive: str) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo, str]]:
    try:
        with tarfile.open(archive, "r:*") as opened:
            for member in opened:
                yield opened, member, _name(archive, member)
    except _DAMAGES as error:
        raise ArchiveError(f"{archive} cannot be read: {on_one_line(str(error))}. Remedy: send it again.") from error


def unpack(
    archive: str, folder: UntrustedFolder, give_way: Callable[[str], None] = lambda _name: None, below: str = ""
) -> list[str]:
    """Write all files of the archive; return their paths. What only the folder has stays.

    ``give_way`` is called with the path of each file, and of each folder with a slash behind it, before it is written.
    ``below``: a folder in ``folder``, which is not opened by its path, as a container could replace it by a link
    meanwhile.

    Every member is checked before the first is written. Of modes the permissions count: no file becomes setuid.
    """
    for dummy in _members(archive):
        pass
    written = []
    for opened, member, path in _members(archive):
        name = f"{below}/{path}" if path and below else path
        if member.isdir():
            if name:
                give_way(f"{name}/")
                folder.make_folder(name, 0o755)
            continue
        source = opened.extractfile(member)
        if source is None:  # not for a plain file
            continue
        parent = name.rpartition("/")[0]
        give_way(name)
        if parent:
            folder.make_folder(parent, 0o755)
        with source:
            folder.write(name, source, member.mode & 0o777, max(0.0, float(member.mtime)))
        written.append(name)
    return written
