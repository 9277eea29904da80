# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What fabric_info may return."""

from __future__ import annotations

from typing import Any

from ...module_utils.common.reported import address, flag, interface, network, number, short_text, whole, word
from .shape import NAME, by_name, count, listing, mapping, one_of, optional, sentences


def _destination(value: Any) -> Any:
    return value if isinstance(value, str) and value == "default" else network(value)


_INTERFACE = mapping(
    {
        "name": interface,
        "mtu": whole(0, 1 << 32),
        "state": word,
        "kind": word,
        "addresses": listing(
            mapping(
                {
                    "address": address,
                    "prefix": whole(0, 128),
                    "subnet": network,
                    "family": one_of("inet", "inet6"),
                    "scope": short_text,
                }
            ),
            100_000,
        ),
    },
    {
        "mac": optional(word),
        "parent": optional(interface),
        "master": optional(interface),
        "members": listing(interface, 100_000),
        "speed_mbps": optional(count),
        "driver": optional(short_text),
        "pci_address": optional(word),
        "numa_node": optional(whole(-1, 4096)),
        "offloads": optional(by_name(NAME, optional(flag))),
    },
)

_RDMA_PORT = mapping(
    {
        "port": whole(0, 65535),
        "state": short_text,
        "physical_state": short_text,
        "rate_gbps": optional(number),
        "link_layer": short_text,
    },
    {
        "gids": listing(
            mapping(
                {"index": count},
                {
                    "gid": address,
                    "type": optional(word),
                    "interface": optional(interface),
                    "address": optional(address),
                },
            ),
            100_000,
        )
    },
)

FABRIC_INFO = mapping(
    {
        "interfaces": listing(_INTERFACE, 100_000),
        "routes": listing(
            mapping(
                {"dst": _destination, "dev": optional(interface)},
                {"gateway": optional(address), "metric": count, "table": word},
            )
        ),
        "problems": sentences,
    },
    {
        "default_interface": optional(interface),
        "interface": optional(interface),
        "infiniband": listing(
            mapping(
                {"name": word, "ports": listing(_RDMA_PORT, 1024)},
                {
                    "interfaces": listing(interface, 1024),
                    "numa_node": optional(whole(-1, 4096)),
                    "pci_address": optional(word),
                    "switch_management": flag,
                    "gpu_distances": by_name(word, word),
                },
            ),
            1024,
        ),
    },
)
