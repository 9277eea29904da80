# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Empties a folder by its handle, whatever others do in it meanwhile: of any depth, and through no link."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets

ROUNDS = 10_000
"""How often the folder is listed again, so that one that is written meanwhile ends the attempt."""
AT_ONCE = 100_000
"""Names that are listed at a time."""


def empty_folder(top: int) -> bool:
    """Remove all that lies in the folder; say whether it is empty.

    Folders further down are moved up before they are emptied: any depth needs two handles and no recursion. (Python's
    ``shutil.rmtree`` ends with RecursionError at a depth of about a thousand.)
    """
    for _round in range(ROUNDS):
        found = _listed(top)
        if not found:
            return True
        for name, is_folder in found:
            with contextlib.suppress(FileNotFoundError):  # gone since
                if is_folder:
                    _dissolve(top, name)
                else:
                    os.unlink(name, dir_fd=top)
    return False


def _dissolve(top: int, name: str) -> None:
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        for deeper, is_folder in _listed(inner):
            if is_folder:
                os.rename(deeper, f".{secrets.token_hex(16)}", src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(deeper, dir_fd=inner)
    finally:
        os.close(inner)
    with contextlib.suppress(OSError):  # not all of it was listed: in the next round
        os.rmdir(name, dir_fd=top)


def _listed(handle: int) -> list[tuple[str, bool]]:
    with os.scandir(handle) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in itertools.islice(found, AT_ONCE)]
