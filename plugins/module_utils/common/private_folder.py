# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders for root only, below the cluster's own, which is for root only as well."""

from __future__ import annotations

from pathlib import Path


def make_private(folder: Path) -> None:
    """Create a folder with mode 0700, and the one above it, where that is missing, likewise.

    ``Path.mkdir`` gives parents the default mode, whatever mode is asked for.
    """
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
