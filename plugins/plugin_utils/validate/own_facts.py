# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Facts are those of their own host.

ansible-core 2.21 keeps one set of facts for all hosts where the first task that concerns facts had ``run_once``, such
as ``debug`` or ``set_fact``: then what is gathered last counts for every host
(https://github.com/ansible/ansible/issues/87148).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail


def check_own_facts(host: str, facts: Any) -> None:
    """Raise an error where a host has the facts of another. ``facts`` are those of ``node_facts``, if there are any."""
    other = facts.get("host", host) if isinstance(facts, Mapping) else host
    if other != host:
        raise AnsibleActionFail(
            f"{host} has the facts of {other}: ansible-core 2.21 gives all hosts one set of facts where a task with"
            " run_once came first (ansible/ansible#87148). Remedy: add the task ansible.builtin.meta: clear_facts"
            " after that task, or gather facts of all hosts before it"
        )
