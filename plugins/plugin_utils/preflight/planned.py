# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the plan stops at, before anything is changed: refusals, and consents that are not given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.problems import Problem
from ..core.values import mapping, mappings

REFUSED = {
    "nccl_settings": "nccl_env",
    "host": "host",
    "docker": "docker",
    "nvidia_container_toolkit": "nvidia_container_toolkit",
    "nvidia_driver": "nvidia_driver",
    "training_container": "training_container",
    "ssh_trust": "ssh_trust",
    "workspace": "workspace",
    "assets": "assets",
    "deepspeed_launch": "deepspeed_launch",
}
"""By check, the role whose refusals it lists. What other roles refuse has checks of its own, by the same functions."""
_OWN_CHECKS = ("swarm_allow_leave_foreign", "overlay_network_allow_recreate")
"""Consents for which the checks foreign_swarm and overlay_network ask."""


def check_refused(check: str, hosts: Iterable[str], refused: Mapping[str, Any]) -> Iterator[Problem]:
    """The plan refuses nothing of this check's role, such as an engine that cannot be had as it is requested."""
    of_role = mapping(refused.get(REFUSED[check]))
    for host in hosts:
        for entry in mappings(of_role.get(host)):
            yield Problem(host, str(entry["text"]), str(entry["remedy"]))


def check_consents(hosts: Iterable[str], consents: Mapping[str, Any]) -> Iterator[Problem]:
    """Every consent is given that the planned changes need."""
    for host in hosts:
        for variable, of_hosts in consents.items():
            for entry in mappings(mapping(of_hosts).get(host)) if variable not in _OWN_CHECKS else ():
                yield Problem(host, str(entry["text"]), str(entry["remedy"]))
