# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight can say of NVIDIA's driver: that it works, or can be installed, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.driver import make_plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import parse_request
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import Problem, mapping


def check_driver(hosts: Mapping[str, Mapping[str, Any]], requests: Mapping[str, Any]) -> Iterator[Problem]:
    """Every host that is to compute on GPUs has the driver that is asked for, or can get it.

    ``hosts`` are the facts by host, ``requests`` what is asked of each host's driver, and empty for a cluster that
    computes on CPUs. Whether apt has the packages is asked later, over the proxy that the role host sets.
    """
    for host, facts in hosts.items():
        asked = mapping(requests.get(host))
        gpu = mapping(facts.get("gpu"))
        if not asked or not gpu.get("present"):
            continue
        for refusal in make_plan(facts, parse_request(asked)).refusals:
            yield Problem(host, refusal.text, refusal.remedy)
