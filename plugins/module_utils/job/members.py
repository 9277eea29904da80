# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ranks run on which node: DeepSpeed and torchrun count them along the nodes, slot by slot.

Also part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def placed(members: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Members ({name, slots, …}, rank 0's node first), each with ``first_rank``, the lowest rank on it."""
    found: list[dict[str, Any]] = []
    first = 0
    for member in members:
        found.append({**member, "first_rank": first})
        first += len(member["slots"])
    return found


def ranks_by_node(members: Iterable[Mapping[str, Any]]) -> dict[str, range]:
    """The ranks of each node, by its name."""
    return {
        str(member["name"]): range(member["first_rank"], member["first_rank"] + len(member["slots"]))
        for member in placed(members)
    }


def world_size(members: Iterable[Mapping[str, Any]]) -> int:
    """Ranks of all nodes together."""
    return sum(len(member["slots"]) for member in members)
