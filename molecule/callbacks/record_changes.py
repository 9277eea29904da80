# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes, for the tests, which host and role a playbook changed: a JSON line a result, to the file $RECORD_CHANGES."""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: record_changes
type: notification
short_description: Record which host and role were changed
description: For the tests of this collection only.
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core has no types
    """One line for each result of a task on a host of the cluster."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "record_changes"
    CALLBACK_NEEDS_ENABLED = True

    def v2_runner_on_ok(self, result: Any) -> None:
        path = os.environ.get("RECORD_CHANGES")
        role = result.task._role
        if not path or role is None:
            return
        line = {
            "host": result.host.get_name(),
            "role": role.get_name().rpartition(".")[2],
            "task": result.task.get_name(),
            "check": bool(result.task.check_mode),
            "changed": bool(result.result.get("changed")),
        }
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123  # appended by forks of the same run, line by line
            file.write(json.dumps(line) + "\n")
