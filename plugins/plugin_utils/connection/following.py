# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What actions share that follow something on a host: lines on the console, and patience with a connection."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.utils.display import Display

from ...module_utils.common.reported import visible
from .node_action import NodeAction, at_most
from .stdout import aside

RETRIES = 5
"""How often in a row a query may fail. The waits of 2, 4, 6, 8 and 10 s bridge a restart of sshd or of the engine."""

GIVE_UP = 35.0
"""Seconds after which no further try begins. A host that has died takes 20 s to notice, and its next connection
``timeout`` seconds (Ansible's is 10) to fail: so a playbook ends within a minute.
"""
ASK_LIMIT = 120.0
"""Seconds for one look, which takes one or two: for a host that answers pings and hangs."""

display = Display()


def say(words: str) -> None:
    """Print a line without control codes, and put a Ctrl-C off until it is printed.

    A signal ends Ansible's worker at once: in the middle of a line the lock of its queue stays taken, and
    ansible-playbook waits for it for ever.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        display.display(visible(words), **aside())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class FollowingAction(NodeAction):
    """What it follows is detached, so a lost connection may come back."""

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def _clock(self) -> float:
        return time.monotonic()

    def _patiently(
        self, ask: Callable[[], dict[str, Any]], key: str, title: str, lost: Callable[[int, str], str]
    ) -> dict[str, Any]:
        """Return a reply that has ``key``, queried again when the connection or the host does not answer.

        Raises ``AnsibleConnectionFailure`` with what ``lost`` makes of the number of tries and the last problem.
        """
        problem, began, tries = "", self._clock(), 0
        for attempt in range(RETRIES + 1):
            if attempt:
                if self._clock() - began + 2.0 * attempt > GIVE_UP:
                    break
                say(f"{title}: no answer ({problem}); trying again in {2 * attempt} s.")
                self._sleep(2.0 * attempt)
                tries = attempt
            try:
                with at_most(ASK_LIMIT, f"no answer within {ASK_LIMIT:g} s"):
                    reply = ask()
            except AnsibleConnectionFailure as error:
                problem = str(error)
                with contextlib.suppress(Exception):  # a dead ssh master would answer for the next try, too
                    self._connection.reset()
                continue
            if key in reply and not reply.get("failed"):
                return reply
            problem = str(reply.get("msg", "the module gave no answer"))
        raise AnsibleConnectionFailure(lost(tries, problem))
