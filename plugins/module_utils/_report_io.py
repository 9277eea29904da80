# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files of a report, on the controller."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

LONGEST = 64 << 20
"""Bytes of a measurement that are read: 64 nodes take some five million."""


def read_text(path: Path) -> str | None:
    """A file's text, None where there is no such file. One that is too long reads as cut short."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST).decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def write_whole(path: Path, text: str) -> None:
    """Write a file that others may read: whole, or as it was before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
