# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of node_facts: asks what plans need, and adds the host's role_vars and the offset of its clock."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError

from ..module_utils.common.reported import ReportedError
from ..plugin_utils.connection.node_action import NodeAction
from ..plugin_utils.core.role_specs import RoleSpecError
from ..plugin_utils.core.variables import BESIDE, role_specs
from ..plugin_utils.plan.gathered import Gathered, requested
from ..plugin_utils.plan.variables import HostVariables, VariableError, rendered
from ..plugin_utils.registry.gathered import GATHERED
from ..plugin_utils.validate.node import node_facts

with contextlib.suppress(RoleSpecError):  # which the task reports
    role_specs()  # here Ansible's main process reads them once, and not each of its workers


class ActionModule(NodeAction):
    """Time the module from both sides, as SNTP does: the node's clock was read between ``before`` and ``after``."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        roles, run = self._roles(arguments.pop("plan", None)), arguments.pop("run", "")
        needed = [GATHERED[role] for role in roles]
        role_vars = self._variables(task_vars or {}) if roles else HostVariables({}, {})
        module_args = self._requested(arguments, needed, role_vars, task_vars or {})
        before = time.time()
        result.update(
            self._execute_module(
                module_name="swarmspeed.cluster.node_facts",
                module_args=module_args,
                task_vars=task_vars,
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
            # Nothing else from the host: a fact of another name would be a variable of it for every later task. The
            # interpreter is Ansible's finding: lost, the first task with run_once would give its host's to all hosts.
            key = self._discovered_interpreter_key
            result["ansible_facts"] = {"swarmspeed": facts, **({key: self._discovered_interpreter} if key else {})}
            # As with setup: hundreds of lines for -v, among them a ds_config.json with what may be secret in it.
            result["_ansible_verbose_override"] = True
            facts["clock"] = {
                "offset": round(facts["system"]["time"] - (before + after) / 2, 3),
                "uncertainty": round((after - before) / 2, 3),
            }
            facts["host"] = host
            if run:
                facts["run"] = str(run)
            if roles:
                result["role_vars"] = dict(role_vars)
                result["unrendered"] = role_vars.unrendered
                # Among the variables are proxies with passwords.
                result["_ansible_no_log"] = True
        return result

    def _roles(self, given: Any) -> list[str]:
        """Return the roles that are planned from what is gathered."""
        roles = list(GATHERED) if given == "all" else [str(role) for role in given or []]
        for role in roles:
            if role not in GATHERED:
                raise AnsibleActionFail(f"plan: the role {role} is not planned. Planned are: {', '.join(GATHERED)}.")
        return roles

    def _variables(self, variables: dict[str, Any]) -> HostVariables:
        """Render the roles' variables for this host, here, where its roles' defaults are known."""
        try:
            names = (*role_specs().options, *BESIDE)
        except RoleSpecError as error:
            raise AnsibleActionFail(str(error)) from error
        return rendered(names, variables, self._templar.template, (AnsibleError,))

    def _requested(
        self, arguments: dict[str, Any], needed: list[Gathered], role_vars: HostVariables, variables: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what node_facts is asked. What the variables name on the controller may not be there."""
        try:
            return requested(arguments, needed, role_vars)
        except VariableError as error:
            host = str(variables.get("inventory_hostname", "this host"))
            raise AnsibleActionFail(f"{host}: {error}. Remedy: correct this variable") from None
