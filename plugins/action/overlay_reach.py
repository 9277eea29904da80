# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of overlay_reach: waits, with a message, while the overlay network converges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..module_utils.common.untrusted_text import on_one_line
from ..module_utils.fabric.reach_io import answer_about
from ..plugin_utils.connection.following import FollowingAction, say
from ..plugin_utils.core.problems import listing

MODULE = "swarmspeed.cluster.overlay_reach"
PAUSE = 2.0


class ActionModule(FollowingAction):
    """Where all is reached, as mostly, this is one round trip."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        patience, began, reported = float(args.get("patience") or 0), self._clock(), False
        while True:
            reply = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
            reached = reply.get("reached")
            if reply.get("failed") or not isinstance(reached, Mapping):
                return {**result, **reply}
            # What a node returns may be anything, and others read it as stages and errors.
            reached = {on_one_line(str(name)): answer_about(how) for name, how in reached.items()}
            reply = {**reply, "reached": reached}
            missing = [name for name, how in reached.items() if how["stage"] != "done"]
            if not missing or self._clock() - began >= patience:
                return {**result, **reply}
            if not reported:
                reported = True
                node = str((task_vars or {}).get("inventory_hostname", ""))
                say(
                    f"{node}: its container does not reach {listing(missing)} over the overlay network yet; "
                    f"waiting up to {patience:g} s, as the network may still converge."
                )
            self._sleep(PAUSE)
