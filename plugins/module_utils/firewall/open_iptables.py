# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ports iptables leaves open to anyone, by what ``iptables -S`` prints (iptables(8))."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from .open_ports import ALL, ALWAYS, PORTS, Rule, everybody, held, inside, of_protocol, reached, span


def iptables_open(text: str) -> int:
    """What may get through INPUT of ``iptables -S`` or ``ip6tables -S``."""
    chains: dict[str, list[Rule]] = {}
    accepts = True
    for line in text.splitlines():
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if words[:2] == ["-P", "INPUT"]:
            accepts = words[-1] == "ACCEPT"
        elif words[:1] == ["-N"] and len(words) == 2:
            chains.setdefault(words[1], [])
        elif words[:1] == ["-A"] and len(words) > 2:
            rule = _iptables_rule(words[2:])
            if rule is not None:
                chains.setdefault(words[1], []).append(rule)
    return reached(lambda name: chains.get(name, ()), "INPUT", accepts)


_IPTABLES = {"ACCEPT": "accept", "DROP": "drop", "REJECT": "drop", "RETURN": "return"}
_TARGETS = "LOG NFLOG ULOG MARK CONNMARK AUDIT CT TRACE NOTRACK SET TCPMSS DSCP CLASSIFY SECMARK"
_NO_VERDICT = frozenset(_TARGETS.split())


def _iptables_rule(words: Sequence[str]) -> Rule | None:
    ports, holds, verdict, target = ALL, ALWAYS, "", ""
    at = 0
    while at < len(words):
        negated = words[at] == "!"
        at += negated
        option = words[at] if at < len(words) else ""
        start, end = at, at + 1
        while end < len(words) and words[end] != "!" and (not words[end].startswith("-") or words[end] == "-"):
            end += 1
        values, at = words[at + 1 : end], end
        value = values[0] if values else ""
        if option in ("-j", "-g"):
            verdict = _IPTABLES.get(value, "jump" if option == "-j" else "goto")
            target = value if verdict in ("jump", "goto") else ""
            if value in _NO_VERDICT:
                return None
            break  # what follows belongs to the target
        if option in ("-p", "--protocol"):
            named = ALL if value in ("all", "0") else of_protocol(value)
            ports &= ~named & ALL if negated else named
        elif option in ("--dport", "--dports", "--destination-port", "--destination-ports"):
            named = _port_words(value)
            ports &= ~named & ALL if negated else named
        elif option == "--comment":
            at = start + 2
        elif option not in ("-m", "--match"):
            holds = min(holds, _iptables_holds(option, values, negated))
    return Rule(ports, holds, verdict, target) if verdict else None


def _port_words(text: str) -> int:
    found = 0
    for part in text.split(","):
        low, colon, high = part.partition(":")
        if low.isdecimal() or (colon and not low):
            found |= span(int(low or 0), int(high) if high.isdecimal() else (PORTS - 1 if colon else int(low)))
    return found


def _iptables_holds(option: str, values: Sequence[str], negated: bool) -> int:
    value = values[0] if values else ""
    few: bool | None = None
    if option in ("-s", "--source"):
        few = not everybody(value)
    elif option in ("-i", "--in-interface"):
        few = True if inside(value) else None
    elif option in ("--ctstate", "--state"):
        few = "NEW" not in value.split(",")
    elif option in ("--ctstatus", "--src-range"):
        few = True
    elif option == "--match-set":
        few = True if "src" in ",".join(values[1:]) else None
    elif option == "--pol":
        few = True if value != "none" else None
    return held(few, negated)
