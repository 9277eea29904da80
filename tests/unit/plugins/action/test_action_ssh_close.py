# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Connections from before are closed only where they are ssh's and would not notice a dead host."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.plugins.action import ActionBase
from ansible_collections.swarmspeed.cluster.plugins.action.ssh_close import ActionModule


@pytest.mark.parametrize(
    ("transport", "ssh_args", "common", "closed"),
    [
        ("ssh", "-C -o ControlMaster=auto -o ControlPersist=60s", "", True),
        ("ssh", "-o ControlPersist=60s", "-o ServerAliveInterval=30", False),
        ("ssh", "-o ServerAliveInterval=5", None, False),
        ("local", "", "", False),
        ("community.docker.docker", "", "", False),
    ],
)
def test_which_connections_are_closed(
    monkeypatch: pytest.MonkeyPatch, transport: str, ssh_args: str, common: str | None, closed: bool
) -> None:
    monkeypatch.setattr(ActionBase, "run", lambda *_args: {})
    monkeypatch.setattr(ActionBase, "validate_argument_spec", lambda *_args, **_named: (None, {}))
    resets: list[str] = []
    options = {"ssh_args": ssh_args, "ssh_common_args": common}
    action = ActionModule.__new__(ActionModule)
    action._task = SimpleNamespace(args={}, check_mode=False)
    action._connection = SimpleNamespace(
        transport=transport, get_option=options.__getitem__, reset=lambda: resets.append(transport)
    )
    assert action.run() == {"changed": False, "closed": closed}
    assert bool(resets) is closed
