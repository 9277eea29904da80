# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A second site.yml beside ``ansible -m setup`` of the same hosts: what a run costs that has nothing to do."""

from __future__ import annotations

import subprocess
import time

from tests.bench.registry import REGISTRY, Row
from tests.journey import INVENTORY, ROOT, environment, site

SETUP = ["ansible", "cluster", "-i", str(INVENTORY), "-m", "ansible.builtin.setup"]


@REGISTRY.add("site")
def second_site(rounds: int) -> list[Row]:
    """A site.yml that changes nothing, and one look by Ansible's own means."""
    again: list[float] = []
    setup: list[float] = []
    for dummy in range(rounds):
        began = time.monotonic()
        site().done(change=False)
        again.append(time.monotonic() - began)
        began = time.monotonic()
        subprocess.run(SETUP, cwd=ROOT, env=environment(), check=True, capture_output=True, timeout=300)
        setup.append(time.monotonic() - began)
    return [
        Row("site.yml, nothing to change", again, floor="ansible -m setup"),
        Row("ansible -m setup", setup),
    ]
