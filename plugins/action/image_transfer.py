# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of image_transfer: on a terminal, prints how far a transfer is; waits for another one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..plugin_utils.connection.following import say
from ..plugin_utils.transfer.action import TransferAction
from ..plugin_utils.transfer.meter import Meter
from ..plugin_utils.validate.image import REPLIES

EVERY = 10
"""Seconds between two lines."""
PATIENCE = 50
"""Seconds that step wait takes by default, as in the module."""


class ActionModule(TransferAction):
    """All steps but queue and wait are the module's alone."""

    replies = REPLIES

    def _step(self, step: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if step != "wait" or not sys.stdout.isatty():
            return super()._step(step, arguments)
        until, meter = self._clock() + int(arguments.get("seconds") or PATIENCE), Meter()
        while True:
            left = max(1, int(until - self._clock()))
            reply = self._ask({**arguments, "seconds": min(EVERY, left)})
            if reply.get("failed") or reply.get("over", True) or self._clock() >= until:
                return reply
            found = reply.get("progress")
            line = meter.line(found, self._clock()) if isinstance(found, Mapping) else ""
            if line:
                say(f"{self._node()}: {line}")
