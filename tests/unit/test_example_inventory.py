# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The example inventory, copied to where a user keeps inventories: all that is checked before a connection passes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.playbook_run import ROOT, playbook

NO_CONNECTION = ("--ssh-common-args", "-o ProxyCommand=false")
"""What logs in fails at once, without a packet."""


@pytest.mark.parametrize(("name", "place"), [("plan", "a/b/c/d"), ("site", "mine")])
def test_wherever_it_is_copied_only_the_connection_is_missing(name: str, place: str, tmp_path: Path) -> None:
    copy = tmp_path / place
    shutil.copytree(ROOT / "inventories" / "example", copy)
    run = playbook(name, "--check", *NO_CONNECTION, inventory=copy)
    run.refused_by(("reachable", "gpu1"), ("reachable", "gpu2"))
