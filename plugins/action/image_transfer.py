# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of image_transfer: on a terminal, prints how far a transfer is; waits for another one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail

from ..module_utils.common.reported import ReportedError
from ..plugin_utils.connection.following import say
from ..plugin_utils.transfer.action import TransferAction
from ..plugin_utils.transfer.meter import Meter
from ..plugin_utils.validate import image

MODULE = "swarmspeed.cluster.image_transfer"
EVERY = 10
"""Seconds between two lines."""
PATIENCE = 50
"""Seconds that step wait takes by default, as in the module."""


class ActionModule(TransferAction):
    """All steps but queue and wait are the module's alone."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        if args.get("step") == "queue":
            return {**result, **self._queue(args, lambda given: self._ask(given, task_vars))}
        if args.get("step") != "wait" or not sys.stdout.isatty():
            return {**result, **self._ask(args, task_vars)}
        node = str((task_vars or {}).get("inventory_hostname", ""))
        until = self._clock() + int(args.get("seconds") or PATIENCE)
        meter = Meter()
        while True:
            left = max(1, int(until - self._clock()))
            short = {**args, "seconds": min(EVERY, left)}
            reply = self._ask(short, task_vars)
            if reply.get("failed") or reply.get("over", True) or self._clock() >= until:
                return {**result, **reply}
            found = reply.get("progress")
            line = meter.line(found, self._clock()) if isinstance(found, Mapping) else ""
            if line:
                say(f"{node}: {line}")

    def _ask(self, args: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        reported = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
        reported.pop("ansible_facts", None)
        try:
            return image.reply(str((task_vars or {}).get("inventory_hostname", "this host")), reported)
        except ReportedError as error:
            raise AnsibleActionFail(str(error)) from None
