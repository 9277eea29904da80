# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of node_facts: runs the module and adds the offset of the node's clock."""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import ReportedError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.node_action import NodeAction
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.node import node_facts


class ActionModule(NodeAction):
    """Time the module from both sides, as SNTP does: the node's clock was read between ``before`` and ``after``."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        before = time.time()
        result.update(
            self._execute_module(
                module_name="swarmspeed.cluster.node_facts", module_args=dict(self._task.args), task_vars=task_vars
            )
        )
        after = time.time()
        reported = result.pop("ansible_facts", None)
        if result.get("failed") or result.get("unreachable"):
            return result
        facts = reported.get("swarmspeed") if isinstance(reported, dict) else reported
        if facts:
            host = str((task_vars or {}).get("inventory_hostname", "this host"))
            try:
                facts = node_facts(host, facts)
            except ReportedError as error:
                raise AnsibleActionFail(str(error)) from None
            # Nothing else: a fact of another name would be a variable of this host for every later task.
            result["ansible_facts"] = {"swarmspeed": facts}
            # As with setup: hundreds of lines for -v, among them a ds_config.json with what may be secret in it.
            result["_ansible_verbose_override"] = True
            facts["clock"] = {
                "offset": round(facts["system"]["time"] - (before + after) / 2, 3),
                "uncertainty": round((after - before) / 2, 3),
            }
        return result
