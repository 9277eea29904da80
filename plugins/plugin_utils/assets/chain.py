# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who gives models and data sets to whom: pure, from what every node reported at the start of a transfer.

Each node reads from the one before it while that one is still receiving. One that has a file already offers it as well,
so a node always finds with the one before it what it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.assets.manifest import size_text


def plan(
    looks: Mapping[str, Mapping[str, Any]],
    order: Sequence[str],
    addresses: Mapping[str, str],
    ports: Mapping[str, int],
) -> dict[str, Any]:
    """Return what each node does, and in words what forbids it. The first in order gets files from the controller."""
    problems = [text for name in order for text in _against(name, looks[name])]
    if problems:
        return {"problems": problems, "parts": {}}
    parts = {
        name: {
            "bytes": int(looks[name]["lacking_bytes"]),
            "sources": [
                {
                    "name": source,
                    "address": addresses[source],
                    "port": int(ports.get(source) or 22),
                    "account": looks[source]["account"],
                    "host_key": looks[source]["host_key"],
                }
                for source in reversed(order[:place])
            ],
            "readers": {reader: looks[reader]["public_key"] for reader in order[place + 1 :]},
        }
        for place, name in enumerate(order)
    }
    return {"problems": [text for name in order for text in _room(name, looks[name])], "parts": parts}


def _against(name: str, look: Mapping[str, Any]) -> list[str]:
    running = look.get("running") or {}
    if running:
        said = {"since": "some time ago", "pid": "?", "host": name, "started_from": "?", **running}
        return [
            f"{name}: another transfer of models and data sets has run there since {said['since']} (process "
            f"{said['pid']} on {said['host']}, started from {said['started_from']}). Remedy: wait until it has ended, "
            f"which it does by itself also without its controller, or end it: kill {said['pid']} on {name}."
        ]
    if look.get("trouble"):
        return [f"{name}: {look['trouble']}"]
    return []


def _room(name: str, look: Mapping[str, Any]) -> list[str]:
    needed, free = max(0, look["lacking_bytes"] - look["spooled_bytes"]), look["free_bytes"]
    if needed <= free:
        return []
    return [
        f"{name}: {size_text(free)} are free in {look['root']}, and {size_text(needed)} are needed there. "
        "Remedy: make room, or set assets_path to a folder on a larger disk."
    ]
