# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who gives something to whom: pure, from what every node reported at the start of a transfer.

The nodes stand in a chain: each reads from the one before it while that one is still receiving, so that all have
everything in about the time of one transfer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def blocked(gathered: Mapping[str, Mapping[str, Any]], names: Iterable[str], what: str) -> list[str]:
    """Return why nodes take no part in a transfer of this: there is another one, or they report trouble."""
    problems = []
    for name in names:
        running = gathered[name].get("running") or {}
        if running:
            reported = {"since": "some time ago", "pid": "?", "host": name, "started_from": "?", **running}
            problems.append(
                f"{name}: another transfer of {what} has been running there since {reported['since']} (process "
                f"{reported['pid']} on {reported['host']}, started from {reported['started_from']}). Remedy: wait "
                f"until it ends, or stop it: kill {reported['pid']} on {name}."
            )
        elif gathered[name].get("trouble"):
            problems.append(f"{name}: {gathered[name]['trouble']}")
    return problems


def links(
    gathered: Mapping[str, Mapping[str, Any]],
    chain: Sequence[str],
    addresses: Mapping[str, str],
    ports: Mapping[str, int],
) -> dict[str, dict[str, Any]]:
    """Return from whom each node of a chain reads, the nearest first, and whom it lets read."""
    reached = [
        {
            "name": name,
            "address": addresses[name],
            "port": int(ports.get(name) or 22),
            "account": gathered[name]["account"],
            "host_key": gathered[name]["host_key"],
        }
        for name in chain[:-1]
    ]
    return {
        name: {
            "sources": reached[:place][::-1],
            "readers": {reader: gathered[reader]["public_key"] for reader in chain[place + 1 :]},
        }
        for place, name in enumerate(chain)
    }
