# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Hosts that URLs name, and in words how a network differs. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import services
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network import addressing
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.filters import one_line


def url_hosts(values: Any) -> list[str]:
    """Return the host names and addresses in URLs."""
    return services.url_hosts(values)


@one_line("swarmspeed.cluster.network_differences", "what node_facts says of a network")
def network_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return in words how a network differs from what is wanted."""
    if not isinstance(found, Mapping) or not isinstance(wanted, Mapping):
        raise AnsibleFilterError("network_differences: expected two mappings.")
    missing = [name for name in ("subnet", "mtu", "encrypted") if name not in wanted]
    if missing:
        raise AnsibleFilterError(f"network_differences: wanted needs {', '.join(missing)}.")
    return list(addressing.differences(found, wanted).values())


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"url_hosts": url_hosts, "network_differences": network_differences}
