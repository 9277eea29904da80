# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the overlay's subnet must not overlap on a host. Pure; odd facts are passed over, never an exception.

Docker keeps an overlay's interfaces in network namespaces of their own, so an overlay that is up does not appear among
a host's routes, and the engine does not see that a bridge it makes later overlaps one. Hence its address pools count.

The swarm's own pool counts only where it was requested: one allocator gives out all of a swarm's subnets, those with
an address given too, and gives none twice; and Docker's default for it, 10.0.0.0/8, is most of what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..cluster.subnets import SubnetError, collisions, proper_network
from ..core.values import mapping, texts

DOCKER_POOLS = (
    "172.17.0.0/16",
    "172.18.0.0/16",
    "172.19.0.0/16",
    "172.20.0.0/14",
    "172.24.0.0/14",
    "172.28.0.0/14",
    "192.168.0.0/16",
)
"""Where an engine takes bridges' subnets from by default (moby libnetwork/ipamutils/utils.go)."""

DEVICE, DOCKER, POOL, SERVICE = "device", "docker", "pool", "service"


@dataclass(frozen=True)
class Conflict:
    """Something that has addresses already. ``source`` is the device's name, for what lies behind a device."""

    words: str
    network: str
    kind: str
    source: str = ""


def conflicts(node: Mapping[str, Any], but_network: str, swarm_pools: Sequence[str] = ()) -> list[Conflict]:
    """Return all that a host has: devices' networks, routes, Docker's networks and pools, and services' addresses.

    ``but_network`` is the overlay itself; ``swarm_pools`` are the pools that the swarm was configured to have.
    """
    found = [*_behind_devices(mapping(node.get("fabric"))), *_services(mapping(node.get("services")))]
    for name, network in mapping(mapping(node.get("docker")).get("networks")).items():
        if name != but_network:
            for subnet in texts(mapping(network).get("subnets")):
                found.append(Conflict(f"network {subnet} of Docker's {name}", subnet, DOCKER))
    config = mapping(mapping(node.get("engine")).get("config"))
    requested = [str(mapping(pool).get("base")) for pool in _listed(config.get("default-address-pools"))]
    for pool in requested or DOCKER_POOLS:
        where = "default-address-pools in /etc/docker/daemon.json" if requested else "Docker's own default"
        found.append(Conflict(f"address pool {pool} of the engine ({where})", pool, POOL))
    for server in texts(config.get("dns")):
        found.append(Conflict(f"name server {server} of the engine (dns in /etc/docker/daemon.json)", server, SERVICE))
    found += [
        Conflict(f"address pool {pool} of the swarm (swarm_default_address_pool)", pool, POOL) for pool in swarm_pools
    ]
    return [replace(item, network=network) for item in found for network in [proper_network(item.network)] if network]


def in_the_way(subnet: str, known: Iterable[Conflict]) -> Iterator[Conflict]:
    """Yield what overlaps ``subnet``: once for each device, and an address pool only where nothing else is reported."""
    devices: set[str] = set()
    reported: set[str] = set()
    for item in known:
        if not overlaps(subnet, item.network):
            continue
        if item.kind == DEVICE:
            if item.source in devices:
                continue
            devices.add(item.source)
        elif (item.kind == DOCKER and item.network in reported) or (item.kind == POOL and reported):
            continue
        reported.add(item.network)
        yield item


def overlaps(subnet: str, network: Any) -> bool:
    """Return whether two IPv4 networks share an address; the default route and what is not a network share none."""
    try:
        return bool(collisions(subnet, {"": str(network)}))
    except SubnetError:
        return False


def _behind_devices(fabric: Mapping[str, Any]) -> Iterator[Conflict]:
    for interface in map(mapping, _listed(fabric.get("interfaces"))):
        name = str(interface.get("name"))
        for entry in map(mapping, _listed(interface.get("addresses"))):
            subnet = str(entry.get("subnet"))
            yield Conflict(f"network {subnet} of device {name}", subnet, DEVICE, name)
    for route in map(mapping, _listed(fabric.get("routes"))):
        name, network = str(route.get("dev") or "none"), str(route.get("dst"))
        yield Conflict(f"route {network} via device {name}", network, DEVICE, name)


def _services(services: Mapping[str, Any]) -> Iterator[Conflict]:
    for server in texts(services.get("nameservers")):
        yield Conflict(f"name server {server}", server, SERVICE)
    for address, path in mapping(services.get("addresses")).items():
        yield Conflict(f"address {address} (named in {path})", str(address), SERVICE)
    for name, addresses in mapping(services.get("resolved")).items():
        for address in texts(addresses):
            words = f"address {address}" if name == address else f"address {address} of {name}"
            yield Conflict(f"{words} (a proxy or mirror)", address, SERVICE)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
