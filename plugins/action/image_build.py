# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Controller side of image_build: starts the build, follows its log and prints its steps."""

from __future__ import annotations

import sys
from typing import Any

from ..plugin_utils.connection.following import FollowingAction, say
from ..plugin_utils.training_image.progress import BuildLog, summary

MODULE = "swarmspeed.cluster.image_build"
POLL = 2.0
"""Seconds between two reads of the log."""
TAIL = 6000
"""Characters of the log that a failed build returns."""


class ActionModule(FollowingAction):
    """The build is detached, so a lost connection may come back."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        began = self._clock()
        args = dict(self._task.args)
        reply = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
        if reply.get("failed") or reply.get("unreachable") or self._task.check_mode or args.get("observe"):
            return {**result, **reply}
        rc, log, tail = self._follow(args, task_vars)
        result.update(
            changed=True,
            seconds=round(self._clock() - began, 1),
            steps=[{"title": step.title, "seconds": step.seconds} for step in log.steps],
            msg=summary(log.steps),
        )
        if rc:
            result.update(failed=True, msg=f"docker build ended with exit status {rc}.", reason=log.reason, log=tail)
        return result

    def _follow(self, args: dict[str, Any], task_vars: dict[str, Any] | None) -> tuple[int, BuildLog, str]:
        log, tail = BuildLog(), ""
        node = str((task_vars or {}).get("inventory_hostname", ""))
        request = {**args, "observe": True, "offset": 0}
        while True:
            reply = self._gather(request, task_vars)
            request["offset"] = reply["offset"]
            tail = (tail + reply["text"])[-TAIL:]
            lines = log.feed(reply["text"])
            if sys.stdout.isatty():
                for line in lines:
                    say(f"{node}: {line}")
            if not reply["running"] and reply["offset"] >= reply["size"]:
                return int(reply["rc"]), log, tail
            if reply["offset"] >= reply["size"]:
                self._sleep(POLL)

    def _gather(self, args: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        def ask() -> dict[str, Any]:
            reply: dict[str, Any] = self._execute_module(module_name=MODULE, module_args=args, task_vars=task_vars)
            return reply

        def lost(tries: int, problem: str) -> str:
            return (
                f"Lost contact with the build after {tries} more tries ({problem}). It continues in the background: "
                "run again to follow it."
            )

        return self._patiently(ask, "running", "The build", lost)
