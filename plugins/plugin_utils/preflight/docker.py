# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What preflight can say of the engine and the container toolkit before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.toolkit import toolkit_plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.problems import Problem, mapping, refusals


def check_docker(hosts: Mapping[str, Mapping[str, Any]], refused: Mapping[str, Any]) -> Iterator[Problem]:
    """Every host's engine can be had, and run, as it is asked for.

    ``refused`` is what the plan refuses, by host: a daemon.json that is not JSON, keys that the engine refuses, that
    its unit sets too or that keep it out of a swarm, a version that it cannot get, and a package that is on hold.
    Whether apt has the packages is asked later, over the host's proxy.
    """
    yield from refusals(hosts, refused)


def check_toolkit(hosts: Mapping[str, Mapping[str, Any]], requests: Mapping[str, Any]) -> Iterator[Problem]:
    """Every host that is to compute on GPUs can get the container toolkit as it is asked for.

    ``requests`` is empty for a cluster that computes on CPUs.
    """
    yield from _problems(hosts, requests, toolkit_plan)


def _problems(
    hosts: Mapping[str, Mapping[str, Any]],
    requests: Mapping[str, Any],
    plan: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]],
) -> Iterator[Problem]:
    for host, facts in hosts.items():
        asked = mapping(requests.get(host))
        if not asked or not facts:
            continue
        for problem in plan(facts, asked)["problems"]:
            text, dummy, remedy = str(problem).rpartition(". Remedy: ")
            yield Problem(host, text, remedy)
