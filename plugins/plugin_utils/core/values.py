# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Values of data whose form is not known: what is of another form counts as empty."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def texts(value: Any) -> list[str]:
    """Return the items of a list as text; anything else is an empty list."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the items of a list as mappings, empty where they are none; anything else is an empty list."""
    return [mapping(item) for item in value] if isinstance(value, (list, tuple)) else []


def whole(value: Any) -> int | None:
    """Return a whole number >= 0, also where an INI inventory or the command line gave it as text, else None."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def number(value: Any) -> float | None:
    """Return a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:  # an int beyond the range of floats
        return None
    return found if math.isfinite(found) else None
