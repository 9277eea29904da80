# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A copy of the checkout in which modules are mutated: no working tree is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.documents import ROOT

_SHARED = (".venv",)
"""What git ignores and tests use: the copy has links to them."""


def copy(to: Path) -> None:
    """Copy what git knows, and what is new and not ignored, as it is now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, place = ROOT / name, to / name
        if not os.path.lexists(source):
            continue  # removed, and git does not know yet
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, place, follow_symlinks=False)
    for name in _SHARED:
        if (ROOT / name).exists() and not os.path.lexists(to / name):
            (to / name).symlink_to((ROOT / name).resolve())


class Mutated:
    """A module of the copy, with another source for a while. Its time of change is one that no other version has.

    Python takes a compiled module for current by size and time in whole seconds, and a mutant is made in less.
    """

    used = 0

    def __init__(self, path: Path, source: bytes) -> None:
        self.path, self.source = path, source

    def __enter__(self) -> None:
        self._before, self._status = self.path.read_bytes(), self.path.stat()
        Mutated.used += 1
        self._write(self.source, self._status.st_mtime + Mutated.used)

    def __exit__(self, *_what: object) -> None:
        self._write(self._before, self._status.st_mtime)

    def _write(self, data: bytes, time: float) -> None:
        self.path.write_bytes(data)
        os.utime(self.path, (time, time))
