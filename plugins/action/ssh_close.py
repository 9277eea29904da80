# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Closes the connections to a host that ssh keeps from before, where they would not notice that the host has died."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils.connection.keepalive import watched


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Contacts no host: only asks the master process here to accept no more."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self.validate_argument_spec(argument_spec={})
        result.update(changed=False, closed=False)
        if getattr(self._connection, "transport", "") != "ssh":
            return result
        # Who sets it for every command has it on the connections of earlier commands, too.
        of_all = [str(self._connection.get_option(name) or "") for name in ("ssh_args", "ssh_common_args")]
        if not watched(*of_all):
            self._connection.reset()
            result["closed"] = True
        return result
