# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Engines that this run starts: what they hold (membership, networks, images, containers) is known once they run.

Roles after ``docker`` plan nothing for such a host at first, as a guess would announce, say, that a node that is listed
by the swarm's managers joins it. They are planned again once the engine runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.values import mapping

WHY = "what it holds is planned once it runs"


def is_stopped(docker: Mapping[str, Any]) -> bool:
    """Whether there is an engine that does not run, from what ``node_facts`` returned of it."""
    return bool(docker.get("installed")) and not docker.get("running")


def unseen(facts: Mapping[str, Any]) -> bool:
    """Whether the facts are those of a host whose engine ``docker`` starts first."""
    return mapping(facts.get("docker")).get("unseen") is True
