# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who gives models and data sets to whom: pure, from what every node reported at the start of a transfer.

Each node reads from the one before it while that one is still receiving. One that has a file already offers it as well,
so a node always finds with the one before it what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.image_transfer.chain import against, source
from .manifest import size_text


def plan(
    gathered: Mapping[str, Mapping[str, Any]],
    order: Sequence[str],
    addresses: Mapping[str, str],
    ports: Mapping[str, int],
) -> dict[str, Any]:
    """Return what each node does, and in words what forbids it. The first in order gets files from the controller."""
    problems = [text for name in order for text in against(name, gathered[name], "models and data sets")]
    if problems:
        return {"problems": problems, "parts": {}}
    parts = {
        name: {
            "bytes": int(gathered[name]["lacking_bytes"]),
            "sources": [source(other, gathered, addresses, ports) for other in reversed(order[:place])],
            "readers": {reader: gathered[reader]["public_key"] for reader in order[place + 1 :]},
        }
        for place, name in enumerate(order)
    }
    return {"problems": [text for name in order for text in _room(name, gathered[name])], "parts": parts}


def _room(name: str, gathered: Mapping[str, Any]) -> list[str]:
    needed, free = max(0, gathered["lacking_bytes"] - gathered["spooled_bytes"]), gathered["free_bytes"]
    if needed <= free:
        return []
    return [
        f"{name}: {size_text(free)} are free in {gathered['root']}, and {size_text(needed)} are needed there. "
        "Remedy: make room, or set assets_path to a folder on a larger disk."
    ]
