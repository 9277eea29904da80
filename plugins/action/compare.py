# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Compares what node_facts found with what a role wants, without touching the node."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.comparison import describe, differences


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        dummy, arguments = self.validate_argument_spec(
            argument_spec={
                "found": {"type": "dict", "required": True},
                "wanted": {"type": "dict", "required": True},
                "problems": {"type": "list", "elements": "str", "default": []},
            }
        )
        if arguments["problems"]:
            host = (task_vars or {}).get("inventory_hostname", "")
            raise AnsibleActionFail(f"{host}: {' '.join(item.rstrip('.') + '.' for item in arguments['problems'])}")
        found = differences(arguments["found"], arguments["wanted"])
        # Outside check mode it is the tasks that follow which change something, and say so.
        result.update(changed=bool(found) and self._task.check_mode, differences=[asdict(item) for item in found])
        if found:
            result["diff"] = describe(found)
        return result
