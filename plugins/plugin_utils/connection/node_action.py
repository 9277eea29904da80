# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What all actions share that run a module on a node: an error in words where the module was cut off, and a limit."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.plugins.action.normal import ActionModule as NormalAction

from ...module_utils.common.reported import visible
from .messages import TRACEBACK, explained

_SHOWN = ("msg", "reason", "module_stdout", "module_stderr", "exception", "warnings", "deprecations")
"""What of a reply is shown to people, whichever module it is of."""


class NodeAction(ActionBase):  # type: ignore[misc]  # ansible-core has no types
    """Where a connection breaks between a module's start and its result, Ansible says that JSON could not be parsed."""

    def _execute_module(self, *given: Any, **named: Any) -> dict[str, Any]:
        module = named.get("module_name") or (given[0] if given else None) or self._task.action
        what = f"the module {str(module).rpartition('.')[2]}"
        try:
            reply: dict[str, Any] = super()._execute_module(*given, **named)
        except AnsibleConnectionFailure as error:
            if TRACEBACK not in str(error):
                raise
            # A host that shuts down has removed the module's files from its /tmp just before ssh ended.
            # Whoever reports this names the node: Ansible itself, or preflight.
            raise AnsibleConnectionFailure(f"the connection was closed while {what} ran there") from None
        if reply.get("failed") and "module_stdout" in reply:
            task_vars = named.get("task_vars") or {}
            node = str(task_vars.get("inventory_hostname", self._play_context.remote_addr))
            words = explained(node, what, reply)
            if words:
                reply["msg"] = words
                reply.pop("exception", None)
                if TRACEBACK in str(reply.get("module_stderr", "")):  # of Ansible's own loader
                    reply["module_stderr"] = ""
        return {**reply, **{name: _visible(reply[name]) for name in _SHOWN if name in reply}}


def _visible(value: Any) -> Any:
    """Texts with control characters spelt out: ansible-core writes them to the terminal as they are."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_visible(part) for part in value)
    if isinstance(value, dict):
        return {name: _visible(part) for name, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):  # the exception that ansible-core makes of msg
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **{name: _visible(part) for name, part in fields.items()})
    return value


class PlainNodeAction(NodeAction, NormalAction):  # type: ignore[misc]  # ansible-core has no types
    """For modules that need nothing of the controller but that."""


class _Late(BaseException):
    """Not an Exception: the ssh connection tries again after those."""


@contextlib.contextmanager
def at_most(seconds: float, late: str) -> Iterator[None]:
    """Raise ``AnsibleConnectionFailure`` with these words where something takes longer; 0 sets no limit.

    The task keyword timeout does this, too, but what it raises passes by failed_when and ignore_unreachable. A limit
    of the task holds again afterwards.
    """

    def expired(dummy_number: int, dummy_frame: FrameType | None) -> None:
        raise _Late

    if not seconds:
        yield
        return
    handler = signal.signal(signal.SIGALRM, expired)
    left, dummy = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _Late:
        raise AnsibleConnectionFailure(late) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, handler)
