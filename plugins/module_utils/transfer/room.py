# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The room for what is to come to a folder, which need not be there yet."""

from __future__ import annotations

import os
from pathlib import Path


def nearest(path: Path) -> Path:
    """Return the path, or the nearest one above it that is there."""
    while not path.exists():
        path = path.parent
    return path


def free_bytes(path: Path) -> int:
    found = os.statvfs(nearest(path))
    return found.f_bavail * found.f_frsize
