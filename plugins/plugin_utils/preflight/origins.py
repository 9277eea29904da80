# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where a value was written: ansible-core keeps file and line of what it reads.

It has no public way to ask for that (2.19 to 2.22), and says that the record is for messages only. So this one file
reads it, and does without where a release keeps it elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:
    Origin = None


def origin(value: Any, place: tuple[Any, ...] = ()) -> str:
    """Return ``FILE:LINE`` of the part of a value that ``place`` leads to, or of the nearest part around it."""
    found = _of(value)
    for key in place:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            break
        found = _of(value) or found
    return found


def _of(value: Any) -> str:
    try:
        tag = Origin.get_tag(value)
        if not tag.path:
            return str(tag.description or "")
        path = Path(tag.path)
        here = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        return f"{here}:{tag.line_num}" if tag.line_num else str(here)
    except (AttributeError, OSError):
        return ""
