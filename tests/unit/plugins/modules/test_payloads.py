# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a module that is run again and again sends to a node, beside what Ansible itself sends with every module."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.payloads import ROOT


def test_following_a_job_sends_less_than_half_of_what_starting_it_does() -> None:
    # A process of its own: Ansible's loader of collections is made once, and other tests have made one.
    table = subprocess.run(
        [sys.executable, "-m", "tests.payloads"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    ours = {name: int(size) for name, size in re.findall(r"^\| `(\w+)` \| \d+ kB \| (\d+) kB \|$", table, re.M)}
    assert 0 < ours["training_job_follow"] < ours["training_job"] / 2, table
