# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which subnet hosts share, what a subnet collides with, which is free. Documented in the .yml files beside this one.

Errors are raised ``from None``: Ansible would append the text of the cause, which is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.subnets import (
    SubnetError,
    collisions,
    pick_subnet,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.underlay import UnderlayError, common_underlay
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.filters import one_line


@one_line("swarmspeed.cluster.underlay", "what fabric_info returned by host")
def underlay(
    hosts: Mapping[str, Mapping[str, Any]],
    wanted: str | None = None,
    ssh: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the subnet that all hosts share; an empty ``wanted`` is as good as none."""
    _mapping("underlay", hosts)
    try:
        return asdict(common_underlay(hosts, wanted or None, ssh))
    except UnderlayError as error:
        raise AnsibleFilterError(str(error)) from None


def free_subnet(pool: str | Iterable[str], prefix: int | str = 24, taken: Any = ()) -> str:
    """Return the first free subnet of a pool."""
    try:
        length = int(prefix)
    except (TypeError, ValueError):
        raise AnsibleFilterError(f"free_subnet: prefix must be a number such as 24, not '{prefix}'.") from None
    try:
        return pick_subnet(pool, length, taken)
    except SubnetError as error:
        raise AnsibleFilterError(f"free_subnet: {error}") from None


@one_line("subnet_collisions", "subnets by what they are of")
def subnet_collisions(subnet: str, taken: Mapping[str, str]) -> list[dict[str, str]]:
    """Return what a subnet collides with."""
    _mapping("subnet_collisions", taken)
    try:
        return collisions(subnet, taken)
    except SubnetError as error:
        raise AnsibleFilterError(f"subnet_collisions: {error}") from None


def _mapping(name: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise AnsibleFilterError(f"{name}: expected a mapping, got {type(value).__name__}.")


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "underlay": underlay,
            "free_subnet": free_subnet,
            "subnet_collisions": subnet_collisions,
        }
