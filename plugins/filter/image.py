# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who gives an image to whom. Documented in the .yml file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.common.reported import ReportedError, accept, address, port
from ..module_utils.image_transfer.chain import plan
from ..plugin_utils.validate.image import gathered as checked


def image_chain(
    gathered: Any, holder: str, image: str, addresses: Mapping[str, str], ports: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the order of the nodes, what each does, and what stands against it."""
    if not isinstance(gathered, Mapping) or holder not in gathered:
        raise AnsibleFilterError(f"image_chain: expected what every node reported, {holder} among them.")
    try:
        if not isinstance(addresses, Mapping) or not isinstance(ports, Mapping):
            raise AnsibleFilterError("image_chain: addresses and ports must be mappings by node.")
        where = {name: accept(name, "address", value, address) for name, value in addresses.items()}
        numbers = {name: accept(name, "ansible_port", int(value), port) for name, value in ports.items()}
        return plan(checked(gathered), holder, image, where, numbers)
    except ReportedError as error:
        raise AnsibleFilterError(f"image_chain: {error}") from None
    except KeyError as error:
        raise AnsibleFilterError(f"image_chain: {error} is missing in what a node reported.") from None


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"image_chain": image_chain}
