# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A firewall that refuses something is none for a port that it leaves open. Rules are made up after real ones."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.open_iptables import iptables_open
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.open_ports import ALL, ranges
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.state import IF_INET6, gather_firewall
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.checks import Wanted
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.open_to_anyone import open_to_anyone
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.node import node_facts

from tests.adversary import hostile

ADDRESSES = {IF_INET6: "00000000000000000000000000000001 01 80 10 80 lo\n20010db8 02 40 00 80 eth0\n"}
ACCEPT, DROP = "-P INPUT ACCEPT\n", "-P INPUT DROP\n"
STATE = "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -i lo -j ACCEPT\n"
FAIL2BAN = "-N f2b-sshd\n-A INPUT -p tcp -m multiport --dports 22 -j f2b-sshd\n-A f2b-sshd -s 203.0.113.9/32 -j REJECT "
FAIL2BAN += "--reject-with icmp-port-unreachable\n-A f2b-sshd -j RETURN\n"
UFW = """-P INPUT DROP
-N ufw-before-input
-N ufw-not-local
-N ufw-user-input
-N ufw-skip-to-policy-input
-N ufw-after-input
-N ufw-reject-input
-A INPUT -j ufw-before-input
-A INPUT -j ufw-after-input
-A INPUT -j ufw-reject-input
-A ufw-before-input -i lo -j ACCEPT
-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A ufw-before-input -m conntrack --ctstate INVALID -j DROP
-A ufw-before-input -p icmp -m icmp --icmp-type 8 -j ACCEPT
-A ufw-before-input -p udp -m udp --sport 67 --dport 68 -j ACCEPT
-A ufw-before-input -j ufw-not-local
-A ufw-before-input -j ufw-user-input
-A ufw-not-local -m addrtype --dst-type LOCAL -j RETURN
-A ufw-not-local -m limit --limit 3/min --limit-burst 10 -j LOG --log-prefix "[UFW BLOCK] -j ACCEPT"
-A ufw-not-local -j DROP
-A ufw-after-input -m addrtype --dst-type BROADCAST -j ufw-skip-to-policy-input
-A ufw-skip-to-policy-input -j DROP
"""
OURS = "-N SWARMSPEED-lab\n-A SWARMSPEED-lab -s 10.1.0.2/32 -p udp -m multiport --dports 4789,7946 -j ACCEPT\n"
OURS += "-A INPUT -m comment --comment 'swarmspeed lab 1 -j ACCEPT' -j SWARMSPEED-lab\n"


def match(left: dict[str, Any], right: Any, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


def dport(protocol: str, right: Any) -> dict[str, Any]:
    return match({"payload": {"protocol": protocol, "field": "dport"}}, right)


def source(right: Any, op: str = "==", protocol: str = "ip") -> dict[str, Any]:
    return match({"payload": {"protocol": protocol, "field": "saddr"}}, right, op)


def state(*names: str) -> dict[str, Any]:
    return match({"ct": {"key": "state"}}, list(names), "in")


def nft(policy: str, *rules: list[dict[str, Any]], family: str = "inet", **chains: list[list[dict[str, Any]]]) -> str:
    place = {"family": family, "table": "t"}
    listed: list[dict[str, Any]] = [
        {"chain": {**place, "name": "in", "hook": "input", "type": "filter", "prio": 0, "policy": policy}},
        {"set": {**place, "name": "ports", "type": "inet_service", "elem": [22, {"range": [4000, 5000]}]}},
        {"set": {**place, "name": "banned", "type": "ipv4_addr", "elem": ["203.0.113.9"]}},
    ]
    for name, held in {"in": list(rules), **chains}.items():
        listed += [{"rule": {**place, "chain": name, "expr": expr}} for expr in held]
    return json.dumps({"nftables": listed})


VERDICT: dict[str, dict[str, Any]] = {name: {name: None} for name in ("accept", "drop", "return")}
TAKE, LEAVE, BACK = VERDICT["accept"], VERDICT["drop"], VERDICT["return"]
BASIC = [state("established", "related"), TAKE]


def gathered(**printed: str) -> dict[str, Any]:
    """The facts of a host on which iptables, ip6tables and nft print this, as the controller takes them."""

    class Host:
        def read(self, path: str) -> str:
            return ADDRESSES.get(path, "")

        def run(self, *command: str) -> CommandResult | None:
            return CommandResult(0, printed[command[0]]) if command[0] in printed else None

        def iptables(self, program: str = "iptables") -> bool:
            return program in printed

    return gather_firewall(Host())


def noted(facts: dict[str, Any], **wanted: Any) -> list[str]:
    hostvars = {"gpu1": {"ansible_facts": {"swarmspeed": {"firewall": facts}}}}
    return open_to_anyone(hostvars, Wanted(hosts=("gpu1",), **wanted))


OPEN = {
    "no firewall": {},
    "fail2ban with one banned address": {"iptables": ACCEPT + FAIL2BAN},
    "telnet is dropped": {"iptables": ACCEPT + "-A INPUT -p tcp -m tcp --dport 23 -j DROP\n"},
    "what is invalid is dropped": {"iptables": ACCEPT + "-A INPUT -m conntrack --ctstate INVALID -j DROP\n"},
    "policy drop, and the port for anyone": {"iptables": DROP + "-A INPUT -p udp -m udp --dport 4789 -j ACCEPT\n"},
    "among others": {"iptables": DROP + "-A INPUT -p udp -m multiport --dports 53,4000:5000 -j ACCEPT\n"},
    "all of udp": {"iptables": DROP + STATE + "-A INPUT -p udp -j ACCEPT\n"},
    "from half of the world and the other half": {
        "iptables": DROP + "-A INPUT -s 0.0.0.0/1 -j ACCEPT\n-A INPUT -s 128.0.0.0/1 -j ACCEPT\n"
    },
    "on one interface": {"iptables": DROP + "-A INPUT -i eth0 -j ACCEPT\n"},
    "but for one address": {"iptables": DROP + "-A INPUT ! -s 203.0.113.9/32 -j ACCEPT\n"},
    "the final drop comes behind it": {
        "iptables": ACCEPT + "-A INPUT -m conntrack --ctstate NEW -p udp -j ACCEPT\n-A INPUT -j DROP\n"
    },
    "in a chain": {"iptables": DROP + "-N own\n-A INPUT -j own\n-A own -p udp --dport 4789 -j ACCEPT\n"},
    "returned before the drop": {
        "iptables": ACCEPT + "-N own\n-A INPUT -j own\n-A own -p udp -j RETURN\n-A own -j DROP\n"
    },
    "gone to a chain that returns": {
        "iptables": ACCEPT + "-N own\n-A INPUT -g own\n-A own -s 10.0.0.0/8 -j DROP\n-A INPUT -j DROP\n"
    },
    "a drop that is limited": {"iptables": ACCEPT + "-A INPUT -m limit --limit 3/min -j DROP\n"},
    "a drop with a mark": {"iptables": ACCEPT + "-A INPUT -m mark --mark 0x4000 -j DROP\n"},
    "ufw allows it": {"iptables": UFW + "-A ufw-user-input -p udp -m udp --dport 4789 -j ACCEPT\n"},
    "a log that says otherwise": {"iptables": ACCEPT + "-A INPUT -j LOG --log-prefix '-j DROP'\n"},
    "only IPv6 is closed": {"iptables": ACCEPT, "ip6tables": DROP},
    "nft: one banned": {"nft": nft("accept", [source("@banned"), LEAVE])},
    "nft: telnet": {"nft": nft("accept", [dport("tcp", 23), LEAVE])},
    "nft: invalid": {"nft": nft("accept", [state("invalid"), LEAVE])},
    "nft: the port for anyone": {"nft": nft("drop", BASIC, [dport("udp", 4789), TAKE])},
    "nft: a set": {"nft": nft("drop", [dport("udp", {"set": [53, 4789]}), TAKE])},
    "nft: a named set": {"nft": nft("drop", [dport("th", "@ports"), TAKE])},
    "nft: a set that is not known": {"nft": nft("drop", [dport("udp", "@gone"), TAKE])},
    "nft: all of udp by number": {"nft": nft("drop", [match({"meta": {"key": "l4proto"}}, 17), TAKE])},
    "nft: a map": {
        "nft": nft(
            "drop",
            [{"vmap": {"key": {"payload": {"protocol": "udp", "field": "dport"}}, "data": {"set": [[4789, TAKE]]}}}],
        )
    },
    "nft: a map of interfaces": {
        "nft": nft(
            "drop",
            [
                {
                    "vmap": {
                        "key": {"meta": {"key": "iifname"}},
                        "data": {"set": [["lo", TAKE], ["eth0", {"jump": {"target": "own"}}]]},
                    }
                }
            ],
            own=[[dport("udp", 4789), TAKE]],
        )
    },
    "nft: returned": {"nft": nft("accept", [{"jump": {"target": "own"}}], own=[[dport("udp", 4789), BACK], [LEAVE]])},
    "nft: of IPv6 only": {"nft": nft("drop", family="ip6")},
    "nft: from all but one": {"nft": nft("drop", [source("203.0.113.9", "!="), TAKE])},
    "nft: from a port": {"nft": nft("drop", [match({"payload": {"protocol": "udp", "field": "sport"}}, 53), TAKE])},
}
CLOSED = {
    "policy": {"iptables": DROP},
    "with replies": {"iptables": DROP + STATE + FAIL2BAN + "-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n"},
    "our own rules": {"iptables": DROP + STATE + OURS},
    "a final drop": {"iptables": ACCEPT + STATE + "-A INPUT -p tcp --dport 22 -j ACCEPT\n-A INPUT -j REJECT\n"},
    "the port": {
        "iptables": ACCEPT + "-A INPUT -s 10.1.0.0/24 -j ACCEPT\n-A INPUT -p udp -m udp --dport 4789 -j DROP\n"
    },
    "all but the nodes": {"iptables": ACCEPT + "-A INPUT ! -s 10.1.0.0/24 -p udp --dport 4789 -j DROP\n"},
    "all but a set": {"iptables": ACCEPT + "-A INPUT -p udp -m set ! --match-set nodes src -j DROP\n"},
    "in a chain": {
        "iptables": ACCEPT + "-N own\n-A INPUT -p udp -j own\n-A own -s 10.1.0.2/32 -j RETURN\n-A own -j DROP\n"
    },
    "ufw": {"iptables": UFW},
    "ufw with our rules": {"iptables": UFW + "-A ufw-user-input -s 10.1.0.2/32 -p udp -m udp --dport 4789 -j ACCEPT\n"},
    "containers come in": {"iptables": DROP + "-A INPUT -i docker0 -j ACCEPT\n"},
    "nft: policy": {"nft": nft("drop", BASIC, [dport("tcp", 22), TAKE])},
    "nft: from the nodes": {"nft": nft("drop", [source({"prefix": {"addr": "10.1.0.0", "len": 24}}), TAKE])},
    "nft: a final drop": {"nft": nft("accept", BASIC, [dport("tcp", "@ports"), TAKE], [LEAVE])},
    "nft: the port": {"nft": nft("accept", [dport("udp", {"range": [4789, 4790]}), LEAVE])},
    "nft: ping is answered": {
        "nft": nft("drop", [match({"payload": {"protocol": "icmp", "field": "type"}}, "echo-request"), TAKE])
    },
    "nft: states": {
        "nft": nft(
            "drop",
            [{"vmap": {"key": {"ct": {"key": "state"}}, "data": {"set": [["established", TAKE], ["invalid", LEAVE]]}}}],
        )
    },
    "nft: what was translated": {"nft": nft("drop", [match({"ct": {"key": "status"}}, "dnat", "in"), TAKE])},
    "both, and one of them is closed": {"iptables": ACCEPT, "nft": nft("drop")},
}


@pytest.mark.parametrize("printed", OPEN.values(), ids=OPEN)
def test_an_open_overlay_is_reported_whatever_else_is_refused(printed: dict[str, str]) -> None:
    notes = noted(gathered(**printed))
    assert [note.partition(":")[0] for note in notes] == ["gpu1"]
    assert "UDP 4789" in notes[0] and "overlay_network_encrypted: true" in notes[0]
    assert noted(gathered(**printed), encrypted=True) == []


@pytest.mark.parametrize("printed", CLOSED.values(), ids=CLOSED)
def test_a_firewall_that_keeps_the_port_is_not_noted(printed: dict[str, str]) -> None:
    assert noted(gathered(**printed)) == []


def test_the_ports_of_the_swarm_are_named_beside_it() -> None:
    (note,) = noted(gathered(iptables=DROP + "-A INPUT -p udp -j ACCEPT\n"), data_port=7789)
    assert "UDP 7789" in note and "(also open, but authenticated: 2377/tcp, 7946/tcp, 7946/udp)" in note  # by IPv6
    (note,) = noted(gathered(iptables=DROP + "-A INPUT -p udp -j ACCEPT\n", ip6tables=DROP))
    assert "(also open, but authenticated: 7946/udp)" in note


@pytest.mark.parametrize(
    ("printed", "families"),
    [
        ({}, "IPv4 and IPv6"),
        ({"iptables": DROP}, "IPv6"),
        ({"iptables": DROP, "ip6tables": DROP + "-A INPUT -p ipv6-icmp -j ACCEPT\n"}, ""),
        ({"iptables": DROP, "ip6tables": DROP + "-A INPUT -p tcp --dport 29510 -j ACCEPT\n"}, "IPv6"),
        ({"nft": nft("drop", family="ip")}, "IPv6"),
        ({"nft": nft("drop")}, ""),
        ({"nft": nft("drop", [source("fe80::1", protocol="ip6"), TAKE])}, ""),
        ({"nft": nft("drop", [match({"meta": {"key": "nfproto"}}, "ipv6"), TAKE])}, "IPv6"),
    ],
)
def test_ranks_in_the_hosts_network_are_open_by_ipv6_too(printed: dict[str, str], families: str) -> None:
    notes = noted(gathered(**printed), network="host", data_port=None)
    assert [re.findall("over (.*), and", note) for note in notes] == ([[families]] if families else [])
    assert all("TCP 29500-29599" in note for note in notes)


def test_a_host_without_ipv6_is_not_open_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADDRESSES, IF_INET6, "00000000000000000000000000000001 01 80 10 80 lo\n")
    assert gathered()["open"] == {
        "ipv4": {"tcp": [[1, 65535]], "udp": [[1, 65535]]},
        "ipv6": {"tcp": [], "udp": []},
    }


def test_nothing_known_is_open() -> None:
    assert noted({"active": ["ufw"]}) and noted({"active": ["ufw"], "open": {"ipv4": {}}})
    assert noted({"active": ["ufw"], "open": {"ipv4": {"udp": [[1]]}}})
    hostvars: dict[str, Any] = {"gpu1": {"ansible_facts": {"swarmspeed": {}}}}
    assert open_to_anyone(hostvars, Wanted(hosts=("gpu1",))) == []  # not gathered


def test_chains_without_an_end_are_followed_for_a_while() -> None:
    deep = "".join(f"-N c{at}\n" + f"-A c{at} -j c{at + 1}\n" * 2 for at in range(60))
    assert iptables_open(DROP + "-A INPUT -j c0\n" + deep) == ALL
    assert iptables_open(DROP + "-N a\n-A INPUT -j a\n-A a -j a\n") == ALL  # no kernel has it
    many = "".join(f"-A INPUT -p udp --dport {2 * at + 1} -j ACCEPT\n" for at in range(100))
    assert ranges(iptables_open(DROP + many)) == {"tcp": [], "udp": [[1, 199]]}


@pytest.mark.skipif(
    not shutil.which("unshare")
    or not shutil.which("iptables")
    or subprocess.run(["unshare", "-n", "iptables", "-S"], capture_output=True, check=False).returncode != 0,
    reason="needs root, unshare and iptables",
)
@pytest.mark.parametrize("rules", [rules["iptables"] for rules in OPEN.values() if list(rules) == ["iptables"]])
def test_iptables_prints_rules_as_they_stand_here(rules: str) -> None:
    """What the real iptables prints of rules that were given to it is read as they are."""
    lines = sorted(rules.splitlines(), key=lambda line: line[:2] not in ("-P", "-N"))
    script = "\n".join(f"iptables {line}" for line in lines)
    done = subprocess.run(
        ["unshare", "-n", "sh", "-ec", f"{script}\niptables -S"], capture_output=True, text=True, check=False
    )
    if "--mark" in rules and done.returncode:
        pytest.skip("no such match in this kernel")
    assert done.returncode == 0, done.stderr
    assert iptables_open(done.stdout) == iptables_open(rules)


def test_facts_of_a_host_pass_the_controllers_check() -> None:
    many = "".join(f"-A INPUT -p udp --dport {2 * at + 1} -j ACCEPT\n" for at in range(64))
    firewall = gathered(iptables=DROP + many)
    assert len(firewall["open"]["ipv4"]["udp"]) == 64
    assert node_facts("gpu1", {**hostile.facts(), "firewall": firewall})["firewall"] == firewall
