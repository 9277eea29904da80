# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Engines that a run needs and does not start, as its tags leave the role ``docker`` out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.problems import Problem
from .gathered import ROLE
from .host import Host

NEEDING = ("swarm", "overlay_network", "training_image", "training_container", "deepspeed_launch")
"""Roles that use the engine; the others write files that are read when it starts."""


def missing_engines(
    facts: Mapping[str, Mapping[str, Any]],
    role_vars: Mapping[str, Mapping[str, Any]],
    planned: Sequence[str],
    selected: Sequence[str],
) -> Iterator[Problem]:
    """Yield a refusal for each host without a running engine.

    ``planned`` are the roles that the playbook has, ``selected`` those of them that the tags of the run name. Where
    ``docker`` is among the selected it starts the engine; where the playbook does not have it, the role that needs the
    engine says itself that it does not run.
    """
    needing = [role for role in selected if role in NEEDING]
    if not needing or ROLE in selected or ROLE not in planned:
        return
    tags = f"site.yml --tags {','.join((ROLE, *(role for role in selected if role in planned)))}"
    for host, found in facts.items():
        if role_vars[host]["deepspeed_launch_runtime"] == "host":
            continue
        here = Host(found)
        if not here.running:
            lacks, starts = ("running", "starts it") if here.installed else ("installed", "installs it")
            text = f"role {needing[0]} needs the Docker engine, which is not {lacks}"
            yield Problem(host, text, f"{tags}, which {starts}", role=ROLE)
        elif here.stale_swarm_ports and "swarm" in needing:
            text = "role swarm needs ports that the Docker engine still holds of a swarm that it has left"
            yield Problem(host, text, f"{tags}, which restarts it", role=ROLE)
