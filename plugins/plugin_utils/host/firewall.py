# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The plan for a host's firewall: what differs, and the files and commands that put it right or take it back.

The rules of iptables and nftables live in the kernel only. A unit of the role sets them when the host starts, and again
whenever the services that load the user's own rules are restarted or reloaded; the user's files are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.firewall.state import FIREWALLD, IPTABLES, NFTABLES, UFW
from .firewall_rules import (
    SCRIPT_PATH,
    UNIT_PATH,
    FirewallError,
    Wanted,
    firewalld_policy,
    in_use,
    iptables_chain,
    iptables_rules,
    mark,
    nftables_chain,
    nftables_rules,
    parse_request,
    policy_path,
    strings,
    ufw_command,
    ufw_rules,
)

_SERVICES = "nftables.service netfilter-persistent.service"
UNIT_TEXT = f"""\
# Kept by swarmspeed.cluster (host_firewall)
[Unit]
Description=Let the packets of the training cluster in
After={_SERVICES}
PartOf={_SERVICES}
ReloadPropagatedFrom={_SERVICES}
Before=docker.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={SCRIPT_PATH} open
ExecReload={SCRIPT_PATH} open
ExecStop={SCRIPT_PATH} close

[Install]
WantedBy=multi-user.target
"""

_HEAD = """\
#!/bin/sh
# Kept by swarmspeed.cluster (host_firewall): lets the packets of this cluster's nodes in, and no others.
# "open" may be run again at any time; "close" takes everything back.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
"""

# What the engine drops because it did not come encrypted must stay dropped, so our jump comes after that.
_IPTABLES = """\
iptables_close() {{
    iptables --wait -L INPUT --numeric --line-numbers | awk '$2 == "{chain}" {{ print $1 }}' | sort -rn |
        while read -r number; do iptables --wait -D INPUT "$number"; done
}}
iptables_open() {{
    iptables-restore --wait --noflush <<'RULES'
*filter
:{chain} - [0:0]
{rules}
COMMIT
RULES
    iptables_close
    place=$(iptables --wait -S INPUT |
        awk '$1 == "-A" {{ n++ }} /--pol none/ && /-j DROP/ {{ place = n }} END {{ print place + 1 }}')
    iptables --wait -I INPUT "$place" -m comment --comment '{mark}' -j {chain}
}}
iptables_remove() {{
    iptables_close
    if iptables --wait -S {chain} >/dev/null 2>&1; then
        iptables --wait -F {chain}
        iptables --wait -X {chain}
    fi
}}
"""

_NFTABLES = """\
nft_close() {{  # family, table, chain
    nft -a list chain "$1" "$2" "$3" | sed -n 's/.*jump {chain} .*# handle \\([0-9]*\\)$/\\1/p' |
        while read -r handle; do nft delete rule "$1" "$2" "$3" handle "$handle"; done
}}
nft_open() {{
    nft list chain "$1" "$2" "$3" >/dev/null 2>&1 || return 0  # the user's rules are not loaded
    nft -f - <<RULES
add chain $1 $2 {chain}
flush chain $1 $2 {chain}
{rules}
RULES
    nft_close "$1" "$2" "$3"
    nft insert rule "$1" "$2" "$3" jump {chain} comment '"{mark}"'
}}
nft_remove() {{
    nft list chain "$1" "$2" {chain} >/dev/null 2>&1 || return 0
    nft_close "$1" "$2" "$3"
    nft flush chain "$1" "$2" {chain}
    nft delete chain "$1" "$2" {chain}
}}
"""

_TAIL = """\
case "${{1:-}}" in
open) {open} ;;
close) {close} ;;
*) echo "usage: $0 open|close" >&2; exit 2 ;;
esac
"""


def script(wanted: Wanted, facts: Mapping[str, Any], active: tuple[str, ...]) -> str:
    """Return the script that opens and closes iptables and nftables."""
    parts, opened, closed = [_HEAD], [], []
    if IPTABLES in active:
        chain, rules = iptables_chain(wanted.cluster), iptables_rules(wanted)
        lines = "\n".join(f"-A {chain} {rule}" for rule in rules)
        parts.append(_IPTABLES.format(chain=chain, rules=lines, mark=mark(wanted, rules)))
        opened.append("iptables_open")
        closed.append("iptables_remove")
    if NFTABLES in active:
        chain, rules = nftables_chain(wanted.cluster), nftables_rules(wanted)
        lines = "\n".join(f"add rule $1 $2 {chain} {rule}" for rule in rules)
        parts.append(_NFTABLES.format(chain=chain, rules=lines, mark=mark(wanted, rules)))
        for base in _refusing(facts):
            place = f"'{base['family']}' '{base['table']}' '{base['name']}'"
            opened.append(f"nft_open {place}")
            closed.append(f"nft_remove {place}")
    return "\n".join([*parts, _TAIL.format(open="; ".join(opened), close="; ".join(closed))])


def _refusing(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the chains of nftables that keep packets out, and that have a name."""
    return [
        chain
        for chain in strings(facts.get("nftables"))
        if chain.get("refuses") and all(isinstance(chain.get(key), str) for key in ("family", "table", "name"))
    ]


def firewall_plan(facts: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the role does: ``files``, ``commands`` (ufw), ``active`` (which firewalls), ``problems``; ``found``
    and ``wanted``, which are to be the same; and the facts ``after`` it."""
    ephemeral, theirs = facts.get("ephemeral_ports"), _rules_of(facts, str(request["cluster"]))
    try:
        wanted = parse_request(request, ephemeral if isinstance(ephemeral, list) else ())
    except FirewallError as error:
        return {
            "problems": [str(error)],
            "active": [],
            "scripted": False,
            "files": [],
            "commands": [],
            "found": {},
            "wanted": {},
            "after": dict(facts),
        }
    active = in_use(facts, wanted)
    found, requested = _states(facts, wanted, active)
    scripted = IPTABLES in active or NFTABLES in active
    files = [
        _file(SCRIPT_PATH, script(wanted, facts, active) if scripted else None, "0755"),
        _file(UNIT_PATH, UNIT_TEXT if scripted else None),
        _file(policy_path(wanted.cluster), firewalld_policy(wanted) if FIREWALLD in active else None),
    ]
    ours = ufw_rules(wanted) if UFW in active else []
    there, due = [_words(rule) for rule in theirs], [_words(rule) for rule in ours]
    extra = [rule for rule in theirs if _words(rule) not in due]
    missing = [rule for rule in ours if _words(rule) not in there]
    return {
        "problems": [],
        "active": list(active),
        "scripted": scripted,
        "files": files,
        "commands": [ufw_command(rule, delete=True) for rule in extra] + [ufw_command(rule) for rule in missing],
        "found": found,
        "wanted": requested,
        "after": _after(facts, wanted, active, ours),
    }


def ufw_close(facts: Mapping[str, Any], cluster: str) -> list[str]:
    """Return the commands that take the rules of this cluster back from ufw."""
    return [ufw_command(rule, delete=True) for rule in _rules_of(facts, cluster)]


def _rules_of(facts: Mapping[str, Any], cluster: str) -> list[Mapping[str, Any]]:
    """Return the rules of ufw that bear the comment of this cluster."""
    return [
        rule
        for rule in strings(facts.get("ufw"))
        if rule.get("comment") == f"swarmspeed {cluster}"
        and all(isinstance(rule.get(key), str) for key in ("protocol", "ports", "source"))
    ]


def _after(
    facts: Mapping[str, Any], wanted: Wanted, active: tuple[str, ...], ours: list[dict[str, str]]
) -> dict[str, Any]:
    """Return the facts of the firewall once all is opened."""
    others = [rule for rule in strings(facts.get("ufw")) if rule.get("comment") != wanted.comment]
    after: dict[str, Any] = {**facts, "ufw": [*others, *ours]}
    if IPTABLES in active:
        lines, chain = iptables_rules(wanted), facts.get("iptables")
        opened = {"jump": mark(wanted, lines), "chain": iptables_chain(wanted.cluster), "rules": len(lines)}
        after["iptables"] = {**(chain if isinstance(chain, Mapping) else {}), **opened}
    if NFTABLES in active:
        lines, refusing = nftables_rules(wanted), _refusing(facts)
        opened = {"jump": mark(wanted, lines), "rules": len(lines)}
        after["nftables"] = [
            {**chain, **opened} if chain in refusing else chain for chain in strings(facts.get("nftables"))
        ]
    return after


def _file(path: str, content: str | None, mode: str = "0644") -> dict[str, str]:
    state = "absent" if content is None else "present"
    return {"path": path, "content": content or "", "mode": mode, "state": state}


def _states(facts: Mapping[str, Any], wanted: Wanted, active: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stands in the kernel or in ufw, and what should. firewalld's policy is a file, and compared as one."""
    found: dict[str, Any] = {}
    requested: dict[str, Any] = {}
    theirs = {_words(rule) for rule in _rules_of(facts, wanted.cluster)}
    if UFW in active or theirs:
        found[UFW] = sorted(theirs)
        requested[UFW] = sorted(_words(rule) for rule in (ufw_rules(wanted) if UFW in active else []))
    chains = facts.get("iptables")
    chain = chains if isinstance(chains, Mapping) else {}
    if IPTABLES in active:
        lines = iptables_rules(wanted)
        found[IPTABLES] = _chain_words(chain)
        requested[IPTABLES] = f"{mark(wanted, lines)}: {len(lines)} rules"
    if NFTABLES in active:
        lines = nftables_rules(wanted)
        for base in _refusing(facts):
            name = f"{NFTABLES} {base['family']} {base['table']} {base['name']}"
            found[name] = _chain_words(base)
            requested[name] = f"{mark(wanted, lines)}: {len(lines)} rules"
    return found, requested


def _words(rule: Mapping[str, Any]) -> str:
    return f"{rule.get('protocol')} {rule.get('ports')} from {rule.get('source')}"


def _chain_words(chain: Mapping[str, Any]) -> str | None:
    return f"{chain['jump']}: {chain.get('rules')} rules" if chain.get("jump") else None
