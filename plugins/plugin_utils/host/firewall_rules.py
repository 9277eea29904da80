# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a host's firewall must let in for the cluster, and how that is done in the firewall that is in use.

Pure. Let in are the addresses of the other nodes and no others. Rules of ufw bear the comment ``swarmspeed <cluster>``.
In iptables and nftables they stand in a chain of their own; the jump to it bears that comment and a hash of the rules.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.firewall.state import EPHEMERAL, FIREWALLD, IPTABLES, IPTABLES_CHAIN, NFTABLES, NFTABLES_CHAIN, UFW

AUTO, KEEP = "auto", "keep"
SCRIPT_PATH = "/usr/local/sbin/swarmspeed-firewall"
UNIT = "swarmspeed-firewall.service"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
MANAGEMENT_PORT, GOSSIP_PORT = 2377, 7946
"""Of swarm: https://docs.docker.com/engine/swarm/swarm-tutorial/#open-protocols-and-ports-between-the-hosts"""
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?/(tcp|udp)")
_CHAIN_LENGTH = 28
"""Characters that iptables allows."""


class FirewallError(Exception):
    """What is requested cannot be opened; the text says what, and what to write instead."""


@dataclass(frozen=True)
class Opening:
    """``protocol`` is ``tcp``, ``udp`` or ``esp``; ``ports`` are ranges, and none for ``esp``."""

    protocol: str
    ports: tuple[tuple[int, int], ...] = ()

    def text(self, between: str, comma: str = ",") -> str:
        """Return the ports in a tool's words."""
        return comma.join(str(low) if low == high else f"{low}{between}{high}" for low, high in self.ports)


CHANNEL_PORTS = (29480, 29499)
"""Where the supervisors of a job talk (module_utils/job/supervisor/leader.py)."""
RENDEZVOUS_PORTS = (29500, 29599)
"""Where the ranks of a job meet when no port is given (module_utils/job/supervisor/leader.py)."""


@dataclass(frozen=True)
class Wanted:
    """What is requested of a host. ``peers`` are the addresses of the other nodes."""

    cluster: str
    peers: tuple[str, ...]
    openings: tuple[Opening, ...]
    state: str = AUTO

    @property
    def comment(self) -> str:
        return f"swarmspeed {self.cluster}"


def parse_ports(entries: Iterable[Any]) -> list[tuple[str, int, int]]:
    """Read ``8000/tcp`` or ``9000-9010/udp``. Raises ``FirewallError``."""
    found = []
    for entry in entries:
        match = _PORTS.fullmatch(str(entry).strip())
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if match is None or not 1 <= low <= high <= 65535:
            raise FirewallError(
                f"host_firewall_ports: '{str(entry)[:40]}' is neither a port such as 8000/tcp nor a range such as "
                "9000-9010/udp"
            )
        found.append((match[3], low, high))
    return found


def openings(request: Mapping[str, Any], ephemeral: Sequence[int]) -> tuple[Opening, ...]:
    """Return what the other nodes must reach. Raises ``FirewallError``.

    With the host's own network the ranks meet on ports that the kernel gives them (NCCL and Gloo ask for any), so
    these are let in too; in an overlay all that is inside the encapsulated packets.
    """
    ports: list[tuple[str, int, int]] = []
    if not request.get("bare"):  # without containers there is no swarm, and no sshd of theirs
        ports += [("tcp", GOSSIP_PORT, GOSSIP_PORT), ("udp", GOSSIP_PORT, GOSSIP_PORT)]
        if request.get("manager"):
            ports.append(("tcp", MANAGEMENT_PORT, MANAGEMENT_PORT))
        if request.get("network_mode") == "host":
            ports.append(("tcp", int(request["ssh_port"]), int(request["ssh_port"])))
    if request.get("network_mode") == "host":
        number = int(request["rendezvous_port"])
        ports.append(("tcp", *(CHANNEL_PORTS)))
        ports.append(("tcp", *((number, number) if number else RENDEZVOUS_PORTS)))
        low, high = ephemeral if len(ephemeral) == 2 else EPHEMERAL
        ports.append(("tcp", int(low), int(high)))
    else:
        number = int(request["data_path_port"])
        ports.append(("udp", number, number))
    ports += parse_ports(request.get("ports") or [])
    found = [
        Opening(protocol, merged([(low, high) for name, low, high in ports if name == protocol]))
        for protocol in ("tcp", "udp")
    ]
    if request.get("encrypted") and request.get("network_mode") != "host":
        found.append(Opening("esp"))
    return tuple(found)


def merged(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges in order, those that overlap or touch made one."""
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return tuple(joined)


def parse_request(request: Mapping[str, Any], ephemeral: Sequence[int]) -> Wanted:
    """Read what the role asks. Raises ``FirewallError``."""
    addresses = request.get("addresses") or {}
    own = addresses.get(request["host"])
    peers = sorted({str(ipaddress.IPv4Address(address)) for address in addresses.values() if address != own})
    state = str(request.get("state"))
    return Wanted(str(request["cluster"]), tuple(peers), openings(request, ephemeral), state)


def iptables_rules(wanted: Wanted) -> list[str]:
    """Return the rules of our chain, without its name."""
    rules = []
    for peer in wanted.peers:
        for opening in wanted.openings:
            ports = f" -m multiport --dports {opening.text(':')}" if opening.ports else ""
            rules.append(f"-s {peer}/32 -p {opening.protocol}{ports} -j ACCEPT")
    return rules


def nftables_rules(wanted: Wanted) -> list[str]:
    """Return the rules of our chain: all nodes in one, as a set."""
    if not wanted.peers:
        return []
    sources = f"ip saddr {{ {', '.join(wanted.peers)} }}"
    return [
        f"{sources} {opening.protocol} dport {{ {opening.text('-', ', ')} }} accept"
        if opening.ports
        else f"{sources} ip protocol {opening.protocol} accept"
        for opening in wanted.openings
    ]


def ufw_rules(wanted: Wanted) -> list[dict[str, str]]:
    """Return the rules as ``node_facts`` finds them."""
    return [
        {
            "protocol": opening.protocol,
            "ports": opening.text(":") or "any",
            "source": peer,
            "comment": wanted.comment,
        }
        for peer in wanted.peers
        for opening in wanted.openings
    ]


def ufw_command(rule: Mapping[str, str], *, delete: bool = False) -> str:
    """Return the command that makes a rule the first of all, or removes it."""
    words = ["ufw", "delete" if delete else "prepend", "allow", "proto", rule["protocol"], "from", rule["source"]]
    words += ["to", "any", *(["port", rule["ports"]] if rule["ports"] != "any" else [])]
    return shlex.join(words if delete else [*words, "comment", rule["comment"]])


def firewalld_name(cluster: str) -> str:
    """Return the name of our policy: firewalld allows 17 characters."""
    return f"swarmspeed-{_hash(cluster)[:6]}"


def policy_path(cluster: str) -> str:
    """Return the file of our policy in firewalld."""
    return f"/etc/firewalld/policies/{firewalld_name(cluster)}.xml"


def firewalld_policy(wanted: Wanted) -> str:
    """Return the file of a policy of our own, which comes before the zones: firewalld.policy(5)."""
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<policy priority="-10" target="CONTINUE">',
        f"  <short>{wanted.comment}</short>",
        '  <ingress-zone name="ANY"/>',
        '  <egress-zone name="HOST"/>',
    ]
    for peer in wanted.peers:
        for opening in wanted.openings:
            source = f'  <rule family="ipv4"><source address="{peer}"/>'
            if not opening.ports:
                lines.append(f'{source}<protocol value="{opening.protocol}"/><accept/></rule>')
            for low, high in opening.ports:
                port = str(low) if low == high else f"{low}-{high}"
                lines.append(f'{source}<port port="{port}" protocol="{opening.protocol}"/><accept/></rule>')
    return "\n".join([*lines, "</policy>", ""])


def iptables_chain(cluster: str) -> str:
    """Return the name of our chain in iptables."""
    return _named(IPTABLES_CHAIN, cluster)


def nftables_chain(cluster: str) -> str:
    """Return the name of our chain in nftables."""
    return _named(NFTABLES_CHAIN, cluster).replace("-", "_")


def _named(beginning: str, cluster: str) -> str:
    room = _CHAIN_LENGTH - len(beginning)
    return beginning + (cluster if len(cluster) <= room else _hash(cluster)[:room])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def mark(wanted: Wanted, rules: Sequence[str]) -> str:
    """Return the comment of the jump to our chain, which shows whether the chain is as it is wanted."""
    return f"{wanted.comment} {_hash(chr(10).join(rules))[:12]}"[-120:]


def strings(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list of the facts."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def in_use(facts: Mapping[str, Any], wanted: Wanted) -> tuple[str, ...]:
    """Return the firewalls in which something is to be opened: none where there is no one to let in."""
    active = facts.get("active")
    if wanted.state == KEEP or not wanted.peers or not isinstance(active, list):
        return ()
    return tuple(name for name in (UFW, FIREWALLD, IPTABLES, NFTABLES) if name in active)
