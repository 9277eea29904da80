# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who gives an image, or models and data sets, to whom. Documented in the .yml files beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils.common.reported import ReportedError, accept, address, port
from ..plugin_utils.transfer.assets import plan as plan_assets
from ..plugin_utils.transfer.image import plan as plan_image
from ..plugin_utils.validate import assets as reported_assets
from ..plugin_utils.validate import image as reported_image


def image_chain(
    gathered: Any, holder: str, image: str, addresses: Mapping[str, str], ports: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the order of the nodes, what each does, and why it is not possible."""
    if not isinstance(gathered, Mapping) or holder not in gathered:
        raise AnsibleFilterError(f"image_chain: expected what every node reported, {holder} among them.")
    return _planned(
        "image_chain",
        addresses,
        ports,
        lambda *where: plan_image(reported_image.gathered(gathered), holder, image, *where),
    )


def asset_chain(
    gathered: Any, order: Sequence[str], addresses: Mapping[str, str], ports: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what each node does, and what forbids it."""
    if not isinstance(gathered, Mapping) or not order or any(name not in gathered for name in order):
        raise AnsibleFilterError("asset_chain: expected what every node of the chain reported.")
    return _planned(
        "asset_chain",
        addresses,
        ports,
        lambda *where: plan_assets(reported_assets.gathered(gathered), list(order), *where),
    )


def _planned(
    title: str, addresses: Any, ports: Any, plan: Callable[[dict[str, str], dict[str, int]], dict[str, Any]]
) -> dict[str, Any]:
    """Return the plan for checked addresses and ports."""
    if not isinstance(addresses, Mapping) or not isinstance(ports, Mapping):
        raise AnsibleFilterError(f"{title}: addresses and ports must be mappings by node.")
    try:
        where = {name: accept(name, "address", value, address) for name, value in addresses.items()}
        return plan(where, {name: accept(name, "ansible_port", int(value), port) for name, value in ports.items()})
    except ReportedError as error:
        raise AnsibleFilterError(f"{title}: {error}") from None
    except KeyError as error:
        raise AnsibleFilterError(f"{title}: {error} is missing in what a node reported.") from None


class FilterModule:
    """Ansible filter plugin."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"image_chain": image_chain, "asset_chain": asset_chain}
