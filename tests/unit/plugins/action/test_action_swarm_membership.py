# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The controller side of swarm_membership, with a result in place of the module's."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.action.swarm_membership import ActionModule
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.node_action import PlainNodeAction

WORDS = (
    "Cannot leave the swarm: context deadline exceeded. Remedy: systemctl restart docker on this host, and run again."
)


@pytest.mark.parametrize(
    ("returned", "msg"),
    [
        ({"failed": True, "msg": WORDS}, f"lab3: {WORDS}"),
        # As node_action words it where the connection broke.
        ({"failed": True, "msg": "lab3: the module swarm_membership was cut off."}, None),
        ({"failed": True}, None),
        ({"failed": False, "msg": "left"}, None),
    ],
)
def test_a_failure_names_the_node(monkeypatch: pytest.MonkeyPatch, returned: dict[str, Any], msg: str | None) -> None:
    monkeypatch.setattr(PlainNodeAction, "run", lambda *dummy: dict(returned))
    result = object.__new__(ActionModule).run(task_vars={"inventory_hostname": "lab3"})
    assert result == ({**returned, "msg": msg} if msg else returned)
