# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the actions of image_transfer and asset_transfer share: they wait for another transfer, and say for which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..connection.following import FollowingAction, say

QUEUE_LIMIT = 1800
"""Seconds that step queue waits by default: what a transfer may take at least before it gives up."""
QUERY = 30
"""Seconds of one query of the node."""


class TransferAction(FollowingAction):
    """A transfer whose controller was killed goes on by itself. The next run waits for it rather than being refused."""

    def _queue(self, arguments: Mapping[str, Any], ask: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Return the reply that says that no transfer runs on the node, or which one still does at the end."""
        until, reported = self._clock() + int(arguments.get("seconds") or QUEUE_LIMIT), False
        while True:
            left = max(1, int(until - self._clock()))
            reply = ask({**arguments, "seconds": min(QUERY if reported else 1, left)})
            other = reply.get("running")
            if reply.get("failed") or not other or self._clock() >= until:
                return reply
            if not reported:
                reported = True
                node, pid, minutes = arguments.get("node"), other.get("pid"), -(-left // 60)
                say(
                    f"{node}: waiting up to {minutes} min for another transfer to end, which has been running there "
                    f"since {other.get('since', 'some time ago')} (process {pid}, started from "
                    f"{other.get('started_from', '?')}). To stop it: kill {pid} on {node}."
                )
