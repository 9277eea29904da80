# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files on the controller that only this account reads, as they name hosts and quote logs."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ...module_utils.common.whole_file import write_whole

LONGEST = 64 << 20
"""Bytes of a measurement that are read: 64 nodes take some five million."""


def read_text(path: Path) -> str | None:
    """A file's text, None where there is no such file. One that is too long reads as cut short."""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST).decode("utf-8", "replace")
    except FileNotFoundError:
        return None


def make_private(folder: Path) -> None:
    """Make a folder with those above it that are missing, for this account alone. Those that exist stay as they are."""
    for part in [*reversed(folder.parents), folder]:
        with contextlib.suppress(FileExistsError):
            part.mkdir(mode=0o700)


def write_private(path: Path, text: str) -> None:
    """Write a file for this account alone: whole, or as it was before; its folder is made."""
    make_private(path.parent)
    write_whole(path, text)
