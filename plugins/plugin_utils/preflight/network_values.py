# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables of the network, compared: among hosts, and with one another. Each by itself is its constraint's."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ..cluster.subnets import SubnetError
from ..core.problems import Problem, listing
from ..core.values import texts
from ..overlay_network.addressing import AUTO, room

SAME_FOR_ALL = (
    "overlay_network_name",
    "overlay_network_subnet",
    "overlay_network_mtu",
    "overlay_network_encrypted",
    "swarm_data_path_port",
)
"""There is one network and one swarm; a value that only some hosts had would be passed over in silence."""


class Values(Protocol):
    """What these checks read of the inventory."""

    def members(self, group: str) -> list[str]:
        """Return the hosts of a group."""

    def values(self, name: str) -> dict[str, Any]:
        """Return a variable's value by host, without hosts for which it is not known."""


def check_overlay_values(inventory: Values) -> Iterator[Problem]:
    """There is one network, with room for all nodes, and each container has an address of its own."""
    hosts = inventory.members("cluster")
    for name in SAME_FOR_ALL:
        different = dict.fromkeys(map(str, inventory.values(name).values()))
        if len(different) > 1:
            parts = " and ".join(repr(text) for text in different)
            yield Problem(name, f"differs between hosts of one cluster: {parts}", "set it once, for the group cluster")
    for subnet in _distinct(inventory, "overlay_network_subnet"):
        yield from _subnet(subnet, len(hosts))
    addresses = {host: str(address) for host, address in inventory.values("training_container_address").items()}
    yield from _own_addresses(
        "training_container_address", {host: address for host, address in addresses.items() if address != AUTO}
    )


def check_swarm_values(inventory: Values) -> Iterator[Problem]:
    """The pools share no address, and each host has one of its own."""
    seen: list[ipaddress.IPv4Network] = []
    for pool in dict.fromkeys(
        item for value in inventory.values("swarm_default_address_pool").values() for item in texts(value)
    ):
        network = _network(pool)
        for other in (item for item in seen if network is not None and item.overlaps(network)):
            yield Problem(
                "swarm_default_address_pool",
                f"{pool} and {other} overlap, so addresses would be assigned twice",
                "give pools that share no address",
            )
        seen += [network] if network is not None else []
    for name in ("swarm_advertise_address", "swarm_data_path_address"):
        found = {host: str(value) for host, value in inventory.values(name).items()}
        # Both may name an interface, which hosts may have in common.
        yield from _own_addresses(name, {host: text for host, text in found.items() if text[:1].isdigit()})


def check_cluster_address(inventory: Values) -> Iterator[Problem]:
    """``cluster_address`` is set for every host or for none, and not beside a subnet."""
    addresses = {host: str(value) for host, value in inventory.values("cluster_address").items()}
    given = [host for host, text in addresses.items() if text]
    missing = [host for host, text in addresses.items() if not text]
    if given and missing:
        yield Problem(
            "cluster_address",
            f"is set for {listing(given)}, but not for {listing(missing)}",
            "set it for every host of the cluster, or for none",
        )
    subnets = _distinct(inventory, "cluster_underlay_subnet")
    if given and subnets:
        yield Problem(
            "cluster_address",
            f"is set in addition to cluster_underlay_subnet ({subnets[0]}); only one of them can choose the network",
            "remove one of them",
        )
    yield from _own_addresses("cluster_address", addresses)


def _distinct(inventory: Values, name: str) -> list[str]:
    return [text for text in dict.fromkeys(map(str, inventory.values(name).values())) if text]


def _network(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        return None  # reported by the check of values


def _subnet(text: str, hosts: int) -> Iterator[Problem]:
    try:
        nodes = room(text)
    except SubnetError:
        return  # reported by the check of values
    if nodes < hosts:
        yield Problem(
            "overlay_network_subnet",
            f"{text} has room for {max(nodes, 0)} nodes, as each takes two addresses, but the cluster has {hosts}",
            "give a larger one, such as a /24",
        )


def _own_addresses(name: str, addresses: dict[str, str]) -> Iterator[Problem]:
    bearers: dict[str, list[str]] = {}
    for host, text in addresses.items():
        try:
            bearers.setdefault(str(ipaddress.IPv4Address(text)), []).append(host)
        except ValueError:
            continue  # empty, or reported by the check of values
    for address, hosts in bearers.items():
        if len(hosts) > 1:
            yield _shared(name, address, hosts)


def _shared(name: str, address: str, hosts: Sequence[str]) -> Problem:
    return Problem(
        name,
        f"is {address} for {listing(hosts)}; each host needs an address of its own",
        "set it for each host, not for a group",
    )
