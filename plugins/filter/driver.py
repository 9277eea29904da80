# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nvidia_driver needs of what only apt knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..plugin_utils.nvidia_driver.request import exclusion
from ..plugin_utils.validate.filters import one_line


@one_line("swarmspeed.cluster.driver_exclusion", "a list of packages")
def driver_exclusion(held: Iterable[str]) -> str:
    """Return apt's configuration that keeps unattended-upgrades from the driver."""
    return exclusion(sorted(str(name) for name in held))


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"driver_exclusion": driver_exclusion}
