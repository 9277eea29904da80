# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight can say of the engine before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import Problem, refusals


def check_docker(hosts: Mapping[str, Mapping[str, Any]], refused: Mapping[str, Any]) -> Iterator[Problem]:
    """Every host's engine can be had, and run, as it is requested.

    ``refused`` is what the plan refuses, by host: a daemon.json that is not JSON, keys that the engine refuses, that
    its unit sets too or that keep it out of a swarm, a version that it cannot get, and a package that is on hold.
    Whether apt has the packages is checked later, over the host's proxy.
    """
    yield from refusals(hosts, refused)
