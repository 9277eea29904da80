# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The plan for a host's NVIDIA driver, for the role. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.driver import make_plan, plan_dict
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_driver.request import exclusion, parse_request
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.filters import one_line
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.drivers import offers


@one_line("swarmspeed.cluster.driver_plan", "what node_facts returned")
def driver_plan(facts: Any, request: Any) -> dict[str, Any]:
    """Return what is to be done for the driver of the host whose facts these are."""
    for name, value in (("facts", facts), ("request", request)):
        if not isinstance(value, Mapping):
            raise AnsibleFilterError(f"swarmspeed.cluster.driver_plan: {name} must be a mapping")
    asked = parse_request({"offers": offers(), **request})
    return plan_dict(make_plan(facts, asked), asked, facts)


def driver_request(hostvars: Any, defaults: Any) -> dict[str, Any]:
    """Return what is asked of one host: its own variables nvidia_driver_…, else the defaults; and what there is."""
    prefix = "nvidia_driver_"
    own = {name: hostvars[prefix + name] if prefix + name in hostvars else defaults[name] for name in defaults}
    return {**own, "offers": offers()}


@one_line("swarmspeed.cluster.driver_exclusion", "a list of packages")
def driver_exclusion(held: Iterable[str]) -> str:
    """Return apt's configuration that keeps unattended-upgrades from the driver."""
    return exclusion(sorted(str(name) for name in held))


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "driver_plan": driver_plan,
            "driver_request": driver_request,
            "driver_exclusion": driver_exclusion,
        }
