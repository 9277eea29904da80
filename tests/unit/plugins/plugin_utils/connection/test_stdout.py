# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Standard output is for a program where the user chose a callback that writes JSON: lines for people go elsewhere."""

from __future__ import annotations

import pytest
from ansible import constants
from ansible_collections.swarmspeed.cluster.plugins.action import plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.following import say
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.connection.stdout import for_our_console


@pytest.mark.parametrize(
    ("callback", "program"),
    [
        ("json", True),
        ("ansible.posix.json", True),
        ("ansible.posix.jsonl", True),
        ("default", False),
        ("ansible.builtin.default", False),
        ("swarmspeed.cluster.console", False),
        ("community.general.yaml", False),
    ],
)
def test_where_lines_for_people_go(
    callback: str, program: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(constants, "DEFAULT_STDOUT_CALLBACK", callback)
    say("a line of a job")
    plan.show("the plan")
    printed = "a line of a job\n\nthe plan\n"
    assert tuple(capsys.readouterr()) == (("", printed) if program else (printed, ""))
    assert for_our_console() is (callback == "swarmspeed.cluster.console")
