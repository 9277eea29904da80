# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which swarm is this cluster's, as each node keeps it where no container can write.

A worker does not know which swarm it is in; its managers do. Where these are lost, the id that the worker has in its
swarm, compared with the recorded one, shows that the dead swarm was this cluster's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..core.values import mapping
from ..plan.managed_file import ManagedFile
from .gathered import record_folder, record_path

_ID = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


def record_files(cluster: str, swarm_id: str, node_id: str) -> list[ManagedFile]:
    """Return the folder and the record, which root alone can read."""
    text = json.dumps({"node": node_id, "swarm": swarm_id}, sort_keys=True) + "\n"
    return [ManagedFile(record_folder(cluster), None, "0700"), ManagedFile(record_path(cluster), text, "0600")]


def was_ours(facts: Mapping[str, Any], cluster: str) -> bool:
    """Whether the swarm that a host is in is recorded there as this cluster's."""
    text = mapping(mapping(facts.get("files")).get(record_path(cluster))).get("content")
    try:
        found = json.loads(text) if isinstance(text, str) and len(text) < 1000 else None
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    node, swarm = found.get("node"), found.get("swarm")
    if not isinstance(node, str) or not isinstance(swarm, str) or not _ID.fullmatch(node):
        return False
    known = mapping(mapping(facts.get("docker")).get("swarm"))
    # A manager knows its swarm's id, too.
    same = known.get("cluster_id") in (None, "", swarm)
    return known.get("state") == "active" and known.get("node_id") == node and same
