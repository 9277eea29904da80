# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a plan compares, the role has node_facts look for: a package it does not know would be missing at every run."""

from __future__ import annotations

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.gathered import GATHERED
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.host import PACKAGES


def test_docker() -> None:
    assert set(GATHERED.packages) == set(PACKAGES)
