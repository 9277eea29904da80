# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which files of a bundle this user has read on this controller, and what they were.

Never in the bundle itself: whoever supplies it could say that it was verified. Only a saving; where the memory cannot
be used, all is read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...module_utils.common.whole_file import write_whole
from .manifest import Entry

_MOST = 64 << 20


def place() -> Path:
    """Return the user's own folder for this, as the XDG Base Directory Specification has it."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named.startswith("/") else Path.home() / ".cache") / "swarmspeed" / "bundles"


class Memory:
    """Keyed by the bundle's path and all that its list says, so that another list starts from nothing."""

    def __init__(self, folder: Path, entries: Iterable[Entry]) -> None:
        listed = sorted((entry.path, entry.size, entry.sha256) for entry in entries)
        key = json.dumps([str(folder.resolve()), listed]).encode()
        self.path = place() / f"{hashlib.sha256(key).hexdigest()}.json"

    def read(self) -> dict[str, Any]:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, RuntimeError):
            return {}
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
            if not ours or status.st_size > _MOST or not _private(self.path.parent):
                return {}
            try:
                known = json.loads(file.read(_MOST))
            except (ValueError, RecursionError):
                return {}
        return known if isinstance(known, dict) else {}

    def write(self, seen: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _private(self.path.parent):
                return
            write_whole(self.path, json.dumps(seen))


def _private(folder: Path) -> bool:
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
