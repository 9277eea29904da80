# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What node_facts may return of the engine."""

from __future__ import annotations

from ...module_utils.common.reported import (
    absolute_path,
    address,
    flag,
    identity,
    lines,
    network,
    port,
    sentence,
    text,
    word,
)
from .shape import NAME, by_name, data, listing, mapping, names, optional, or_empty, own_name, version

_SWARM = mapping(
    {
        "state": word,
        "manager": flag,
        "node_id": optional(identity),
        "nodes": listing(
            mapping(
                {
                    "id": optional(identity),
                    "hostname": optional(own_name),
                    "role": optional(word),
                    "availability": optional(word),
                    "state": optional(word),
                    "addr": optional(or_empty(address)),
                },
                {"leader": flag, "reachability": optional(or_empty(word))},
            ),
            100_000,
        ),
        "labels": by_name(NAME, lines(4096)),
    },
    {
        "error": optional(sentence),
        "node_addr": optional(or_empty(address)),
        "cluster_id": optional(identity),
        "data_path_port": optional(port),
        "default_addr_pool": listing(network, 1000),
        "attached": listing(
            mapping({"container": optional(identity), "node": optional(identity), "networks": names}), 100_000
        ),
    },
)

_LABELS = by_name(text(4096), lines(1 << 16))

DOCKER = mapping(
    {
        "installed": flag,
        "running": flag,
        "swarm": _SWARM,
        "networks": by_name(
            NAME,
            mapping(
                {"driver": optional(or_empty(NAME)), "subnets": listing(network, 1000), "options": _LABELS},
                {"id": optional(identity), "scope": optional(word), "attachable": flag, "labels": _LABELS},
            ),
        ),
        "containers": by_name(
            NAME,
            mapping(
                {"state": optional(word), "labels": _LABELS, "addresses": by_name(NAME, optional(address))},
                {"id": optional(identity), "image": optional(text(4096)), "image_id": optional(or_empty(identity))},
            ),
        ),
        "images": by_name(text(4096), identity),
        "image_contents": by_name(text(4096), optional(or_empty(identity))),
    },
    {
        "version": optional(version),
        "root": optional(absolute_path),
        "error": optional(sentence),
        "runtimes": names,
        "image_clusters": by_name(text(4096), text(4096)),
        "settings": data,
        "stale_swarm_ports": listing(port),
    },
)
