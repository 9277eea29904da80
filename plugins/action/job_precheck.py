# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of job_precheck: waits, with a message, for names that the overlay's DNS is still to bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..plugin_utils.connection.following import FollowingAction, say
from ..plugin_utils.connection.names import late, unresolved
from ..plugin_utils.core.problems import listing

MODULE = "swarmspeed.cluster.job_precheck"
PAUSE = 2.0
"""Seconds between two probes; one that lacks names takes ten itself."""


class ActionModule(FollowingAction):
    """All else that keeps a job from starting does not change by waiting, and is returned with the last probe."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = dict(self._task.args)
        patience = float(args.get("names_timeout") or 0)
        began = self._clock()
        reply = first = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
        reported = False
        while missing := unresolved(reply):
            waited = self._clock() - began
            if waited >= patience:
                late(reply, waited)
                break
            if not reported:
                node, reported = str((task_vars or {}).get("inventory_hostname", "")), True
                say(
                    f"{node}: the overlay network's DNS does not know {listing(missing)} yet, as after a change of "
                    f"containers or a restart of an engine; waiting up to {patience:g} s."
                )
            self._sleep(PAUSE)
            reply = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
        if reply is not first and isinstance(first.get("removed_locks"), list) and not reply.get("failed"):
            # Removed by the first probe, which the later ones no longer see.
            removed = [*first["removed_locks"], *reply.get("removed_locks", [])]
            reply = {**reply, "removed_locks": removed, "changed": bool(first.get("changed") or reply.get("changed"))}
            if isinstance(first.get("diff"), Mapping) and first.get("changed"):
                reply["diff"] = first["diff"]
        return {**result, **reply}
