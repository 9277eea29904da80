# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Settings of NCCL and Gloo on each node, and why: interface, RDMA ports, GID index, time-outs. Pure.

What NCCL finds rightly by itself is left to it. Sources: NCCL's user guide of 2.30.7; NVIDIA/nccl#925 and #551 for RoCE
in a network namespace of its own; ``ranges`` for what it takes; NVIDIA/nccl#1996 (2.27.7 crashes in its RAS threads
without being asked), #1762 and #1718 (2.27.3, 2.26.5, when asked) and #1669 (2.26.2, when asked early).
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...module_utils.fabric.rdma import DISTANCES, switch_management
from .ranges import NcclError, as_text, complaint, shown

FINDS_GID = (2, 21, 0)
"""From here on NCCL finds the GID of RoCE by itself; before, it took index 0, which is RoCE v1 or link-local."""
RETRIES_SOCKETS = (2, 24, 0)
"""The first release with NCCL_SOCKET_RETRY_CNT."""
RAS_CRASHES = ((2, 26), (2, 27))
"""The releases, without their last number, whose RAS service can end the process that it is to watch."""

MARK = "@IFNAME@"
"""Stands for the interface of the training network, which the container's entry point finds."""

LONGEST_WAIT = 3600
"""Seconds that ``nccl_env_timeout`` may ask for."""

_LAYERS = ("infiniband", "ethernet")
_RETRIES = 7
"""NCCL_IB_RETRY_CNT by default, and at most."""
_SOCKET_SLEEP = 0.1
"""Seconds before the first new attempt; each further one waits that much longer."""


@dataclass(frozen=True)
class Setting:
    """One line of NCCL's file. ``reason`` is written above it."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device that works; ``rate`` in Gbit/s, 0 where unknown."""

    device: str
    number: int
    rate: float
    distances: Mapping[str, str]
    gids: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        """Return it as NCCL_IB_HCA has it."""
        return f"{self.device}:{self.number}"


def ports_of(fabric: Mapping[str, Any], layer: str) -> list[Port]:
    """Return the ports of a link layer that can carry data: active, and for RoCE with an IPv4 address of its own.

    Where a RoCE port's GID table could not be read it counts, as nothing rules it out. The ports by which NVSwitches
    are managed are active InfiniBand ports too, and lead to no other node.
    """
    found = []
    for device in fabric.get("infiniband") or []:
        for port in [] if device.get("switch_management") else device["ports"]:
            gids = tuple(port.get("gids") or ())
            if port["link_layer"] != layer or port["state"] != "active" or port["physical_state"] not in ("linkup", ""):
                continue
            if layer == "ethernet" and gids and not any(_routable(gid) for gid in gids):
                continue
            found.append(
                Port(device["name"], port["port"], port["rate_gbps"] or 0, device.get("gpu_distances") or {}, gids)
            )
    return found


def _routable(gid: Mapping[str, Any]) -> bool:
    return gid.get("type") == "roce_v2" and bool(gid.get("address"))


def common_rdma(fabrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return which RDMA all hosts have: ``link_layer`` (``infiniband``, ``ethernet`` for RoCE, or None) and ``reason``.

    NCCL does not mix: a node with RDMA and one without cannot talk, so what one lacks none uses. Of two layers that all
    have, the one with more Gbit/s on the host that has least of it.
    """
    rates = {
        layer: {host: sum(port.rate or 1 for port in ports_of(fabric, layer)) for host, fabric in fabrics.items()}
        for layer in _LAYERS
    }
    everywhere = [layer for layer in _LAYERS if fabrics and all(rates[layer].values())]
    if everywhere:
        best = max(everywhere, key=lambda layer: min(rates[layer].values()))
        more = ", the faster of two kinds" if len(everywhere) > 1 else ""
        return {"link_layer": best, "reason": f"every node has active {_words(best)} ports{more}"}
    having = [host for host in fabrics if any(rates[layer][host] for layer in _LAYERS)]
    if not having:
        return {"link_layer": None, "reason": f"no node has an active RDMA port{_not_counted(fabrics)}"}
    lacking = [host for host in fabrics if host not in having]
    if not lacking:
        return {"link_layer": None, "reason": "some nodes have InfiniBand alone and others RoCE alone"}
    few = ", ".join(lacking[:5]) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
    reason = f"not every node has an active RDMA port: none on {few}"
    return {"link_layer": None, "reason": reason + _not_counted({host: fabrics[host] for host in lacking})}


def _not_counted(fabrics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return in brackets which devices of these hosts are not a network, as people see active ports there."""
    found = {host: _management(fabric) for host, fabric in fabrics.items()}
    names = next((names for names in found.values() if names), "")
    return f" ({names} manage the NVSwitches, and lead to no other node)" if names else ""


def _management(fabric: Mapping[str, Any]) -> str:
    return ", ".join(switch_management(fabric.get("infiniband") or []))


def _words(layer: str) -> str:
    return "InfiniBand" if layer == "infiniband" else "RoCE"


def choose_ports(ports: list[Port]) -> tuple[list[Port], str]:
    """Return the ports for training, and in words which were left out: the slow ones, then those near to no GPU.

    A port half as fast as the fastest slows every ring it is in. Of the others each GPU keeps those nearest to it,
    which leaves out the cards of storage and management on big machines; where no distance is known, all stay.
    """
    fastest = max((port.rate for port in ports), default=0)
    fast = [port for port in ports if port.rate * 2 > fastest or not fastest]
    gpus = sorted({gpu for port in fast for gpu in port.distances})
    near: set[str] = set()
    for gpu in gpus:
        ranks = {port.name: DISTANCES.index(port.distances[gpu]) for port in fast if gpu in port.distances}
        near.update(name for name, rank in ranks.items() if rank == min(ranks.values()))
    kept = [port for port in fast if not gpus or port.name in near or not port.distances]
    left = [f"{port.name} is slower" for port in ports if port not in fast]
    left += [f"{port.name} is nearest to no GPU" for port in fast if port not in kept]
    return kept, "; ".join(left)


def gid_index(ports: list[Port], subnet: str) -> int:
    """Return the index of RoCE v2's GID with an IPv4 address, in the underlay's subnet where there is one.

    NCCL takes one index for all ports of a node. Raises NcclError where they have none in common.
    """
    network = ipaddress.ip_network(subnet)
    choices: list[list[int]] = []
    for port in ports:
        routable = [gid for gid in port.gids if _routable(gid)]
        inside = [gid for gid in routable if ipaddress.ip_address(gid["address"]) in network]
        choices.append([gid["index"] for gid in inside or routable])
    counted = Counter(index for choice in choices for index in set(choice))
    common = [index for index, times in counted.items() if times == len(ports)]
    if common:
        return min(common)
    listed = ", ".join(f"{port.name}: {choice[0] if choice else 'none'}" for port, choice in zip(ports, choices))
    raise NcclError(
        f"the RoCE ports have no GID index in common ({listed}), and NCCL before {shown(FINDS_GID)} takes one for all",
        f"use an image with NCCL {shown(FINDS_GID)} or later, or name ports with one index in NCCL_IB_HCA and "
        "the index in NCCL_IB_GID_INDEX, both in nccl_env_settings",
    )


def ib_timeout(seconds: int) -> int:
    """Return the NCCL_IB_TIMEOUT with which NCCL waits at least that long: 4.096 us * 2^n for each of seven retries."""
    return next(n for n in range(1, 32) if 4.096e-6 * 2**n * _RETRIES >= seconds or n == 31)


def socket_retries(seconds: int) -> int:
    """Return the NCCL_SOCKET_RETRY_CNT with which NCCL tries at least that long: the n-th pause is n * 100 ms."""
    count = 1
    while count * (count + 1) / 2 * _SOCKET_SLEEP < seconds:
        count += 1
    return count


def own_settings(requested: Mapping[str, Any], fabric: Mapping[str, Any]) -> list[Setting]:
    """Return what this role sets on a node; ``requested`` is documented at ``nccl_plan``."""
    overlay = requested["network_mode"] == "overlay"
    found = [
        Setting(
            "NCCL_SOCKET_IFNAME",
            f"={requested['interface']}",
            f"the interface in {requested['subnet']}; = asks for that very name, without it eth1 would also be eth10",
        )
    ]
    found.extend(_rdma_settings(requested, fabric, overlay))
    seconds, release = requested["timeout"], requested["release"]
    if seconds and not overlay and any(setting.name == "NCCL_IB_HCA" for setting in found):
        found.append(
            Setting("NCCL_IB_TIMEOUT", str(ib_timeout(seconds)), f"nccl_env_timeout: at least {seconds} s on RDMA")
        )
    if seconds and (release is None or release >= RETRIES_SOCKETS):
        reason = f"nccl_env_timeout: at least {seconds} s to connect"
        found.append(Setting("NCCL_SOCKET_RETRY_CNT", str(socket_retries(seconds)), reason))
    if release is not None and release[:2] in RAS_CRASHES:
        reason = f"NCCL {shown(release)} can crash in its RAS service (NVIDIA/nccl#1996, #1669), which no job needs"
        found.append(Setting("NCCL_RAS_ENABLE", "0", reason))
    if requested["debug"]:
        found.append(Setting("NCCL_DEBUG", requested["debug"], "nccl_env_debug"))
    return found


def _rdma_settings(requested: Mapping[str, Any], fabric: Mapping[str, Any], overlay: bool) -> list[Setting]:
    rdma, release = requested["rdma"], requested["release"]
    if overlay:
        reason = "an overlay is a network namespace of its own, where RoCE's GIDs are not, and VXLAN carries no RDMA"
        return [Setting("NCCL_IB_DISABLE", "1", f"{reason}; cluster_network_mode: host would use it")]
    given = requested["settings"]
    if wants_sockets(given):
        return []
    if wants_sockets(requested["environment"]):
        return [Setting("NCCL_IB_DISABLE", "1", "nccl_env_environment")]
    if not any(ports_of(fabric, layer) for layer in _LAYERS):
        # Else NCCL would take the ports that manage NVSwitches: it knows them from others no more than sysfs does.
        disabled = _management(fabric) and "NCCL_IB_HCA" not in given
        return [Setting("NCCL_IB_DISABLE", "1", rdma["reason"])] if disabled else []
    layer = rdma["link_layer"]
    if layer is None:
        return [Setting("NCCL_IB_DISABLE", "1", f"NCCL does not mix RDMA and sockets, and {rdma['reason']}")]
    ports, left = choose_ports(ports_of(fabric, layer))
    management = _management(fabric)
    left = "; ".join(filter(None, [left, f"{management} manage the NVSwitches" if management else ""]))
    reason = f"{rdma['reason']}; these are active, fast and near a GPU" + (f"; left out: {left}" if left else "")
    found = [Setting("NCCL_IB_HCA", f"={','.join(port.name for port in ports)}", reason)]
    if layer == "ethernet" and release is not None and release < FINDS_GID and "NCCL_IB_GID_INDEX" not in given:
        index = gid_index(ports, requested["subnet"])
        reason = f"RoCE v2 with an IPv4 address; NCCL {shown(release)} does not find it, {shown(FINDS_GID)} does"
        found.append(Setting("NCCL_IB_GID_INDEX", str(index), reason))
    return found


def wants_sockets(given: Mapping[str, Any]) -> bool:
    """Return whether settings or an environment switch RDMA off, which is the user's way to want sockets."""
    return as_text(given.get("NCCL_IB_DISABLE", "")) == "1" or as_text(given.get("NCCL_NET", "")).lower() == "socket"


def chooses_rdma(
    network_mode: str,
    rdma: Mapping[str, Any],
    fabric: Mapping[str, Any],
    *,
    settings: Mapping[str, Any],
    environment: Mapping[str, Any],
) -> bool:
    """Return whether a node's settings name HCAs to NCCL, for roles that need to know no more of them."""
    if not rdma:
        return False
    requested = {"rdma": rdma, "settings": settings, "environment": environment, "release": None}
    own = _rdma_settings(requested, fabric, network_mode == "overlay")
    return uses_rdma({**{one.name: one.value for one in own}, **{str(k): as_text(v) for k, v in settings.items()}})


def uses_rdma(settings: Mapping[str, str]) -> bool:
    """Return whether a node's settings, as ``nccl_plan`` returns them, name HCAs for NCCL to use."""
    return bool(settings.get("NCCL_IB_HCA")) and not wants_sockets(settings)


def nccl_plan(requested: Mapping[str, Any], fabric: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``settings`` by name, and ``lines`` for NCCL's file, each setting with its reason above it.

    ``requested``: ``network_mode``, ``interface``, ``subnet`` (of the training network), ``rdma``
    (of ``common_rdma``), ``release`` (of NCCL, or None), ``timeout`` (seconds, 0: NCCL's own), ``debug``,
    ``environment`` (of ranks, as far as the user gives it), and ``settings``, which win key by key; an empty value
    takes a setting out. Raises NcclError.
    """
    given = requested["settings"]
    reported = {name: complaint(name, value, requested["release"]) for name, value in given.items()}
    wrong = [f"{name} {text}" for name, text in reported.items() if text]
    if wrong:
        raise NcclError("; ".join(wrong), "correct it in nccl_env_settings")
    settings = {setting.name: setting for setting in own_settings(requested, fabric)}
    for name, value in given.items():
        settings[name] = Setting(name, as_text(value), "nccl_env_settings")
    kept = [settings[name] for name in sorted(settings) if settings[name].value != ""]
    return {
        "settings": {setting.name: setting.value for setting in kept},
        "lines": [line for setting in kept for line in (f"# {setting.reason}", f"{setting.name}={setting.value}")],
    }


def unknown_interfaces(value: str, names: list[str], *, exact: bool) -> list[str]:
    """Return what in NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names none of these interfaces.

    NCCL takes the beginning of a name unless the list begins with ``=``; Gloo takes names alone (``exact``).
    """
    if value.startswith("^"):
        return []
    whole = exact or value.startswith("=")
    wanted = [part for part in value.lstrip("=").split(",") if part and part != MARK]
    return [part for part in wanted if not any(name == part if whole else name.startswith(part) for name in names)]
