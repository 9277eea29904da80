# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ports of a host anyone may reach, by the rules in its kernel.

Pure. A sender of whom nothing is known is led through the chains. A condition that holds for few senders only (a
source, an established connection, the loopback interface) never holds for him; of one that is not understood both
outcomes are possible. So what is found closed is closed, and what is found open may be so under a condition only.
The rules of ufw and firewalld stand in the kernel too. The words of iptables and nftables are read in the files beside.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

PORTS = 1 << 16
MOST_RANGES = 64
"""Ranges that are reported of a protocol; more are reported as one."""
MOST_STEPS = 20_000
"""Rules that are read; where more would have to be, all counts as open."""
WIDE = 7
"""Longest prefix of a network that counts as everybody: all of them can be written as two halves."""

# A set of ports of both protocols is a number: bit N is port N of tcp, and N + 65536 of udp.
_EACH = (1 << PORTS) - 1
ALL = (1 << 2 * PORTS) - 1
PORTS_OF = {"tcp": _EACH, "udp": _EACH << PORTS}
NEVER, PERHAPS, ALWAYS = range(3)
"""Whether the conditions of a rule, but for protocol and port, hold for a sender of whom nothing is known."""


@dataclass(frozen=True)
class Rule:
    """``verdict``: accept, drop, return, jump or goto; ``target`` is the chain of the last two."""

    ports: int
    holds: int
    verdict: str
    target: str = ""


class TooMany(Exception):
    """The rules are more than are read."""


class _Walk:
    def __init__(self, chains: Callable[[str], Sequence[Rule]]) -> None:
        self._chains = chains
        self._steps = 0

    def through(self, name: str, packets: int, above: tuple[str, ...] = ()) -> tuple[int, int]:
        """The packets that may be accepted in a chain, and those that may come out at its end."""
        accepted = returned = 0
        if name in above or len(above) > 64:
            return packets, packets
        for rule in self._chains(name):
            self._steps += 1
            if self._steps > MOST_STEPS:
                raise TooMany
            meant = packets & rule.ports if rule.holds != NEVER else 0
            if not meant:
                continue
            out = 0
            if rule.verdict == "accept":
                accepted |= meant
            elif rule.verdict == "return":
                returned |= meant
            elif rule.verdict in ("jump", "goto"):
                inside, out = self.through(rule.target, meant, (*above, name))
                accepted |= inside
                if rule.verdict == "goto":
                    returned, out = returned | out, 0
            if rule.holds == ALWAYS:
                packets = (packets & ~meant) | out
        return accepted, packets | returned


def reached(chains: Callable[[str], Sequence[Rule]], base: str, accepts: bool, packets: int = ALL) -> int:
    """The packets that may get through a chain that the kernel asks, whose policy ``accepts`` or drops."""
    try:
        accepted, rest = _Walk(chains).through(base, packets)
    except TooMany:
        return packets
    return accepted | (rest if accepts else 0)


def ranges(packets: int) -> dict[str, list[list[int]]]:
    """Ports, by protocol, as ranges."""
    found: dict[str, list[list[int]]] = {}
    for protocol, shift in (("tcp", 0), ("udp", PORTS)):
        bits, low = (packets >> shift) & _EACH & ~1, 0
        listed: list[list[int]] = []
        while bits:
            low = (bits & -bits).bit_length() - 1
            length = (~(bits >> low) & ((bits >> low) + 1)).bit_length() - 1
            listed.append([low, low + length - 1])
            bits &= ~(((1 << length) - 1) << low)
        found[protocol] = listed if len(listed) <= MOST_RANGES else [[listed[0][0], listed[-1][1]]]
    return found


def span(low: int, high: int) -> int:
    """A range of ports, of both protocols."""
    one = ((1 << (min(high, PORTS - 1) - low + 1)) - 1) << low if 0 <= low <= high and low < PORTS else 0
    return one | one << PORTS


def of_protocol(name: str) -> int:
    """All ports of a protocol by its name or number; none of one that has no ports."""
    return PORTS_OF.get({"6": "tcp", "17": "udp"}.get(name, name), 0)


def held(few: bool | None, negated: bool) -> int:
    """Of a condition that holds for ``few`` senders only, or for all; None where that is not known."""
    if few is None:
        return PERHAPS
    return ALWAYS if few == negated else NEVER


def inside(interface: str) -> bool:
    """Whether only this host and what runs on it sends by an interface."""
    return interface == "lo" or interface.startswith(("docker", "br-", "veth", "virbr"))


def everybody(text: str) -> bool:
    """Whether a network is so wide that it keeps no one out."""
    try:
        return ipaddress.ip_network(text, strict=False).prefixlen <= WIDE
    except ValueError:
        return False
