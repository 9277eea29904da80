# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pools of addresses in daemon.json with which the engine would not come back from its restart.

Source: ``SplitNetworks`` in moby's libnetwork/ipamutils/utils.go, moby#40388, #44220 and #46862. Each case was tried
with dockerd 20.10.24, which has no ``--validate`` to find it before the restart.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any, Union

from ..common.problems import Problem, shown
from .daemon_config import same

KEY = "default-address-pools"
LARGEST_IPV4 = 30
"""The mask of the smallest IPv4 network that has an address for the bridge and one for a container."""

_Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
_LINK_LOCAL = (ipaddress.ip_network("169.254.0.0/16"), ipaddress.ip_network("fe80::/10"))


def pool_problems(path: str, pool: dict[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with one pool, whose ``base`` is text and whose ``size`` is a whole number."""
    base, size = _network(pool["base"]), int(pool["size"])
    if base is None:
        yield Problem(
            f"{path}.base",
            f"must be a network with its mask, such as '10.200.0.0/16', not {shown(pool['base'])}, or the engine would "
            "not start",
        )
        return
    if size < base.prefixlen:
        yield Problem(
            f"{path}.size",
            f"is {size}, and a network of that size is larger than the pool {base}, so the engine would not start; set "
            f"it to {base.prefixlen} or more, such as {max(24, base.prefixlen) if base.version == 4 else 64}",
        )
    elif base.version == 4 and size > LARGEST_IPV4:
        yield Problem(
            f"{path}.size",
            f"is {size}, which leaves no address for a container, so the engine would not start; set it to "
            f"{LARGEST_IPV4} or less, such as {max(24, base.prefixlen) if base.prefixlen <= LARGEST_IPV4 else 24}",
        )
    for reserved in _LINK_LOCAL:
        if _overlap(base, reserved):
            yield Problem(
                f"{path}.base",
                f"{base} is link-local ({reserved}): on a host with a route of its own there (zeroconf, a cloud's "
                "metadata) the engine finds no free network and does not start; set a private network, such as "
                "'10.200.0.0/16'",
            )


def overlap_problems(before: dict[str, Any], after: dict[str, Any]) -> list[Problem]:
    """Return which pools overlap ``bip`` where one of the two is about to change.

    Where the engine runs so already, it has given out no network across it, and nothing is restarted.
    """
    if all(same(before.get(name), after.get(name)) for name in ("bip", KEY)):
        return []
    bridge, pools = _network(after.get("bip")), after.get(KEY)
    if bridge is None or not isinstance(pools, list):
        return []
    return [
        Problem(
            f"{KEY}[{index}].base",
            f"{base} overlaps bip ({after['bip']}): the engine would not start if a network has these addresses "
            "already, and has none for networks if bip covers the pool; set bip outside of all pools, or to null, so "
            "that docker0 takes its addresses from the first pool",
        )
        for index, pool in enumerate(pools)
        if isinstance(pool, dict) and (base := _network(pool.get("base"))) is not None and _overlap(base, bridge)
    ]


def _network(text: object) -> _Network | None:
    # As Go reads it: a mask in dots is none, and bits of a host are dropped.
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-fA-F.:]{2,45}/[0-9]{1,3}", text, re.ASCII):
        return None
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _overlap(one: _Network, other: _Network) -> bool:
    return one.version == other.version and one.overlaps(other)
