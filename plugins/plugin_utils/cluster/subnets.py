# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which subnets are taken, and which is free. Pure, IPv4 only, as Swarm's overlays are."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

Network = ipaddress.IPv4Network


class SubnetError(Exception):
    """A network is written wrongly, or none is free."""


def parse_network(text: str, what: str) -> Network:
    """Return a network; ``what`` says in an error where the text came from."""
    try:
        return ipaddress.IPv4Network(str(text))
    except ValueError as error:
        try:
            meant = ipaddress.IPv4Network(str(text), strict=False)
        except ValueError:
            raise SubnetError(f"{what}: '{text}' is not an IPv4 network such as 10.20.0.0/24.") from error
        raise SubnetError(f"{what}: '{text}' has bits set right of its prefix; write {meant}.") from error


def proper_network(text: Any) -> str:
    """Return an IPv4 network as it is written properly, empty for anything else and for the default route."""
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return ""
    return str(network) if network.prefixlen else ""


def _taken(networks: Mapping[str, str]) -> list[tuple[str, Network]]:
    """Return what can be collided with: no default route, nothing of IPv6."""
    found = []
    for label, text in networks.items():
        if text == "default" or ":" in str(text):
            continue
        network = parse_network(text, f"the taken network '{label}'")
        if network.prefixlen > 0:
            found.append((label, network))
    return found


def collisions(subnet: str, taken: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the entries of ``taken`` (label to network or address) that overlap ``subnet``, with their labels."""
    wanted = parse_network(subnet, "the subnet")
    return [{"label": label, "network": str(network)} for label, network in _taken(taken) if network.overlaps(wanted)]


def pick_subnet(pools: str | Iterable[str], prefix: int, taken: Mapping[str, str] | Iterable[str]) -> str:
    """Return the lowest subnet of this prefix length, in the first pool that has one, which overlaps nothing taken."""
    if not isinstance(taken, Mapping):
        taken = {str(network): str(network) for network in taken}
    in_use = _taken(taken)
    networks = [parse_network(text, "the address pool") for text in ([pools] if isinstance(pools, str) else pools)]
    for pool in networks:
        if not pool.prefixlen <= prefix <= 30:
            raise SubnetError(
                f"the address pool {pool}: no subnet with prefix length {prefix} fits; give {pool.prefixlen} to 30."
            )
        found = _lowest_free(pool, prefix, [network for _label, network in in_use])
        if found:
            return str(found)
    if not networks:
        raise SubnetError("No address pool is given to choose a subnet from.")
    labels = [label for label, network in in_use if any(network.overlaps(pool) for pool in networks)]
    more = f" and {len(labels) - 5} more" if len(labels) > 5 else ""
    raise SubnetError(
        f"No /{prefix} is free in {', '.join(map(str, networks))}. "
        f"In use: {', '.join(labels[:5])}{more}. Name another address pool."
    )


def _lowest_free(pool: Network, prefix: int, barriers: list[Network]) -> Network | None:
    size = 2 ** (32 - prefix)
    start = int(pool.network_address)
    while start + size - 1 <= int(pool.broadcast_address):
        candidate = ipaddress.IPv4Network((start, prefix))
        in_the_way = next((network for network in barriers if network.overlaps(candidate)), None)
        if in_the_way is None:
            return candidate
        # Go on behind it, at the next multiple of the size: a /8 in the way costs one step, not 65,536.
        behind = max(int(in_the_way.broadcast_address), start + size - 1) + 1
        start = -(-behind // size) * size
    return None
