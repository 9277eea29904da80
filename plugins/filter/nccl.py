# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What NCCL is told on a node. Documented in the .yml file beside this one.

Errors are raised ``from None``: Ansible would append the text of the cause, which is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env import ranges, settings
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.filters import one_line

WORDS = ("host", "network_mode", "interface", "subnet", "rdma", "settings")


@one_line("swarmspeed.cluster.nccl_plan", "what node_facts returned")
def nccl_plan(facts: Any, asked: Any) -> dict[str, Any]:
    """Return the settings of the host whose facts these are; ``release`` in ``asked`` is text, empty where unknown."""
    for value in (facts, asked):
        if not isinstance(value, Mapping):
            raise AnsibleFilterError(f"swarmspeed.cluster.nccl_plan: expected a mapping, got {type(value).__name__}")
    missing = [word for word in WORDS if word not in asked]
    if missing:
        raise AnsibleFilterError(f"swarmspeed.cluster.nccl_plan: {', '.join(missing)} is missing in what is asked")
    wanted = {
        **asked,
        "timeout": int(asked.get("timeout") or 0),
        "debug": asked.get("debug") or "",
        "release": ranges.parse_release(str(asked.get("release") or "")),
    }
    try:
        return settings.nccl_plan(wanted, facts.get("fabric") or {})
    except ranges.NcclError as error:
        raise AnsibleFilterError(str(error)) from None


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"nccl_plan": nccl_plan}
