# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The nodes of a report: how each is, what it has, which ranks it carries, and in what nodes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..cluster.underlay import UnderlayError
from ..core.values import mapping, number
from ..nccl_env.gpudirect import gpudirect
from ..registry.cluster_view import ClusterError, cluster_view
from .inputs import Inputs
from .text import counted, domain, names, sequence, short, size

UNKNOWN = "not known"
SEEN_NOW = ("system", "kernel", "docker", "driver")
"""Versions in verify.json that the nodes have just reported again."""
CALLED = {"deepspeed": "DeepSpeed", "nccl": "NCCL", "python": "Python of the ranks"}
MATTERS = (
    "Training image",
    "DeepSpeed",
    "torch",
    "NCCL",
    "NVIDIA driver",
    "CUDA of the driver",
    "Underlay MTU",
    "GPUs",
)
"""What a job may fail or be slow by where nodes differ in it; the rest is worth knowing."""


def view_of(inputs: Inputs) -> tuple[dict[str, Any], str]:
    """What concerns all nodes that answered, as cluster_facts works it out; or nothing, and a sentence why."""
    hosts = [name for name in inputs.hosts if inputs.facts.get(name)]
    if not hosts:
        return {}, ""
    try:
        return (
            cluster_view(
                hosts,
                dict(inputs.facts),
                accelerator=inputs.accelerator,
                slots=dict(inputs.slots),
                underlay_subnet=inputs.underlay_subnet or None,
                ssh_addresses=dict(inputs.addresses),
                own_addresses=dict(inputs.own_addresses),
            ),
            "",
        )
    except (ClusterError, UnderlayError) as error:
        return {}, str(error)
    except (KeyError, TypeError, ValueError) as error:  # facts of another version of node_facts, perhaps cached
        return {}, f"The facts of the nodes cannot be read ({type(error).__name__}: {error})."


def ranks_of(inputs: Inputs, view: Mapping[str, Any], members: Sequence[Any]) -> dict[str, list[int]]:
    """Ranks by node: those of the last job's ``members``, else those that a job would have."""
    found: dict[str, list[int]] = {}
    for member in map(mapping, members):
        slots, first = member.get("slots"), member.get("first_rank")
        count = len(slots) if isinstance(slots, (list, tuple)) else slots if isinstance(slots, int) else 0
        begin = first if isinstance(first, int) else sum(map(len, found.values()))
        found[str(member.get("name"))] = list(range(begin, begin + min(count, 1024)))
    if not found:
        place = 0
        for name in inputs.hosts:
            count = int(mapping(view.get("slots")).get(name) or 0)
            found[name] = list(range(place, place + count))
            place += count
    return found


def swarm_entries(inputs: Inputs) -> dict[str, dict[str, Any]]:
    """What the managers' engines say of each member of the swarm, by its id."""
    found: dict[str, dict[str, Any]] = {}
    for name in inputs.hosts:
        for entry in sequence(_swarm(inputs.facts.get(name)).get("nodes")):
            if mapping(entry).get("id"):
                found.setdefault(str(entry["id"]), dict(entry))
    return found


def _swarm(facts: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return mapping(mapping(mapping(facts).get("docker")).get("swarm"))


def container_of(inputs: Inputs, name: str) -> Mapping[str, Any]:
    """The training container on a node, empty where there is none."""
    containers = mapping(mapping(mapping(inputs.facts.get(name)).get("docker")).get("containers"))
    return mapping(containers.get(f"{inputs.cluster}-{name}"))


def swarm_role(inputs: Inputs, name: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """``leader``, ``manager``, ``worker``, ``not in the swarm``, or empty without containers or facts."""
    if inputs.runtime != "container" or not inputs.facts.get(name):
        return ""
    swarm = _swarm(inputs.facts[name])
    if swarm.get("state") != "active":
        return "not in the swarm"
    if entries.get(str(swarm.get("node_id")), {}).get("leader"):
        return "leader"
    return "manager" if swarm.get("manager") else "worker"


def gpus_text(facts: Mapping[str, Any]) -> str:
    """``8 × NVIDIA H100 80GB HBM3``; GPUs that do not answer are counted from the PCI bus."""
    gpu = mapping(facts.get("gpu"))
    models = Counter(str(mapping(one).get("name") or "GPU") for one in sequence(gpu.get("gpus")))
    if models:
        return ", ".join(f"{count} × {model}" for model, count in models.most_common())
    plugged = len(sequence(gpu.get("pci_devices")))
    return f"{counted(plugged, 'GPU')} without a working driver" if plugged else "none"


def interface_of(facts: Mapping[str, Any], view: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The node's interface in the underlay, empty where that is not known."""
    wanted = mapping(mapping(view.get("underlay")).get("interfaces")).get(name)
    interfaces = [mapping(one) for one in sequence(mapping(facts.get("fabric")).get("interfaces"))]
    return next((one for one in interfaces if wanted and one.get("name") == wanted), {})


def speed_text(mbps: Any) -> str:
    """``100 Gbit/s``."""
    if not isinstance(mbps, (int, float)) or mbps <= 0:
        return ""
    return f"{short(mbps / 1000)} Gbit/s" if mbps >= 1000 else f"{short(mbps)} Mbit/s"


def _fabric_text(facts: Mapping[str, Any]) -> str:
    """RDMA devices by link and rate: ``8 × infiniband 400 Gbit/s``, those that manage NVSwitches apart."""
    ports = Counter()  # type: Counter[str]
    for device in sequence(mapping(facts.get("fabric")).get("infiniband")):
        purpose = " (manages NVSwitches)" if mapping(device).get("switch_management") else ""
        for port in sequence(mapping(device).get("ports")):
            rate = mapping(port).get("rate_gbps")
            state = "" if mapping(port).get("state") == "active" else f" ({mapping(port).get('state')})"
            ports[f"{mapping(port).get('link_layer')} {short(rate) if rate else '?'} Gbit/s{state}{purpose}"] += 1
    return ", ".join(f"{count} × {kind}" for kind, count in ports.most_common()) or "none"


def properties(inputs: Inputs, view: Mapping[str, Any], name: str) -> dict[str, str]:
    """What of a node is compared with the others, by the words of the page. What is not known is left out."""
    facts = mapping(inputs.facts.get(name))
    if not facts:
        return {}
    system, gpu, docker = (mapping(facts.get(part)) for part in ("system", "gpu", "docker"))
    packages, driver = mapping(facts.get("packages")), mapping(gpu.get("driver"))
    link, container = interface_of(facts, view, name), container_of(inputs, name)
    release = f"{system.get('distribution', '')} {system.get('release', '')}".strip().capitalize()
    image = str(container.get("image") or "")
    digest = str(container.get("image_id") or "").replace("sha256:", "")[:12]
    found = {
        "System": release,
        "Kernel": system.get("kernel"),
        "Architecture": system.get("architecture"),
        "Processors": system.get("cpus"),
        "Memory": size(_rounded(system["memory_bytes"])) if system.get("memory_bytes") else None,
        "Python": system.get("python"),
        "GPUs": gpus_text(facts),
        "NVIDIA driver": driver.get("version"),
        "CUDA of the driver": gpu.get("cuda_version"),
        "Docker engine": docker.get("version"),
        "Container toolkit": packages.get("nvidia-container-toolkit"),
        "Training image": f"{image} ({digest})" if digest else image,
        "Underlay interface": link.get("name"),
        "Underlay MTU": link.get("mtu"),
        "Underlay speed": speed_text(link.get("speed_mbps")),
        "RDMA": _fabric_text(facts),
        "GPUDirect RDMA": gpudirect(facts),
    }
    for what, value in mapping(inputs.verify.versions.get(name)).items():
        if what not in SEEN_NOW:
            found[CALLED.get(what, what)] = value
    return {what: str(value) for what, value in found.items() if value not in (None, "")}


def _rounded(count: float) -> float:
    """Bytes to a whole GiB: firmware keeps some megabytes more on one machine than on its twin."""
    gib = 1024**3
    return round(count / gib) * gib if count >= gib else count


def differences(found: Mapping[str, Mapping[str, str]]) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """In what the nodes differ, and what is alike on all that report it.

    ``found`` holds properties by node. Of what differs the commonest value comes first, ``majority`` where more than
    half have it. A node that does not report something counts as another one where others do.
    """
    answered = [name for name, those in found.items() if those]
    order: dict[str, None] = {what: None for name in answered for what in found[name]}
    differing, alike = [], []
    for what in order:
        by_value: dict[str, list[str]] = {}
        for name in answered:
            by_value.setdefault(found[name].get(what, UNKNOWN), []).append(name)
        if len(by_value) == 1:
            alike.append({"what": what, "value": next(iter(by_value))})
            continue
        groups = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
        differing.append(
            {
                "what": what,
                "matters": what in MATTERS,
                "groups": [
                    {
                        "value": value,
                        "count": len(those),
                        "who": names(those),
                        "nodes": those,
                        "majority": index == 0 and len(those) * 2 > len(answered),
                    }
                    for index, (value, those) in enumerate(groups[:8])
                ],
                "more": max(0, len(groups) - 8),
            }
        )
    differing.sort(key=lambda item: not item["matters"])
    return differing, alike


def node_cells(
    inputs: Inputs, view: Mapping[str, Any], ranks: Mapping[str, Sequence[int]], levels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One entry a node, for the picture and the table, in rank order."""
    entries, tail = swarm_entries(inputs), domain(inputs.hosts)
    cells = []
    for name in inputs.hosts:
        facts = mapping(inputs.facts.get(name))
        link, container = interface_of(facts, view, name), container_of(inputs, name)
        address = mapping(mapping(view.get("underlay")).get("addresses")).get(name)
        overlay = mapping(container.get("addresses")).get(inputs.network_name)
        gpu = mapping(facts.get("gpu"))
        slots = list(ranks.get(name, []))
        models = Counter(_model(str(mapping(one).get("name") or "GPU")) for one in sequence(gpu.get("gpus")))
        cells.append(
            {
                "name": name,
                "label": name[: len(name) - len(tail)],
                "level": "lost" if not facts else levels.get(name, "ok"),
                "role": swarm_role(inputs, name, entries) or ("manager" if name in inputs.managers else "worker"),
                "known": bool(facts),
                "address": str(address or inputs.addresses.get(name) or ""),
                "link": " · ".join(
                    str(part) for part in (link.get("name"), speed_text(link.get("speed_mbps"))) if part
                ),
                "mtu": link.get("mtu"),
                "gpus": ", ".join(f"{count} × {model}" for model, count in models.most_common())
                or ("no GPU" if facts else ""),
                "gpu_count": sum(models.values()),
                "slots": [
                    {"rank": rank, "tip": f"{name}, {_slot(index, models)}: rank {rank}"}
                    for index, rank in enumerate(slots)
                ],
                "ranks": f"{slots[0]}–{slots[-1]}" if len(slots) > 1 else "".join(map(str, slots)),
                "on_underlay": bool(address),
                "on_overlay": bool(overlay) and container.get("state") == "running",
                "overlay_address": str(overlay or ""),
                "container": str(container.get("state") or ("absent" if facts else "")),
                "offset": _apart(mapping(facts.get("clock"))),
            }
        )
    return cells


def _apart(clock: Mapping[str, Any]) -> float | None:
    """Seconds between a node's clock and the controller's; 0 where the measurement is not finer than that."""
    offset, doubt = number(clock.get("offset")), number(clock.get("uncertainty")) or 0.0
    return 0.0 if offset is not None and abs(offset) <= doubt else offset


def _slot(index: int, models: Mapping[str, int]) -> str:
    return f"GPU {index}" if models else f"CPU slot {index}"


def _model(name: str) -> str:
    """``H100 80GB HBM3`` rather than ``NVIDIA H100 80GB HBM3``: cells are narrow, and all are NVIDIA's."""
    return name.replace("NVIDIA ", "").replace("GeForce ", "").strip() or name


def worst(levels: Iterable[str]) -> str:
    """The most serious of ``bad``, ``warn`` and ``ok``."""
    found = set(levels)
    return next((level for level in ("bad", "warn") if level in found), "ok")
