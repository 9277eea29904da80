# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of swarm_membership: runs the module, and names the node in what it reports of a failure."""

from __future__ import annotations

from typing import Any

from ..plugin_utils.connection.node_action import PlainNodeAction


class ActionModule(PlainNodeAction):
    """The module knows its host as "this host"."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        node, words = str((task_vars or {}).get("inventory_hostname") or ""), str(result.get("msg") or "")
        if result.get("failed") and node and words and not words.startswith(f"{node}: "):
            result["msg"] = f"{node}: {words}"
        return result
