# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ports nftables leaves open to anyone, by what ``nft -j list ruleset`` prints (libnftables-json(5))."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable

from .open_ports import ALL, ALWAYS, NEVER, PERHAPS, Rule, everybody, held, inside, of_protocol, reached, span

_LAYERS = ("ip", "ip6", "ether", "vlan", "th", "")
"""What carries packets of tcp and udp."""


def nftables_open(text: str, family: str, iptables: bool) -> int:
    """What may get through all chains of ``nft -j list ruleset`` that see what comes in to the host.

    ``iptables``: the chains that iptables keeps there have been read by its own words.
    """
    try:
        listed = json.loads(text)["nftables"] if text.strip() else []
    except (ValueError, KeyError, TypeError, RecursionError):
        return ALL
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    families = ("inet", "ip" if family == "ipv4" else "ip6")
    sets: dict[tuple[str, str], Any] = {}
    rules: dict[tuple[str, str, str], list[Rule]] = {}
    for entry in entries:
        for named in (entry.get("set"), entry.get("map")):
            if isinstance(named, dict) and named.get("family") in families:
                sets[str(named.get("table")), str(named.get("name"))] = named.get("elem")
    for entry in entries:
        rule = entry.get("rule")
        if isinstance(rule, dict) and rule.get("family") in families:
            place = str(rule["family"]), str(rule.get("table")), str(rule.get("chain"))
            rules.setdefault(place, []).extend(_NftRule(sets, place[1], family).of(rule.get("expr")))
    packets = ALL
    for chain in (entry["chain"] for entry in entries if isinstance(entry.get("chain"), dict)):
        table, name = str(chain.get("table")), str(chain.get("name"))
        if chain.get("family") not in families or chain.get("type") != "filter":
            continue
        if chain.get("hook") not in ("input", "prerouting") or (iptables and (table, name) == ("filter", "INPUT")):
            continue
        packets = reached(_of_table(rules, chain), name, chain.get("policy", "accept") == "accept", packets)
    return packets


def _of_table(
    rules: Mapping[tuple[str, str, str], Sequence[Rule]], chain: Mapping[str, Any]
) -> Callable[[str], Sequence[Rule]]:
    return lambda name: rules.get((str(chain["family"]), str(chain.get("table")), name), ())


class _NftRule:
    """Reads the statements of one rule; a map of verdicts makes several of it."""

    def __init__(self, sets: Mapping[tuple[str, str], Any], table: str, family: str) -> None:
        self._sets, self._table, self._family = sets, table, family

    def of(self, statements: Any) -> list[Rule]:
        ports, holds = ALL, ALWAYS
        for part in statements if isinstance(statements, list) else []:
            if not isinstance(part, dict):
                continue
            if isinstance(part.get("match"), dict):
                named, held_here = self._match(part["match"])
                ports, holds = ports & named, min(holds, held_here)
            elif isinstance(part.get("vmap"), dict):
                return self._mapped(part["vmap"], ports, holds)
            elif "limit" in part or "xt" in part or "connlimit" in part or "ct count" in part:
                holds = min(holds, PERHAPS)
            rule = _nft_verdict(part, ports, holds)
            if rule is not None:
                return [rule]
        return []

    def _mapped(self, vmap: Mapping[str, Any], ports: int, holds: int) -> list[Rule]:
        found = []
        pairs = self._elements(vmap.get("data"))
        if pairs is None:
            return [Rule(ports, min(holds, PERHAPS), "accept")]
        for pair in pairs:
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[1], dict):
                named, held_here = self._match({"op": "==", "left": vmap.get("key"), "right": pair[0]})
                rule = _nft_verdict(pair[1], ports & named, min(holds, held_here))
                found += [rule] if rule is not None else []
        return found

    def _elements(self, right: Any) -> list[Any] | None:
        """The elements of a set, None where it is not known."""
        if isinstance(right, str) and right.startswith("@"):
            right = self._sets.get((self._table, right[1:]))
            return right if isinstance(right, list) else None
        if isinstance(right, dict) and isinstance(right.get("set"), (list, str, int)):
            return right["set"] if isinstance(right["set"], list) else [right["set"]]
        return right if isinstance(right, list) else [right]

    def _match(self, match: Mapping[str, Any]) -> tuple[int, int]:
        """The ports that are meant, and whether the condition holds."""
        left, negated = match.get("left"), match.get("op") == "!="
        elements = self._elements(match.get("right"))
        kind, protocol, key = _left(left)
        if elements is None:
            few = kind == "payload" and key in ("saddr", "ether")
            return ALL, (ALWAYS if negated else NEVER) if few else PERHAPS
        elements = [
            one["elem"].get("val") if isinstance(one, dict) and isinstance(one.get("elem"), dict) else one
            for one in elements
        ]
        if kind == "payload" and key == "dport" and protocol in ("tcp", "udp", "th"):
            named = _nft_ports(elements)
            named = ~named & ALL if negated else named
            return named & (of_protocol(protocol) or ALL), ALWAYS
        if (kind, key) in (("meta", "l4proto"), ("payload", "protocol"), ("payload", "nexthdr")):
            named = 0
            for one in elements:
                named |= of_protocol(str(one))
            return (~named & ALL if negated else named), ALWAYS
        if kind == "payload" and protocol in ("ip", "ip6") and protocol != {"ipv4": "ip", "ipv6": "ip6"}[self._family]:
            return 0, NEVER
        if kind == "payload" and protocol not in _LAYERS:
            return of_protocol(protocol), PERHAPS  # such as the flags of tcp, or the type of icmp
        return ALL, _nft_holds(kind, key, elements, negated, self._family)


def _left(left: Any) -> tuple[str, str, str]:
    for kind in ("payload", "meta", "ct"):
        found = left.get(kind) if isinstance(left, dict) else None
        if isinstance(found, dict):
            return kind, str(found.get("protocol", "")), str(found.get("field") or found.get("key") or "")
    return "", "", ""


def _nft_ports(elements: Iterable[Any]) -> int:
    found = 0
    for one in elements:
        if isinstance(one, int):
            found |= span(one, one)
        elif isinstance(one, dict) and isinstance(one.get("range"), list):
            ends = one["range"]
            if len(ends) == 2 and all(isinstance(end, int) for end in ends):
                found |= span(*ends)
    return found


def _nft_holds(kind: str, key: str, elements: Sequence[Any], negated: bool, family: str) -> int:
    few: bool | None = None
    texts = [str(one) for one in elements]
    if kind == "payload" and key == "saddr":
        few = not any(everybody(_network(one)) for one in elements)
    elif (kind, key) in (("meta", "iifname"), ("meta", "iif")):
        few = True if texts and all(map(inside, texts)) else None
    elif (kind, key) == ("ct", "state"):
        few = "new" not in texts
    elif (kind, key) == ("ct", "status"):
        few = True
    elif (kind, key) == ("meta", "nfproto"):
        few = family not in texts
    return held(few, negated)


def _network(one: Any) -> str:
    prefix = one.get("prefix") if isinstance(one, dict) else None
    return f"{prefix.get('addr')}/{prefix.get('len')}" if isinstance(prefix, dict) else str(one)


def _nft_verdict(part: Mapping[str, Any], ports: int, holds: int) -> Rule | None:
    for verb in ("accept", "drop", "return"):
        if verb in part:
            return Rule(ports, holds, verb)
    if "reject" in part:
        return Rule(ports, holds, "drop")
    for verb in ("jump", "goto"):
        if isinstance(part.get(verb), dict):
            return Rule(ports, holds, verb, str(part[verb].get("target")))
    return None
