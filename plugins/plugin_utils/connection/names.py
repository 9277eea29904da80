# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which names a node's probe before a job did not find, as happens while the overlay's DNS still converges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _names(reply: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    part: Any = reply
    for key in ("probe", "answer", "names"):
        part = part.get(key) if isinstance(part, Mapping) else None
    return {str(node): found for node, found in part.items() if isinstance(found, dict)} if part else {}


def unresolved(reply: Mapping[str, Any]) -> list[str]:
    """Return the names of containers for which there is no address at all; a wrong one is another matter."""
    return [str(found.get("host")) for found in _names(reply).values() if not found.get("addresses")]


def late(reply: Mapping[str, Any], seconds: float) -> None:
    """Say in the reply for how long was waited, so that no one waits again before looking for the cause."""
    if seconds < 15:  # no more than the probe takes itself
        return
    for found in _names(reply).values():
        if not found.get("addresses"):
            found["error"] = f"{found.get('error')}, after {seconds:.0f} s"
