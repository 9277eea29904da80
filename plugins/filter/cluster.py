# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Filters over directories, specs and hosts, for the roles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.hostfile import filters as hostfile_filters
from ..module_utils.hostfile.text import HostsError
from ..plugin_utils.cluster.trees import code_digest, tree_manifest


def _manifest(root: str, exclude: list[str] | None = None) -> dict[str, str]:
    if not Path(root).is_dir():
        raise AnsibleFilterError(f"swarmspeed.cluster.tree_manifest: {root} is not a directory on the controller")
    return tree_manifest(root, list(exclude or []))


def _launch_plan(hosts: Any, include: str | None = None, exclude: str | None = None) -> dict[str, Any]:
    try:
        plan = hostfile_filters.plan(hosts, include, exclude)
    except HostsError as error:
        raise AnsibleFilterError(f"swarmspeed.cluster.launch_plan: {error}") from error
    return {
        "hosts": [{"name": host.name, "slots": host.slots} for host in plan.hosts],
        "include": plan.include,
        "nodes": [host.name for host in plan.chosen],
        "members": [{"name": host.name, "slots": list(host.slots)} for host in plan.chosen],
        "world_size": plan.world_size,
    }


class FilterModule:
    """Names as they are used in playbooks."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters."""
        return {
            "tree_manifest": _manifest,
            "code_digest": code_digest,
            "launch_plan": _launch_plan,
        }
