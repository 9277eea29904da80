# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One cluster is of one architecture: its training image is built once, and each node gets the same one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import Problem


def check_architectures(systems: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """All hosts have processors of the same architecture. One that does not say which it has is let through."""
    by_name: dict[str, list[str]] = {}
    for host, system in systems.items():
        if isinstance(system.get("architecture"), str):
            by_name.setdefault(system["architecture"], []).append(host)
    if len(by_name) < 2:
        return
    most = max(by_name, key=lambda name: len(by_name[name]))
    for name, hosts in by_name.items():
        for host in hosts if name != most else ():
            yield Problem(
                host,
                f"has the architecture {name}, and {by_name[most][0]} has {most}: the training image is one for all "
                "nodes",
                f"deploy the hosts with {name} as a cluster of their own, with an inventory of its own",
            )
