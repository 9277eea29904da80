# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A node of a job as the checks before its start see it, and how they word what they find."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ..core.problems import listing

MIB = 1024**2
GIB = 1024**3
SITE = "ansible-playbook site.yml --tags"


@dataclass(frozen=True)
class Node:
    """What one node answered to what it was asked."""

    name: str
    requested: Mapping[str, Any]
    answer: Mapping[str, Any]
    image: Mapping[str, Any]

    @property
    def contained(self) -> bool:
        return bool(self.requested["runtime"] == "container")

    @property
    def own(self) -> list[str]:
        """Its addresses in the training network; all where that is not given."""
        addresses = self.answer["addresses"]
        if not self.requested["subnet"]:
            return [address for address in addresses if not address.startswith("127.")]
        network = ipaddress.ip_network(self.requested["subnet"], strict=False)
        return [address for address in addresses if ipaddress.ip_address(address) in network]


def by(nodes: Sequence[Node], key: Callable[[Node], Any]) -> dict[str, list[Node]]:
    """Nodes by a value; those that have none are left out."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        value = key(node)
        if value:
            found.setdefault(value, []).append(node)
    return found


def shown(found: Mapping[str, Sequence[Node]]) -> str:
    return "; ".join(f"{value} on {names(nodes)}" for value, nodes in found.items())


def names(nodes: Sequence[Node]) -> str:
    return listing(node.name for node in nodes)


def unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def size(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count // MIB} MiB"
