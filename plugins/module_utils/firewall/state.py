# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which firewall of a host keeps packets out, and what of it already lets the cluster's packets in.

Only a firewall that is in use counts: ufw and firewalld where they are switched on, else the rules of iptables and
nftables where these drop or reject anything that comes in. Docker's own chains are none of this. Which ports anyone
may reach is another question: most rules that refuse something refuse little.
Formats: iptables(8) ``-S``, libnftables-json(5), and the tuples that ufw keeps in its user.rules.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ..common.command_io import CommandResult
from .open_iptables import iptables_open
from .open_nftables import nftables_open
from .open_ports import ranges

UFW, FIREWALLD, IPTABLES, NFTABLES = "ufw", "firewalld", "iptables", "nftables"
IP6TABLES = "ip6tables"
IF_INET6 = "/proc/net/if_inet6"
"""The host's addresses of IPv6, with the interface last."""

IPTABLES_CHAIN = "SWARMSPEED-"
NFTABLES_CHAIN = "swarmspeed_"
"""How the names of our own chains begin; the rest is the cluster's name."""

EPHEMERAL = (32768, 60999)
"""The kernel's default of net.ipv4.ip_local_port_range."""

_REFUSING = ("DROP", "REJECT")


class FirewallIO(Protocol):
    """What is read from a host; tests hand in a fake."""

    def read(self, path: str) -> str:
        """Return a file's text, empty where it cannot be read."""

    def run(self, *command: str) -> CommandResult | None:
        """Run a reading command, or return None where it is not installed."""

    def iptables(self, program: str = "iptables") -> bool:
        """Return whether iptables or ip6tables can be queried without loading a module into the kernel."""


def gather_firewall(io: FirewallIO) -> dict[str, Any]:
    """Return what ``node_facts`` keeps as ``firewall``."""
    rules = {name: _printed(io.run(name, "-S")) if io.iptables(name) else "" for name in (IPTABLES, IP6TABLES)}
    rules["nft"] = _printed(io.run("nft", "-j", "list", "ruleset"))
    return {**_in_use(io, rules), "open": _open(io, rules)}


def _open(io: FirewallIO, rules: Mapping[str, str]) -> dict[str, Any]:
    """Return the ports that anyone may reach, by family; none of IPv6 where the host has no address of it."""
    found = {}
    for family, program in (("ipv4", IPTABLES), ("ipv6", IP6TABLES)):
        packets = iptables_open(rules[program]) & nftables_open(rules["nft"], family, bool(rules[program]))
        addressed = family == "ipv4" or any(line.split()[-1:] != ["lo"] for line in io.read(IF_INET6).splitlines())
        found[family] = ranges(packets if addressed else 0)
    return found


def _in_use(io: FirewallIO, rules: Mapping[str, str]) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "active": [],
        "ufw": [],
        "iptables": None,
        "nftables": [],
        "ephemeral_ports": _ports(io.read("/proc/sys/net/ipv4/ip_local_port_range")),
    }
    if re.search(r"^ENABLED=[\"']?yes", io.read("/etc/ufw/ufw.conf"), re.MULTILINE | re.IGNORECASE):
        return {**facts, "active": [UFW], "ufw": parse_ufw(io.read("/etc/ufw/user.rules"))}
    running = io.run("firewall-cmd", "--state")
    if running is not None and running.rc == 0:
        return {**facts, "active": [FIREWALLD]}
    chains = parse_iptables(rules[IPTABLES])
    if chains is not None and (chains["refuses"] or chains["jump"]):
        facts["iptables"] = chains
    facts["nftables"] = [chain for chain in parse_nftables(rules["nft"]) if chain["refuses"] or chain["jump"]]
    facts["active"] = [
        name
        for name, refuses in (
            (IPTABLES, bool(facts["iptables"] and facts["iptables"]["refuses"])),
            (NFTABLES, any(chain["refuses"] for chain in facts["nftables"])),
        )
        if refuses
    ]
    return facts


def _printed(answer: CommandResult | None) -> str:
    return answer.stdout if answer is not None and answer.rc == 0 else ""


def _ports(text: str) -> list[int]:
    numbers = [int(word) for word in text.split() if word.isdecimal()]
    return numbers if len(numbers) == 2 else list(EPHEMERAL)


def parse_ufw(text: str) -> list[dict[str, str]]:
    """Return the rules of ufw that carry a comment: protocol, ports, source and comment."""
    found = []
    for line in text.splitlines():
        if not line.startswith("### tuple ### allow ") or " comment=" not in line:
            continue
        words, dummy, comment = line.partition(" comment=")
        fields = words.split()[4:]
        try:
            reported = bytes.fromhex(comment.strip()).decode("utf-8")
        except ValueError:
            continue
        if len(fields) >= 5:
            found.append({"protocol": fields[0], "ports": fields[1], "source": fields[4], "comment": reported})
    return found


def parse_iptables(text: str) -> dict[str, Any] | None:
    """Return whether INPUT ``refuses`` anything, and our ``jump`` (its comment) and number of ``rules``."""
    rules: dict[str, list[list[str]]] = {}
    refuses = False
    for line in text.splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if words[:2] == ["-P", "INPUT"] and words[-1] != "ACCEPT":
            refuses = True
        elif words[:1] == ["-A"] and len(words) > 1:
            rules.setdefault(words[1], []).append(words[2:])
    if not rules and not refuses:
        return None
    jump = next((rule for rule in rules.get("INPUT", []) if _target(rule).startswith(IPTABLES_CHAIN)), None)
    chain = _target(jump) if jump is not None else ""
    return {
        "refuses": refuses or _chain_refuses("INPUT", rules, set()),
        "jump": _after(jump, "--comment") if jump is not None else "",
        "chain": chain,
        "rules": len(rules.get(chain, [])) if chain else 0,
    }


def _after(rule: list[str], option: str) -> str:
    return rule[rule.index(option) + 1] if option in rule[:-1] else ""


def _target(rule: list[str]) -> str:
    return _after(rule, "-j") or _after(rule, "-g")


def _chain_refuses(chain: str, rules: Mapping[str, list[list[str]]], seen: set[str]) -> bool:
    seen.add(chain)
    for rule in rules.get(chain, []):
        target = _target(rule)
        # The engine drops what should have come encrypted in an overlay: that is as it should be.
        if target in _REFUSING and _after(rule, "--pol") != "none":
            return True
        if target.startswith(("DOCKER", IPTABLES_CHAIN)) or target in seen:
            continue
        if target in rules and _chain_refuses(target, rules, seen):
            return True
    return False


def parse_nftables(text: str) -> list[dict[str, Any]]:
    """Return each chain that filters what comes in to the host, but for those that another tool keeps."""
    try:
        listed = json.loads(text)["nftables"] if text.strip() else []
    except (ValueError, KeyError, TypeError):
        return []
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    chains = [entry["chain"] for entry in entries if isinstance(entry.get("chain"), dict)]
    rules: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for rule in (entry["rule"] for entry in entries if isinstance(entry.get("rule"), dict)):
        rules.setdefault(_key(rule, "chain"), []).append(rule)
    return [
        _base_chain(chain, rules)
        for chain in chains
        if chain.get("hook") == "input" and chain.get("type") == "filter" and not _of_another_tool(chain)
    ]


def _key(entry: Mapping[str, Any], name: str) -> tuple[str, str, str]:
    return str(entry.get("family")), str(entry.get("table")), str(entry.get(name))


def _of_another_tool(chain: Mapping[str, Any]) -> bool:
    # iptables writes its chains in capitals; no one else does.
    family, table, name = _key(chain, "name")
    by_iptables = table == "filter" and name == "INPUT"
    return by_iptables or table == "firewalld" or table.startswith("docker") or family not in ("ip", "inet")


def _base_chain(chain: Mapping[str, Any], rules: Mapping[tuple[str, str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    key = _key(chain, "name")
    jump = next((rule for rule in rules.get(key, []) if _jumps(rule, NFTABLES_CHAIN)), None)
    ours = _jumps(jump, NFTABLES_CHAIN) if jump is not None else ""
    return {
        "family": key[0],
        "table": key[1],
        "name": key[2],
        "refuses": chain.get("policy") == "drop" or _nft_refuses(key, rules, set()),
        "jump": str(jump.get("comment") or "") if jump is not None else "",
        "chain": ours,
        "rules": len(rules.get((*key[:2], ours), [])) if ours else 0,
    }


def _statements(rule: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    expressions = rule.get("expr")
    return [part for part in expressions if isinstance(part, dict)] if isinstance(expressions, list) else []


def _targets(rule: Mapping[str, Any]) -> list[str]:
    return [
        str(part[verb].get("target"))
        for part in _statements(rule)
        for verb in ("jump", "goto")
        if isinstance(part.get(verb), dict)
    ]


def _jumps(rule: Mapping[str, Any], beginning: str) -> str:
    return next((target for target in _targets(rule) if target.startswith(beginning)), "")


def _nft_refuses(
    key: tuple[str, str, str],
    rules: Mapping[tuple[str, str, str], list[dict[str, Any]]],
    seen: set[tuple[str, str, str]],
) -> bool:
    seen.add(key)
    for rule in rules.get(key, []):
        if any("drop" in part or "reject" in part for part in _statements(rule)):
            return True
        for target in _targets(rule):
            below = (*key[:2], target)
            if below not in seen and not target.startswith(NFTABLES_CHAIN) and _nft_refuses(below, rules, seen):
                return True
    return False
