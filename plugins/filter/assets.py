# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who gives models and data sets to whom. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.common.reported import ReportedError, accept, address, port
from ..plugin_utils.assets.chain import plan
from ..plugin_utils.validate.assets import gathered as checked


def asset_chain(
    gathered: Any, order: Sequence[str], addresses: Mapping[str, str], ports: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what each node does, and what forbids it."""
    if not isinstance(gathered, Mapping) or not order or any(name not in gathered for name in order):
        raise AnsibleFilterError("asset_chain: expected what every node of the chain reported.")
    try:
        if not isinstance(addresses, Mapping) or not isinstance(ports, Mapping):
            raise AnsibleFilterError("asset_chain: addresses and ports must be mappings by node.")
        where = {name: accept(name, "address", value, address) for name, value in addresses.items()}
        numbers = {name: accept(name, "ansible_port", int(value), port) for name, value in ports.items()}
        return plan(checked(gathered), list(order), where, numbers)
    except ReportedError as error:
        raise AnsibleFilterError(f"asset_chain: {error}") from None
    except KeyError as error:
        raise AnsibleFilterError(f"asset_chain: {error} is missing in what a node reported.") from None


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"asset_chain": asset_chain}
