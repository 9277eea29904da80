# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nvidia_driver needs of its plan before there is one, and of what only apt knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.nvidia_driver.planner import requested
from ..plugin_utils.nvidia_driver.request import exclusion
from ..plugin_utils.validate.filters import one_line


def driver_request(wishes: Any) -> dict[str, Any]:
    """Return what is requested of the driver of the host whose variables these are; and what there is."""
    if not isinstance(wishes, Mapping):
        raise AnsibleFilterError("swarmspeed.cluster.driver_request: expected the variables of a host as a mapping")
    return requested(wishes)


@one_line("swarmspeed.cluster.driver_exclusion", "a list of packages")
def driver_exclusion(held: Iterable[str]) -> str:
    """Return apt's configuration that keeps unattended-upgrades from the driver."""
    return exclusion(sorted(str(name) for name in held))


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"driver_request": driver_request, "driver_exclusion": driver_exclusion}
