# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files and directories that a role owns: each is replaced in one step, and a secret is never readable by others."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_REMEDIES = {
    errno.ENOSPC: "free space on its disk",
    errno.EDQUOT: "raise the quota of its owner",
    errno.EROFS: "make its file system writable",
}


class OwnedFileError(Exception):
    """A file cannot be as it should; the text says which, why, and what to do."""


def apply(entry: Mapping[str, Any]) -> None:
    """Make a file or directory as ``entry`` says, with the options of the module ``managed_files``.

    Raises ``OwnedFileError``. A symbolic link at the path of a file is replaced, and not what it points to.
    """
    path, state, content = Path(entry["path"]), entry["state"], entry.get("content")
    mode, owner, group = int(str(entry["mode"]), 8), int(entry["owner"]), int(entry["group"])
    try:
        if state == "absent":
            _remove(path)
        elif content is None:
            _make_directory(path, mode, owner, group)
        else:
            _replace(path, str(content).encode(), mode, owner, group)
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "correct that on the host")
        what = "removed" if state == "absent" else "written"
        raise OwnedFileError(f"{path}: cannot be {what}: {error.strerror or error}. Remedy: {remedy}") from error


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _make_directory(path: Path, mode: int, owner: int, group: int) -> None:
    """Parents that are missing get the same mode and owner, as with the module ``file``."""
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700)
        _give(folder, mode, owner, group)
    if not missing:
        _give(path, mode, owner, group)


def _replace(path: Path, content: bytes, mode: int, owner: int, group: int) -> None:
    """Write to a new file in the same directory, which no one else can read until it has its mode and owner."""
    if path.is_dir() and not path.is_symlink():
        raise OwnedFileError(f"{path}: is a directory, where a file is wanted. Remedy: move it away")
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        _give(temporary, mode, owner, group)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _give(path: Path, mode: int, owner: int, group: int) -> None:
    """The owner first: changing it can clear bits of the mode."""
    found = path.stat()
    if (found.st_uid, found.st_gid) != (owner, group):
        os.chown(path, owner, group)
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)
