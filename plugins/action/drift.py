# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Lists what each role would change on a host, without touching the host."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.owned_files import FILE_SPEC
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.document import asked_roles
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.comparison import OwnedFile, OwnedFileError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.verify.drift import RoleState, drift, selected

STATE_SPEC: dict[str, Any] = {
    "found": {"type": "dict", "default": {}},
    "wanted": {"type": "dict", "default": {}},
    "files": {"type": "list", "elements": "dict", "default": [], "options": FILE_SPEC},
}


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Runs on the controller only."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        dummy, arguments = self.validate_argument_spec(
            argument_spec={
                "roles": {
                    "type": "list",
                    "elements": "dict",
                    "required": True,
                    "options": {
                        "role": {"type": "str", "required": True},
                        "state": {"type": "dict", "default": {}},
                        "planned": {"type": "list", "elements": "str", "default": []},
                    },
                },
            }
        )
        tags = variables.get("ansible_run_tags") or ["all"]
        asked = asked_roles(tags, variables.get("ansible_skip_tags") or [])
        known = ((variables.get("ansible_facts") or {}).get("swarmspeed") or {}).get("files") or {}
        try:
            found = drift(
                [
                    _state(entry["role"], entry["state"], entry["planned"])
                    for entry in arguments["roles"]
                    if selected(entry["role"], asked, tags)
                ],
                known,
                str(variables.get("_preflight_digest_key") or ""),
            )
        except OwnedFileError as error:
            raise AnsibleActionFail(str(error)) from error
        host = str(variables.get("inventory_hostname", ""))
        result.update(
            changed=False,
            drift=[{"role": item.role, "what": list(item.what)} for item in found],
            msg="\n".join(item.sentence(host) for item in found),
        )
        return result


def _state(role: str, given: dict[str, Any], planned: list[str]) -> RoleState:
    """Read what a role compares; its files are described as for owned_files."""
    checked = ArgumentSpecValidator(STATE_SPEC).validate(given)
    if checked.error_messages:
        raise AnsibleActionFail(f"state of role {role}: {'; '.join(checked.error_messages)}")
    state = checked.validated_parameters
    return RoleState(role, state["found"], state["wanted"], [OwnedFile(**entry) for entry in state["files"]], planned)
