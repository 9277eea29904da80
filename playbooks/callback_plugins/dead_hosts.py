# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Names at the end of a run each host that was lost, that hung, or whose task was cut off: what the recap only counts.

Ansible loads it with the playbooks, as it lies beside them; nothing has to be enabled. Plays of a user's own have it
by ``ANSIBLE_CALLBACK_PLUGINS``.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.release import __version__
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.messages import sentence
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.stdout import aside, for_our_console

DOCUMENTATION = """
name: dead_hosts
type: notification
short_description: Name hosts that stopped responding
version_added: 0.1.0
description:
  - Prints one sentence at the end of a playbook for each host that could not be reached any more, on which a task did
    not end in its time, or whose module ended without a result. It has the host, the task, and what to do.
author:
  - The swarmspeed.cluster founders (@swarmspeed)
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # ansible-core has no types
    """The first such result of a host counts: later ones follow from it."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "dead_hosts"

    def __init__(self) -> None:
        super().__init__()
        # Older results have other names. The first play refuses such a release.
        self.disabled = tuple(map(int, __version__.split(".")[:2])) < (2, 19)
        self._sentences: dict[str, str] = {}

    def v2_runner_on_unreachable(self, result: Any) -> None:
        # With ignore_unreachable the playbook continues, and reports the host itself.
        if not result.task.ignore_unreachable:
            self._note(result, unreachable=True)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._note(result, unreachable=False)

    def _note(self, result: Any, unreachable: bool) -> None:
        node, task = result.host.get_name(), result.task.get_name()
        words = sentence(node, task, result.result, unreachable)
        if words and node not in self._sentences:
            self._sentences[node] = words

    def v2_playbook_on_stats(self, stats: Any) -> None:
        # Our own console has said it when it happened; with -v it prints what the default callback does.
        known = for_our_console() and not self._display.verbosity
        for words in self._sentences.values():
            self._display.display(words, color="red", log_only=known, **aside())
        self._sentences.clear()
