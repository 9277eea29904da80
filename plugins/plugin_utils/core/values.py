# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Values of data whose form is not known: what is of another form counts as empty."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.common.secret_names import mask_text


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


def sealed(value: Any) -> Any:
    """A document of whose texts none shows a secret."""
    if isinstance(value, Mapping):
        return {key: sealed(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [sealed(inner) for inner in value]
    return mask_text(value) if isinstance(value, str) else value


def plain(value: Any) -> Any:
    """A copy of what Ansible handed over as plain dicts, lists and texts, which templates and JSON take."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)


def fingerprint(value: Any) -> str:
    """Return a short stable hash of any JSON-able value: 16 hexadecimal digits of the SHA-256 of its canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
