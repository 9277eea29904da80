# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Facts that ansible-core has mixed up are refused, and others are not."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.own_facts import check_own_facts


@pytest.mark.parametrize("facts", [None, "text", {}, {"host": "gpu1"}])
def test_what_is_of_its_own_host_or_of_none(facts: Any) -> None:
    check_own_facts("gpu1", facts)


def test_facts_of_another_host_are_refused() -> None:
    with pytest.raises(AnsibleActionFail) as failure:
        check_own_facts("gpu1", {"host": "gpu2"})
    assert failure.value.message == (
        "gpu1 has the facts of gpu2: ansible-core 2.21 gives all hosts one set of facts where a task with run_once came"
        " first (ansible/ansible#87148). Remedy: add the task ansible.builtin.meta: clear_facts after that task, or"
        " gather facts of all hosts before it"
    )
