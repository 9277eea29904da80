# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which nodes cut the overlay network. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..plugin_utils.overlay_network.faults import verdict


def overlay_faults(reached: Any, facts: Any, containers: Any, managers: Any) -> dict[str, Any]:
    """Return what is cut, and what to do."""
    for name, given in (("reached", reached), ("facts", facts), ("containers", containers)):
        if not isinstance(given, Mapping):
            raise AnsibleFilterError(
                f"swarmspeed.cluster.overlay_faults: {name}: expected a mapping by node, got {type(given).__name__}"
            )
    return verdict(reached, facts, containers, list(managers))


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"overlay_faults": overlay_faults}
