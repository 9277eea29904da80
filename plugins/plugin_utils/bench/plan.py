# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a network benchmark will do: who meets whom in which round, for how long, which messages, and when it must end.

Everything follows from a time and an amount of data for each network, so that 64 nodes take no longer than three: with
many nodes each is tried with some of the others, in rounds chosen evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.fabric.pair_rounds import rounds
from ...module_utils.network_bench.pairs import IPERF_SECONDS, TRIP_SECONDS
from ...module_utils.network_bench.rank import ROUND_PATIENCE
from ..cluster.subnets import SubnetError, pick_subnet, proper_network

KINDS = ("host", "overlay", "overlay_encrypted")
PREFIX = "overlay_network_bench_"
GIB = 1 << 30
SMALLEST, STEP = 4096, 4
"""Bytes of the smallest message, and how many times larger each next one is."""
FOR_PAIRS, FOR_COLLECTIVES = 0.4, 0.5
"""Parts of a network's time; the rest is for starting and meeting."""
PAIR_SECONDS = (0.1, 0.5)
"""Least and most that a direction of a pair is sent for: TCP needs the least to find its speed."""
PAIR_OVERHEAD = 0.2
"""Seconds of a round that are neither latency nor throughput: connections, and waiting for the slowest."""
GATHER_SECONDS = 60.0
"""Seconds for all nodes to come together: torch starts, and a new name becomes known everywhere."""
SPARE_SECONDS = 15.0

LIMITS = {  # least, most, unit
    "seconds": (10, 600, "seconds"),
    "message_mib": (1, 1024, "MiB"),
    "gib": (1, 4096, "GiB"),
    "port": (1024, 65535, ""),
    "min_ratio": (0, 1, ""),
    "min_gigabits": (0, 10_000, "Gbit/s"),
    "min_busbw": (0, 10_000, "GB/s"),
}


class BenchError(Exception):
    """The benchmark cannot be run as requested; the text says why and what to do."""


def checked(settings: Mapping[str, Any]) -> dict[str, float]:
    """Return the settings as numbers. Raises BenchError that names every one that cannot be meant."""
    found, wrong = {}, []
    for name, (least, most, unit) in LIMITS.items():
        try:
            value = float(settings[name])
        except (TypeError, ValueError):
            value = float("nan")
        if not least <= value <= most:
            wrong.append(f"{PREFIX}{name} is {settings[name]!r}; give {least} to {most}{unit and ' ' + unit}")
        found[name] = value
    if wrong:
        raise BenchError(f"{'; '.join(wrong)}.")
    return found


def evenly(found: Sequence[Any], most: int) -> list[Any]:
    """Return at most this many of them, spread over all."""
    count = min(len(found), max(most, 1))
    return [found[number * len(found) // count] for number in range(count)]


def message_sizes(largest: int) -> list[int]:
    """Return the sizes of messages in bytes, four times larger each; the largest is always among them."""
    sizes = [largest]
    while sizes[0] // STEP >= SMALLEST:
        sizes.insert(0, sizes[0] // STEP)
    return sizes


def subnets(facts: Mapping[str, Any], pool: str, count: int) -> list[str]:
    """Return free /24 subnets for networks that last for minutes, and whose containers reach only each other.

    So what counts is what the hosts route to and what their Docker networks have. ``facts`` is what node_facts
    returned, by host. Raises BenchError where the pool has not enough.
    """
    taken: dict[str, str] = {}
    for host, node in facts.items():
        found = [address["subnet"] for device in node["fabric"]["interfaces"] for address in device["addresses"]]
        found += [route.get("dst") for route in node["fabric"]["routes"]]
        found += [subnet for network in node["docker"]["networks"].values() for subnet in network["subnets"]]
        taken.update({f"{host}: {text}": text for text in map(proper_network, found) if text})
    chosen: list[str] = []
    for dummy in range(count):
        try:
            chosen.append(pick_subnet(pool, 24, {**taken, **{f"ours: {text}": text for text in chosen}}))
        except SubnetError as error:
            raise BenchError(f"overlay_network_pool: {error}") from None
    return chosen


def plan(slots: Mapping[str, int], accelerator: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what all nodes have in common for one network.

    ``slots``: ranks by node in the order of ranks; those without any take no part. ``settings``: see ``LIMITS``.
    """
    requested = checked(settings)
    nodes = [name for name, count in slots.items() if count > 0]
    if len(nodes) < 2:
        raise BenchError(
            f"There is {len(nodes) or 'no'} host with slots in the inventory: a network needs two. Remedy: add hosts "
            "to managers or workers, or give them gpu_slots."
        )
    index = {name: number for number, name in enumerate(nodes)}
    every = [[[index[one], index[other]] for one, other in pairs] for pairs in rounds(nodes)]
    seconds = requested["seconds"]
    fixed = 2 * TRIP_SECONDS + PAIR_OVERHEAD
    chosen = evenly(every, int(seconds * FOR_PAIRS / (fixed + 2 * PAIR_SECONDS[0])))
    slot = (seconds * FOR_PAIRS / len(chosen) - fixed) / 2
    pair_seconds = round(min(max(slot, PAIR_SECONDS[0]), PAIR_SECONDS[1]), 3)
    # A moment more than it sends: iperf3 starts, connects and ends.
    floor = evenly(every, int(seconds / (2 * (IPERF_SECONDS + 0.3))))
    return {
        "nodes": nodes,
        "slots": [int(slots[name]) for name in nodes],
        "backend": "nccl" if accelerator == "cuda" else "gloo",
        "port": int(requested["port"]),
        "rounds": chosen,
        "rounds_of_all": len(every),
        "floor_rounds": floor,
        "pair_seconds": pair_seconds,
        "pair_bytes": int(requested["gib"] * GIB / 2 / len(chosen)),
        "sizes": message_sizes(int(requested["message_mib"]) << 20),
        "collective_seconds": seconds * FOR_COLLECTIVES,
        "collective_bytes": int(requested["gib"] * GIB / 2),
        "gather_seconds": GATHER_SECONDS,
        "limit_seconds": GATHER_SECONDS + 2 * seconds + 2 * ROUND_PATIENCE + SPARE_SECONDS,
    }


def part(common: Mapping[str, Any], node: str, network: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of one node.

    ``network``: its ``kind``, ``master`` (name or address of the first node), ``environment`` (as nccl_env_settings),
    ``rdma`` (by node, what the role nccl_env sets for RDMA in the hosts' network), and how a node finds its address:
    ``subnet``, or ``interfaces`` and ``addresses`` by node.
    """
    found = {key: value for key, value in common.items() if key != "rounds_of_all"}
    found["node"] = common["nodes"].index(node)
    found["master"] = network["master"]
    found["subnet"] = network.get("subnet", "")
    found["interface"] = (network.get("interfaces") or {}).get(node, "")
    found["address"] = (network.get("addresses") or {}).get(node, "")
    found["floor_rounds"] = common["floor_rounds"] if network["kind"] == "host" else []
    # RoCE and InfiniBand do not pass VXLAN.
    rdma, without = (network.get("rdma") or {}).get(node) or {}, {"NCCL_IB_DISABLE": "1"}
    own, forced = (rdma, {}) if network["kind"] == "host" else ({}, without)
    found["environment"] = {**own, **(network.get("environment") or {}), **forced}
    return found
