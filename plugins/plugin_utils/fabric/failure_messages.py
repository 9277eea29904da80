# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The most likely reason of what failed between two nodes, and what to do: what each check's failure means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Callable

from ..launch.cross_node_checks import SSH_REMEDIES
from ..launch.node import SITE

NO_ANSWER = "no answer"
GOSSIP = 7946
VXLAN = 50
"""Bytes that VXLAN adds to a packet (moby, overlay.go, vxlanEncap)."""

Failed = Mapping[tuple[str, str, str, str], Any]


def explain(one: Any, failed: Failed, wanted: Any) -> dict[str, Any]:
    """``reason``, ``remedy`` and whether it ``follows`` from another failure, of a Finding that failed."""
    cause = _cause(one, failed, wanted)
    if cause:
        reason, remedy, follows = f"follows from {cause}", "fix that first", True
    else:
        follows = False
        kind = "udp" if one.check.startswith("udp ") else one.check
        reason, remedy = _WORDS[(one.network if wanted.data_port else "flat", kind)](one, failed, wanted)
    return {"reason": reason, "remedy": remedy, "follows": follows}


def _between(one: Any, failed: Failed, network: str, *checks: str) -> str:
    """The first of these checks that failed between the same two nodes, in either direction; empty where none did."""
    for check in checks:
        for source, target in ((one.source, one.target), (one.target, one.source)):
            if (source, target, network, check) in failed:
                return f"{check} from {source} to {target}"
    return ""


def _cause(one: Any, failed: Failed, wanted: Any) -> str:
    if one.follows:
        return f"its name, which {one.source} does not find"
    if not wanted.data_port:
        return ""
    data, gossip = f"udp {wanted.data_port}", f"udp {GOSSIP}"
    if one.network == "host":
        blocked = failed.get((one.source, one.target, "host", "tcp"))
        nothing = all((one.source, one.target, "host", check) in failed for check in ("tcp", data, gossip))
        return f"tcp from {one.source} to {one.target}" if nothing and one is not blocked else ""
    if one.check == "name":
        return _between(one, failed, "host", "tcp", gossip)
    if one.check == "mtu":
        return _between(one, failed, "host", data, "mtu")
    return "" if one.check == "clock" else _between(one, failed, "host", "tcp", data)


def _host_tcp(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    port = (re.findall(r"port (\d+):", one.reported) or [str(GOSSIP)])[0]
    if NO_ANSWER not in one.reported and "nreachable" not in one.reported and "No route" not in one.reported:
        return (
            f"port closed: the engine of {one.target} does not listen on it, as it is down or not in the swarm",
            f"{SITE} docker,swarm",
        )
    checks = ("tcp", f"udp {wanted.data_port}", f"udp {GOSSIP}")
    if all((one.source, one.target, "host", check) in failed for check in checks):
        return (
            f"nothing of the swarm passes from {one.source} to {one.target}: a firewall, or no route",
            f"open 2377/tcp, {GOSSIP}/tcp, {GOSSIP}/udp and {wanted.data_port}/udp between these hosts; "
            f"on the hosts themselves by {SITE} host",
        )
    return (
        f"port closed: a firewall on {one.target} or between the two drops {port}/tcp",
        f"open {port}/tcp there; on the host itself by {SITE} host",
    )


def _udp(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    port = one.check.split()[1]
    use = "no packet of the overlay arrives" if port == str(wanted.data_port) else "names in the overlay go out of date"
    return (
        f"port closed: a firewall on {one.target} or between the two drops {port}/udp, so {use}",
        f"open {port}/udp there; on the host itself by {SITE} host",
    )


def _host_mtu(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    size = int(one.value or 0)
    return (
        "MTU: the interfaces claim more than the link between the hosts carries",
        f"set the MTU of the interfaces to at most {size} on all hosts, or that of the switch higher; "
        f"then {SITE} overlay_network",
    )


def _overlay_mtu(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    size = int(one.value or 0)
    return (
        "MTU: the overlay network claims more than the hosts' network carries",
        f"remove overlay_network_mtu, or set it to at most {size + VXLAN}, and {SITE} "
        "overlay_network,training_container with overlay_network_allow_recreate: true",
    )


def _flat_mtu(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    size = int(one.value or 0)
    reason = "MTU: the interfaces claim more than the link between the hosts carries"
    return reason, f"set the MTU of the interfaces to at most {size} on all hosts, or that of the switch higher"


def _name(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    if " leads to " in one.reported:
        return (
            "another container has this name, or the overlay's DNS not converged: it still gives an old address",
            f"run verify.yml again in a minute; if it stays, docker ps on all nodes, and {SITE} training_container",
        )
    return (
        "DNS not converged: the overlay's gossip has not brought this name yet",
        f"run verify.yml again in a minute; if it stays, {SITE} overlay_network,training_container",
    )


def _overlay_tcp(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    if "something else" in one.reported:
        return "two containers with one address", f"{SITE} overlay_network,training_container"
    if wanted.encrypted:
        return (
            "the encrypted overlay carries nothing: IP protocol 50 (ESP) is blocked between the hosts, or their "
            "kernel has no ESP",
            "let protocol 50 pass, or set overlay_network_encrypted: false with overlay_network_allow_recreate: true",
        )
    return (
        f"the overlay lost its way between the two, although {wanted.data_port}/udp passes between the hosts",
        f"restart the engine on {one.target} while no job runs (systemctl restart docker), "
        f"then {SITE} training_container",
    )


def _flat_tcp(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    return (
        f"port closed: a firewall on {one.target} or between the two drops TCP in {wanted.rendezvous}",
        f"open {wanted.rendezvous}/tcp between the nodes; on the host itself by {SITE} host",
    )


def _ssh(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    remedy = next((text for pattern, text in SSH_REMEDIES if re.search(pattern, one.reported)), f"{SITE} ssh_trust")
    if re.search(r"Permission denied|Host key|identification|Too many auth", one.reported):
        return "key: the key of the cluster, or the pinned host key, is not that of the container", remedy
    if "refused" in one.reported:
        return f"port closed: no sshd listens on port {wanted.ssh_port} in the container of {one.target}", remedy
    if re.search(r"not resolve|Name or service|name resolution", one.reported):
        return "DNS not converged", remedy
    if re.search(r"timed out|no answer|unreachable|No route", one.reported):
        return f"port closed: {wanted.ssh_port}/tcp is dropped on the way", remedy
    return "ssh itself, see its words", remedy


def _clock(one: Any, failed: Failed, wanted: Any) -> tuple[str, str]:
    return (
        f"its time is not synchronised; {wanted.clock:g} s are allowed",
        f"timedatectl set-ntp true on {one.target}, with a time server that it reaches",
    )


_WORDS: dict[tuple[str, str], Callable[[Any, Failed, Any], tuple[str, str]]] = {
    ("host", "tcp"): _host_tcp,
    ("host", "udp"): _udp,
    ("host", "mtu"): _host_mtu,
    ("container", "name"): _name,
    ("container", "tcp"): _overlay_tcp,
    ("container", "mtu"): _overlay_mtu,
    ("container", "ssh"): _ssh,
    ("container", "clock"): _clock,
    ("flat", "name"): _name,
    ("flat", "tcp"): _flat_tcp,
    ("flat", "mtu"): _flat_mtu,
    ("flat", "ssh"): _ssh,
    ("flat", "clock"): _clock,
}
"""By network (``flat``: the hosts' own, without an overlay) and check."""
