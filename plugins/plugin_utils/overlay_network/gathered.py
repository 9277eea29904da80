# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role overlay_network needs gathered. Constants alone, as every worker that gathers reads them."""

from __future__ import annotations

from ..plan.gathered import Gathered

ROLE = "overlay_network"
_VARIABLES = (
    "overlay_network_name",
    "overlay_network_subnet",
    "overlay_network_pool",
    "overlay_network_mtu",
    "overlay_network_encrypted",
    "overlay_network_recreate",
    "overlay_network_bench_networks",
    "overlay_network_bench_seconds",
    "overlay_network_bench_message_mib",
    "overlay_network_bench_gib",
    "overlay_network_bench_port",
    "overlay_network_bench_beside_jobs",
    "overlay_network_bench_min_ratio",
    "overlay_network_bench_min_gigabits",
    "overlay_network_bench_min_busbw",
)
_SHARED = ("cluster_name",)
_OPTIONAL = (
    "cluster_network_mode",
    "deepspeed_launch_runtime",
    "training_container_recreate",
    "swarm_advertise_address",
)
"""Of other roles: whether there is an overlay at all, whether a running job may be cut off, and the swarm's address."""

# Networks and containers are part of the facts anyway.
GATHERED = Gathered((*_VARIABLES, *_SHARED), _OPTIONAL)
