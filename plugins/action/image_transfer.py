# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of image_transfer: on a terminal, prints how far a transfer is while it is waited for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.following import FollowingAction, say
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.transfer import Meter

MODULE = "swarmspeed.cluster.image_transfer"
EVERY = 10
"""Seconds between two lines."""
PATIENCE = 50
"""Seconds that step wait takes where it is not told otherwise, as the module's default."""


class ActionModule(FollowingAction):
    """All steps but wait are the module's alone."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        if args.get("step") != "wait" or not sys.stdout.isatty():
            return {**result, **self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)}
        node = str((task_vars or {}).get("inventory_hostname", ""))
        until = self._clock() + int(args.get("seconds") or PATIENCE)
        meter = Meter()
        while True:
            left = max(1, int(until - self._clock()))
            short = {**args, "seconds": min(EVERY, left)}
            reply = self._execute_module(module_name=MODULE, module_args=short, task_vars=task_vars)
            if reply.get("failed") or reply.get("over", True) or self._clock() >= until:
                return {**result, **reply}
            found = reply.get("progress")
            line = meter.line(found, self._clock()) if isinstance(found, Mapping) else ""
            if line:
                say(f"{node}: {line}")
