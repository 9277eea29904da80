# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The cluster as a whole, worked out once from the facts of all nodes: order, slots, accelerator, underlay, subnets."""

from __future__ import annotations

from typing import Any

from ..cluster.given_addresses import VARIABLE, given_underlay
from ..cluster.underlay import Underlay, UnderlayError, common_underlay
from ..nccl_env.settings import common_rdma
from ..overlay_network.addressing import OverlayRequest, plan_overlay


class ClusterError(Exception):
    """The nodes do not make a cluster; the text names node, cause and remedy."""


def choose_accelerator(wanted: str, has_gpu: dict[str, bool]) -> str:
    """Return ``cuda`` or ``cpu``. ``auto`` means cuda where every node has a GPU, cpu where none has one.

    A GPU whose driver does not work counts here: it is the driver that must be fixed, not the job moved to the CPU in
    silence.
    """
    without = [name for name, present in has_gpu.items() if not present]
    if wanted == "cpu" or (wanted == "auto" and len(without) == len(has_gpu)):
        return "cpu"
    if without:
        others = [name for name in has_gpu if name not in without]
        raise ClusterError(
            f"{', '.join(without)}: no NVIDIA GPU found"
            + (
                f", but {', '.join(others)} {'have' if len(others) > 1 else 'has'} one"
                if others
                else ", but cluster_accelerator is cuda"
            )
            + ". Remedy: take the host out of the inventory, or set cluster_accelerator: cpu."
        )
    return "cuda"


def expected_gpus(gpu: dict[str, Any]) -> int:
    """Return the GPUs that can be used, or will be once a driver works: those plugged in where none answers."""
    return int(gpu["slots"]) or (len(gpu.get("pci_devices") or []) if gpu["problems"] else 0)


def slots_of(accelerator: str, gpus: dict[str, int], overrides: dict[str, Any]) -> dict[str, int]:
    """Return the ranks of each node: ``gpu_slots`` where set, else its GPUs, else one on CPUs."""
    return {
        name: _whole(name, overrides[name])
        if overrides.get(name) not in (None, "")
        else (count if accelerator == "cuda" else 1)
        for name, count in gpus.items()
    }


def _whole(name: str, value: Any) -> int:
    try:
        if isinstance(value, (int, str)) and not isinstance(value, bool) and int(value) >= 0:
            return int(value)
    except ValueError:
        pass
    raise ClusterError(f"{name}: gpu_slots is '{value}'. Set it to a whole number of at least 0, or remove it.")


def _rank_memory(gpu: dict[str, Any]) -> Any:
    """Bytes that a rank has on a GPU: with MIG those of one instance, the first, as CUDA sees no other."""
    instances = (gpu.get("mig") or {}).get("instances")
    return instances[0].get("memory_bytes") if instances else gpu.get("memory_bytes")


def weakest(facts: dict[str, Any], slots: dict[str, int], *, on_gpus: bool = True) -> dict[str, Any]:
    """Return what a plan of memory may count on everywhere: the least of every host that takes part.

    ``gpus`` holds ``count`` (of a host), ``memory`` (bytes of a GPU) and ``compute_capability``; what a GPU does not
    state (one sharing the host's memory, an old driver) is left out. ``host_memory`` in bytes is that of a host with
    ``count`` ranks: where hosts have uneven slots, the tightest memory a rank counts. Without ``on_gpus`` the job
    computes on CPUs, and GPUs do not count.
    """
    taking_part = [name for name, number in slots.items() if number > 0]
    count = min((slots[name] for name in taking_part), default=0)
    gpus = [gpu for name in taking_part for gpu in facts[name]["gpu"].get("gpus") or [] if on_gpus]
    memories = [_rank_memory(gpu) for gpu in gpus]
    capabilities = [gpu.get("compute_capability") for gpu in gpus]
    found: dict[str, Any] = {"count": count} if gpus else {}
    if gpus and all(memories):
        found["memory"] = min(memories)
    if gpus and all(capabilities):
        found["compute_capability"] = min(capabilities, key=lambda text: [int(part) for part in text.split(".")])
    shares = [facts[name]["system"]["memory_bytes"] * count // slots[name] for name in taking_part]
    return {"gpus": found, "host_memory": min(shares, default=0)}


def cluster_view(  # one call gathers all that concerns more than one node
    hosts: list[str],
    facts: dict[str, Any],
    *,
    accelerator: str = "auto",
    slots: dict[str, Any] | None = None,
    underlay_subnet: str | None = None,
    ssh_addresses: dict[str, str] | None = None,
    own_addresses: dict[str, str] | None = None,
    overlay: OverlayRequest | None = None,
) -> dict[str, Any]:
    """Return what every role needs to know of the other nodes. Raises ClusterError, UnderlayError or OverlayError.

    ``own_addresses`` are those given by hand. ``overlay`` is None where the containers use the hosts' network.
    """
    if not hosts:
        raise ClusterError("The cluster has no hosts. Remedy: list some in the groups managers and workers.")
    gpus = {name: expected_gpus(facts[name]["gpu"]) for name in hosts}
    chosen = choose_accelerator(
        accelerator, {name: gpus[name] > 0 or bool(facts[name]["gpu"]["problems"]) for name in hosts}
    )
    underlay = _underlay(
        {name: facts[name]["fabric"] for name in hosts}, underlay_subnet, ssh_addresses, own_addresses or {}
    )
    ranks = slots_of(chosen, gpus, slots or {})
    return {
        "hosts": hosts,
        "first": hosts[0],
        "accelerator": chosen,
        "slots": ranks,
        "world_size": sum(ranks.values()),
        **weakest(facts, ranks, on_gpus=chosen == "cuda"),
        "gpus_known": chosen == "cpu" or all(facts[name]["gpu"].get("gpus") for name in hosts if ranks[name]),
        "underlay": {
            "subnet": underlay.subnet,
            "mtu": underlay.mtu,
            "interfaces": underlay.interfaces,
            "addresses": underlay.addresses,
            "speed_mbps": underlay.speed_mbps,
            "reason": underlay.reason,
        },
        "rdma": common_rdma({name: facts[name]["fabric"] for name in hosts}),
        "overlay": plan_overlay(overlay, {name: facts[name] for name in hosts}, hosts[0], underlay.mtu)
        if overlay
        else None,
    }


def _underlay(
    fabrics: dict[str, Any], subnet: str | None, ssh_addresses: dict[str, str] | None, own: dict[str, str]
) -> Underlay:
    if not any(own.get(host) for host in fabrics):
        return common_underlay(fabrics, subnet or None, ssh_addresses)
    if subnet:
        raise UnderlayError(
            f"cluster_underlay_subnet and {VARIABLE} are both set, but only one of them can choose the network. "
            "Remedy: remove one of them."
        )
    return given_underlay(fabrics, own)
