# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The chain of models and data sets. Its first node gets files from the controller.

A node that has a file already offers it as well, so a node always finds with the one before it what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..assets.manifest import size_text
from .chain import blocked, links


def plan(
    gathered: Mapping[str, Mapping[str, Any]],
    order: Sequence[str],
    addresses: Mapping[str, str],
    ports: Mapping[str, int],
) -> dict[str, Any]:
    """Return what each node does, and in words what forbids it."""
    problems = blocked(gathered, order, "models and data sets")
    if problems:
        return {"problems": problems, "parts": {}}
    linked = links(gathered, order, addresses, ports)
    parts = {name: {"bytes": int(gathered[name]["lacking_bytes"]), **linked[name]} for name in order}
    return {"problems": [text for name in order for text in _room(name, gathered[name])], "parts": parts}


def _room(name: str, gathered: Mapping[str, Any]) -> list[str]:
    needed, free = max(0, gathered["lacking_bytes"] - gathered["spooled_bytes"]), gathered["free_bytes"]
    if needed <= free:
        return []
    return [
        f"{name}: {size_text(free)} are free in {gathered['root']}, but {size_text(needed)} are needed there. "
        "Remedy: free space there, or set assets_path to a folder on a larger disk."
    ]
