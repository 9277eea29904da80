# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the result of a task says, as text for people: why it failed, or what ``debug`` shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.common.reported import visible
from ..connection.messages import TRACEBACK, explained, hung, was_cut

HIDDEN = "its output is hidden, as the task has no_log"
OUTPUT_LINES = 5
"""Lines of a command's output that are shown with its error."""
_AROUND = re.compile(r"^(Task failed: |Action failed: |Module failed: )+")
_EMPTY = re.compile(r"^(non-zero return code|MODULE FAILURE.*|One or more items failed|)$", re.DOTALL)


def failure(host: str, task: str, result: Mapping[str, Any]) -> str:
    """Return why a task failed on a host, with the last lines of the output where the message alone says nothing."""
    if "censored" in result:
        return HIDDEN
    if isinstance(result.get("timedout"), Mapping):
        return hung(host, task, result["timedout"].get("period"))
    if was_cut(result):
        return visible(explained(host, repr(task), result))
    text = _AROUND.sub("", as_text(result.get("msg")).strip())
    if not _EMPTY.match(text):
        return visible(text)
    status = f"exit status {result['rc']}" if "rc" in result else text or "it says nothing more"
    return visible("\n".join([status, *_last_lines(result)]))


def _last_lines(result: Mapping[str, Any]) -> list[str]:
    for name in ("module_stderr", "stderr", "module_stdout", "stdout"):
        lines = [line for line in as_text(result.get(name)).splitlines() if line.strip()]
        if lines:
            # Of a traceback the last line says what was wrong.
            return lines[-1:] if any(TRACEBACK in line for line in lines) else lines[-OUTPUT_LINES:]
    return []


def as_text(value: Any) -> str:
    """Return a message as text: a list has a line for each entry."""
    if isinstance(value, (list, tuple)):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def diff_for_people(diff: Any) -> Any:
    """Return a diff with control characters spelt out, as ``CallbackBase`` takes it."""
    if isinstance(diff, str):
        return visible(diff)
    if isinstance(diff, Mapping):
        return {key: diff_for_people(value) for key, value in diff.items()}
    return [diff_for_people(value) for value in diff] if isinstance(diff, (list, tuple)) else diff
