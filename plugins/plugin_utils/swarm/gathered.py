# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role swarm needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plan.gathered import Gathered

ROLE = "swarm"

# What the engine says of its swarm is part of the facts anyway.


def record_folder(cluster: str) -> str:
    """Return the folder on each node in which no container can write."""
    return f"/var/lib/swarmspeed/{cluster}"


def record_path(cluster: str) -> str:
    return f"{record_folder(cluster)}/swarm.json"


def _files(role_vars: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    cluster = str(role_vars["cluster_name"])
    return {"files": [{"path": record_folder(cluster)}, {"path": record_path(cluster), "content": True}]}


GATHERED = Gathered(by_role_vars=_files)
