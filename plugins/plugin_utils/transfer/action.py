# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the actions of image_transfer and asset_transfer share: they wait for another transfer, and say for which."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from ...module_utils.common.reported import ReportedError
from ..connection.following import FollowingAction, say
from ..validate.transfer import Replies

QUEUE_LIMIT = 1800
"""Seconds that step queue waits by default: what a transfer may take at least before it gives up."""
QUERY = 30
"""Seconds of one query of the node."""


class TransferAction(FollowingAction):
    """Steps that need nothing of the controller, and queue: a transfer whose controller was killed goes on by itself.

    The next run waits for it rather than being refused.
    """

    replies: Replies

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._variables = task_vars or {}
        arguments = dict(self._task.args)
        return {**result, **self._step(str(arguments.get("step")), arguments)}

    def _step(self, step: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self._queue(arguments) if step == "queue" else self._ask(arguments)

    def _node(self) -> str:
        return str(self._variables.get("inventory_hostname", "this host"))

    def _ask(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the reply of the module on the node."""
        reported = self._execute_module(
            module_name=f"swarmspeed.cluster.{self.replies.module}", module_args=arguments, task_vars=self._variables
        )
        reported.pop("ansible_facts", None)
        try:
            return self.replies.reply(self._node(), reported)
        except ReportedError as error:
            raise AnsibleActionFail(str(error)) from None

    def _queue(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the reply that says that no transfer runs on the node, or which one still does at the end."""
        until, reported = self._clock() + int(arguments.get("seconds") or QUEUE_LIMIT), False
        while True:
            left = max(1, int(until - self._clock()))
            reply = self._ask({**arguments, "seconds": min(QUERY if reported else 1, left)})
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
