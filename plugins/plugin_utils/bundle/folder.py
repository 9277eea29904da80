# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The folder of a bundle, which somebody else may have made: no link is followed in it, no pipe is waited for."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from ...module_utils.common.reported import escaped
from .manifest import BundleError

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


@contextmanager
def opened(folder: Path, name: str) -> Iterator[BinaryIO]:
    """Open a regular file below the folder. Raises ``OSError``, also for a link and on the way through one."""
    parts = PurePosixPath(name).parts
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
        number = os.open(parts[-1], _READ, dir_fd=handle)
    finally:
        os.close(handle)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(None, "it is not a regular file", name)
        yield file


def own_folder(bundle: Path, *parts: str) -> Path:
    """Make a folder of the bundle and return it; one that is a link would lead what is written there elsewhere."""
    bundle.mkdir(parents=True, exist_ok=True)
    path = bundle
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise BundleError(f"{path} is a link, which is not followed. Remedy: remove it")
        path.mkdir(exist_ok=True)
    return path


def strangers(folder: Path, listed: Collection[str]) -> list[str]:
    """Return in words what lies in a bundle and may not: files that no list names, links, pipes, devices."""
    found: list[str] = []
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
        except OSError as error:
            found.append(f"{escaped(below or '.')} cannot be read ({error.strerror})")
            continue
        for entry in entries:
            name = f"{below}/{entry.name}".lstrip("/")
            if entry.is_symlink():
                found.append(f"{escaped(name)} is a link")
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(name)
            elif not entry.is_file(follow_symlinks=False):
                found.append(f"{escaped(name)} is not a regular file")
            elif name not in listed:
                found.append(f"{escaped(name)} is not in its list")
    return sorted(found)
