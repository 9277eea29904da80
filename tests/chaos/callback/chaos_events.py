# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes what a playbook does to the file $CHAOS_EVENTS: a JSON line each, at once, so that a kill loses none."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: chaos_events
type: notification
short_description: Record tasks, failures and the recap
description: For the chaos suite of this collection only.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core has no types
    """Tasks as they begin, changes and failures by host with their exact text, and the recap."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "chaos_events"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[tuple[str, str], list[str]] = {}

    def _write(self, event: str, **fields: Any) -> None:
        path = os.environ.get("CHAOS_EVENTS")
        if path:
            line = json.dumps({"event": event, "time": time.time(), **fields}, default=str)
            with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123  # appended line by line
                file.write(line + "\n")

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        del is_conditional
        self._write("task", task=task.get_name())

    def v2_runner_on_ok(self, result: Any) -> None:
        if result.result.get("changed"):
            self._write("changed", host=result.host.get_name(), task=result.task.get_name())

    def v2_runner_item_on_failed(self, result: Any) -> None:
        # Of a loop, the failed items say why: ansible-core 2.21 no longer lists them in the task's own result.
        key = (result.host.get_name(), str(result.task._uuid))
        self._items.setdefault(key, []).append(str(result.result.get("msg", "")))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        key = (result.host.get_name(), str(result.task._uuid))
        texts = self._items.pop(key, None) or [str(result.result.get("msg", ""))]
        self._write(
            "failed",
            host=result.host.get_name(),
            task=result.task.get_name(),
            texts=texts,
            ignored=bool(ignore_errors),
        )

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._write(
            "unreachable",
            host=result.host.get_name(),
            task=result.task.get_name(),
            texts=[str(result.result.get("msg", ""))],
            ignored=bool(result.task.ignore_unreachable),
        )

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._write("recap", hosts={host: stats.summarize(host) for host in sorted(stats.processed)})
