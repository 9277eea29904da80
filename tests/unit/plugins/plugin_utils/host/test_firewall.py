# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Firewalls: which one keeps packets out, what is opened in it, and for whom.

Recorded: iptables 1.8.9 (nf_tables) and nftables 1.0.6 in a network namespace of their own, ufw 0.36.2's user.rules.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.open_iptables import iptables_open
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.open_nftables import nftables_open
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.open_ports import ALL
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.state import (
    gather_firewall,
    parse_iptables,
    parse_nftables,
    parse_ufw,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.firewall.state_io import SystemFirewallIO
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.firewall import firewall_plan, ufw_close
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.firewall_rules import (
    FirewallError,
    firewalld_name,
    iptables_chain,
    merged,
    nftables_chain,
    parse_ports,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

REQUEST: dict[str, Any] = {
    "cluster": "lab",
    "host": "a",
    "addresses": {"a": "10.1.0.1", "b": "10.1.0.2", "c": "10.1.0.3"},
    "manager": True,
    "network_mode": "overlay",
    "ssh_port": 2222,
    "rendezvous_port": 29500,
    "data_path_port": 4789,
    "encrypted": False,
    "ports": [],
    "state": "auto",
}
OPEN = "-P INPUT ACCEPT\n-P FORWARD DROP\n-N DOCKER-USER\n-A FORWARD -j DOCKER-USER\n"
ENCRYPTED = "-A INPUT -p udp -m udp --dport 4789 -m policy --dir in --pol none -j DROP\n"
CLOSED = "-P INPUT DROP\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n"
OURS = (
    "-P INPUT DROP\n-N SWARMSPEED-lab\n"
    '-A INPUT -m comment --comment "swarmspeed lab 8b1a9953c461" -j SWARMSPEED-lab\n'
    "-A SWARMSPEED-lab -s 10.1.0.2/32 -p tcp -m multiport --dports 2377,7946 -j ACCEPT\n"
    "-A SWARMSPEED-lab -s 10.1.0.2/32 -p udp -m multiport --dports 4789,7946 -j ACCEPT\n"
)
UFW = """\
*filter
### RULES ###

### tuple ### allow udp 4789 0.0.0.0/0 any 10.1.0.2 in comment=737761726d73706565642078
-A ufw-user-input -p udp --dport 4789 -s 10.1.0.2 -j ACCEPT

### tuple ### allow esp any 0.0.0.0/0 any 10.1.0.2 in comment=737761726d73706565642078

### tuple ### allow tcp 2377,7946,32768:60999 0.0.0.0/0 any 10.1.0.2 in comment=737761726d73706565642078

### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
### tuple ### deny tcp 25 0.0.0.0/0 any 0.0.0.0/0 in comment=6d61696c
### tuple ### allow tcp 80 0.0.0.0/0 any 0.0.0.0/0 in comment=xyz
### END RULES ###
"""


def nft(*entries: dict[str, Any]) -> str:
    return json.dumps({"nftables": [{"metainfo": {"json_schema_version": 1}}, *entries]})


def chain(table: str, name: str, family: str = "inet", **more: Any) -> dict[str, Any]:
    return {"chain": {"family": family, "table": table, "name": name, "handle": 1, **more}}


def rule(table: str, name: str, *statements: dict[str, Any], family: str = "inet", **more: Any) -> dict[str, Any]:
    return {"rule": {"family": family, "table": table, "chain": name, "expr": list(statements), **more}}


INPUT: dict[str, Any] = {"type": "filter", "hook": "input", "prio": 0}
DROPPING = chain("filter", "input", **INPUT, policy="drop")


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        (OPEN, False),
        (OPEN + ENCRYPTED, False),  # the engine's own, for an encrypted overlay
        (CLOSED, True),
        ("-P INPUT ACCEPT\n-A INPUT -j REJECT --reject-with icmp-port-unreachable\n", True),
        ("-P INPUT ACCEPT\n-N f2b-sshd\n-A INPUT -p tcp -j f2b-sshd\n-A f2b-sshd -s 1.2.3.4/32 -j REJECT\n", True),
        ("-P INPUT ACCEPT\n-N a\n-N b\n-A INPUT -j a\n-A a -g b\n-A b -j a\n", False),
        ("-P INPUT ACCEPT\n-N DOCKER-X\n-A INPUT -j DOCKER-X\n-A DOCKER-X -j DROP\n", False),
        ('-P INPUT ACCEPT\n-A INPUT -m comment --comment "no end -j DROP\n', False),
    ],
)
def test_what_iptables_refuses(text: str, refuses: bool) -> None:
    found = parse_iptables(text)
    assert bool(found and found["refuses"]) is refuses


def test_our_chain_in_iptables() -> None:
    assert parse_iptables(OURS) == {
        "refuses": True,
        "jump": "swarmspeed lab 8b1a9953c461",
        "chain": "SWARMSPEED-lab",
        "rules": 2,
    }
    assert parse_iptables("") is None


@pytest.mark.parametrize(
    ("text", "refusing"),
    [
        ("", []),
        ("not json", []),
        ('{"nftables": 5}', []),
        (nft(DROPPING), ["input"]),
        (nft(chain("filter", "input", **INPUT, policy="accept")), []),
        (nft(chain("filter", "input", **INPUT, policy="accept"), rule("filter", "input", {"drop": None})), ["input"]),
        (
            nft(
                chain("t", "in", **INPUT, policy="accept"),
                rule("t", "in", {"jump": {"target": "more"}}),
                rule("t", "more", {"reject": {"type": "tcp reset"}}),
                rule("t", "more", {"jump": {"target": "more"}}),
            ),
            ["in"],
        ),
        (nft(chain("filter", "INPUT", "ip", **INPUT, policy="drop")), []),  # of iptables
        (nft(chain("firewalld", "filter_INPUT", **INPUT, policy="drop")), []),
        (nft(chain("docker-bridges", "x", **INPUT, policy="drop")), []),
        (nft(chain("filter", "output", type="filter", hook="output", policy="drop")), []),
        (nft(chain("filter", "input", "ip6", **INPUT, policy="drop")), []),
    ],
)
def test_what_nftables_refuses(text: str, refusing: list[str]) -> None:
    assert [found["name"] for found in parse_nftables(text) if found["refuses"]] == refusing


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(
    st.text(),
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["nftables", "chain", "rule", "expr", "hook"]), inner)
        ),
    ),
)
def test_no_output_is_an_exception(text: str, value: Any) -> None:
    parse_ufw(f"### tuple ### allow {text} comment={text}")
    parse_iptables(text)
    parse_nftables(text)
    parse_nftables(json.dumps({"nftables": [value]}))
    for printed in (text, json.dumps({"nftables": [value]})):
        assert 0 <= iptables_open(printed) & nftables_open(printed, "ipv4", False) <= ALL


def test_the_rules_of_ufw_that_carry_a_comment() -> None:
    assert [(found["protocol"], found["ports"], found["source"], found["comment"]) for found in parse_ufw(UFW)] == [
        ("udp", "4789", "10.1.0.2", "swarmspeed x"),
        ("esp", "any", "10.1.0.2", "swarmspeed x"),
        ("tcp", "2377,7946,32768:60999", "10.1.0.2", "swarmspeed x"),
    ]


class FakeIO:
    """A host with these files and commands."""

    def __init__(self, files: dict[str, str] | None = None, **commands: CommandResult) -> None:
        self.files, self.commands, self.requested = files or {}, commands, list[str]()

    def read(self, path: str) -> str:
        return self.files.get(path, "")

    def run(self, *command: str) -> CommandResult | None:
        self.requested.append(command[0])
        return self.commands.get(command[0].replace("-", "_"))

    def iptables(self, program: str = "iptables") -> bool:
        return program in self.commands


ENABLED = {"/etc/ufw/ufw.conf": "# x\nENABLED=yes\nLOGLEVEL=low\n", "/etc/ufw/user.rules": UFW}


def test_only_a_firewall_in_use_counts() -> None:
    assert gather_firewall(FakeIO())["active"] == []
    assert gather_firewall(FakeIO(iptables=CommandResult(0, OPEN)))["active"] == []
    ufw = FakeIO(ENABLED, iptables=CommandResult(0, CLOSED))
    assert gather_firewall(ufw)["active"] == ["ufw"] and "firewall-cmd" not in ufw.requested
    switched_off = {"/etc/ufw/ufw.conf": "ENABLED=no\n"}
    both = FakeIO(switched_off, iptables=CommandResult(0, CLOSED), nft=CommandResult(0, nft(DROPPING)))
    assert gather_firewall(both)["active"] == ["iptables", "nftables"]
    firewalld = FakeIO(firewall_cmd=CommandResult(0, "running\n"), iptables=CommandResult(0, CLOSED))
    assert gather_firewall(firewalld)["active"] == ["firewalld"]
    stopped = FakeIO(firewall_cmd=CommandResult(252, "not running\n"), nft=CommandResult(1, "", "not permitted"))
    assert gather_firewall(stopped)["active"] == []


def test_ports_that_the_kernel_gives() -> None:
    path = "/proc/sys/net/ipv4/ip_local_port_range"
    assert gather_firewall(FakeIO({path: "10000\t20000\n"}))["ephemeral_ports"] == [10000, 20000]
    assert gather_firewall(FakeIO())["ephemeral_ports"] == [32768, 60999]


def facts(**more: Any) -> dict[str, Any]:
    return {"active": [], "ufw": [], "iptables": None, "nftables": [], "ephemeral_ports": [32768, 60999], **more}


REFUSING = {"refuses": True, "jump": "", "chain": "", "rules": 0}


def rules_of(plan: dict[str, Any]) -> list[str]:
    return [line for line in plan["files"][0]["content"].splitlines() if line.startswith("-A SWARMSPEED")]


def test_nothing_is_opened_where_nothing_keeps_packets_out() -> None:
    for found in (facts(), facts(iptables={**REFUSING, "refuses": False})):
        plan = firewall_plan(found, REQUEST)
        assert plan["found"] == plan["wanted"] == {}
        assert {entry["state"] for entry in plan["files"]} == {"absent"} and plan["commands"] == []


def test_only_the_other_nodes_are_let_in() -> None:
    plan = firewall_plan(facts(active=["iptables"], iptables=REFUSING), REQUEST)
    assert rules_of(plan) == [
        f"-A SWARMSPEED-lab -s {peer}/32 -p {rest} -j ACCEPT"
        for peer in ("10.1.0.2", "10.1.0.3")
        for rest in ("tcp -m multiport --dports 2377,7946", "udp -m multiport --dports 4789,7946")
    ]
    assert plan["found"] == {"iptables": None}
    jump, dummy, count = plan["wanted"]["iptables"].rpartition(": ")
    assert count == "4 rules" and jump.startswith("swarmspeed lab ")
    right = {**REFUSING, "jump": jump, "chain": "SWARMSPEED-lab", "rules": 4}
    again = firewall_plan(facts(active=["iptables"], iptables=right), REQUEST)
    assert again["found"] == again["wanted"]
    flushed = firewall_plan(facts(active=["iptables"], iptables={**right, "rules": 0}), REQUEST)
    assert flushed["found"] != flushed["wanted"]


@pytest.mark.parametrize(
    ("changes", "tcp", "udp"),
    [
        ({"manager": False}, "7946", "4789,7946"),
        ({"network_mode": "host"}, "2222,2377,7946,29480:29500,32768:60999", "7946"),
        ({"ports": ["8000/tcp", "7947-7950/udp"]}, "2377,7946,8000", "4789,7946:7950"),
        ({"data_path_port": 7789}, "2377,7946", "7789,7946"),
    ],
)
def test_which_ports(changes: dict[str, Any], tcp: str, udp: str) -> None:
    plan = firewall_plan(facts(active=["iptables"], iptables=REFUSING), {**REQUEST, **changes})
    assert [line.split("--dports ")[1].split()[0] for line in rules_of(plan)[:2]] == [tcp, udp]


def test_an_encrypted_overlay_needs_esp_and_its_refusal_of_the_rest_first() -> None:
    plan = firewall_plan(facts(active=["iptables"], iptables=REFUSING), {**REQUEST, "encrypted": True})
    assert "-A SWARMSPEED-lab -s 10.1.0.2/32 -p esp -j ACCEPT" in rules_of(plan)
    assert "--pol none" in plan["files"][0]["content"]


@pytest.mark.parametrize("found", [facts(active=["iptables"], iptables=REFUSING), facts(active=["ufw"])])
def test_kept_or_alone_nothing_is_opened(found: dict[str, Any]) -> None:
    for changes in ({"state": "keep"}, {"addresses": {"a": "10.1.0.1"}}):
        plan = firewall_plan(found, {**REQUEST, **changes})
        assert plan["active"] == [] and plan["found"] == plan["wanted"] == {}


def test_ufw_gets_what_is_missing_and_loses_what_is_too_much() -> None:
    old = {"protocol": "tcp", "ports": "9999", "source": "10.1.0.9", "comment": "swarmspeed lab"}
    others = {**old, "comment": "swarmspeed other"}
    plan = firewall_plan(facts(active=["ufw"], ufw=[old, others]), REQUEST)
    assert plan["commands"] == [
        "ufw delete allow proto tcp from 10.1.0.9 to any port 9999",
        *(
            f"ufw prepend allow proto {rest} comment 'swarmspeed lab'"
            for rest in (
                "tcp from 10.1.0.2 to any port 2377,7946",
                "udp from 10.1.0.2 to any port 4789,7946",
                "tcp from 10.1.0.3 to any port 2377,7946",
                "udp from 10.1.0.3 to any port 4789,7946",
            )
        ),
    ]
    assert ufw_close(facts(active=["ufw"], ufw=[old, others]), "lab") == plan["commands"][:1]
    assert plan["found"]["ufw"] == ["tcp 9999 from 10.1.0.9"]
    closing = firewall_plan(facts(active=["ufw"], ufw=[old]), {**REQUEST, "state": "keep"})
    assert closing["commands"] == plan["commands"][:1] and closing["wanted"] == {"ufw": []}


def test_firewalld_gets_a_policy_of_our_own() -> None:
    plan = firewall_plan(facts(active=["firewalld"]), {**REQUEST, "encrypted": True})
    (policy,) = [entry for entry in plan["files"] if entry["path"].endswith(".xml")]
    assert policy["state"] == "present" and len(firewalld_name("lab")) <= 17
    assert '<source address="10.1.0.3"/><port port="7946" protocol="udp"/><accept/>' in policy["content"]
    assert '<source address="10.1.0.2"/><protocol value="esp"/><accept/>' in policy["content"]
    assert "10.1.0.1" not in policy["content"]


@pytest.mark.parametrize("port", ["8000", "0/tcp", "70000/tcp", "9-8/udp", "80/sctp", "80/tcp; reboot", ""])
def test_ports_that_make_no_sense(port: str) -> None:
    with pytest.raises(
        FirewallError, match=r"^host_firewall_ports: '.*' is neither a port such as 8000/tcp nor a range"
    ):
        parse_ports([port])
    plan = firewall_plan(facts(active=["ufw"]), {**REQUEST, "ports": [port]})
    assert len(plan["problems"]) == 1 and plan["files"] == []


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))))
def test_ranges_are_joined_and_none_is_lost(ranges: list[tuple[int, int]]) -> None:
    joined = merged(ranges)
    assert {port for low, high in joined for port in range(low, high + 1)} == {
        port for low, high in ranges for port in range(low, high + 1)
    }
    assert all(one[1] + 1 < two[0] for one, two in zip(joined, joined[1:]))


@settings(deadline=None, derandomize=True)
@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,60}[a-z0-9])?", fullmatch=True))
def test_chains_have_names_that_the_tools_take(cluster: str) -> None:
    assert len(iptables_chain(cluster)) <= 28
    assert nftables_chain(cluster).replace("_", "").isalnum()
    assert len(firewalld_name(cluster)) <= 17


NAMESPACE = (
    shutil.which("unshare")
    and subprocess.run(["unshare", "-n", "iptables", "-S"], capture_output=True, check=False).returncode == 0
    if shutil.which("iptables")
    else False
)


@pytest.mark.skipif(not NAMESPACE, reason="needs root, unshare and iptables")
def test_the_script_opens_and_closes_for_real(tmp_path: Path) -> None:
    """In a network namespace of its own, with the real iptables."""
    request = {**REQUEST, "encrypted": True}
    plan = firewall_plan(facts(active=["iptables"], iptables=REFUSING), request)
    script = tmp_path / "firewall"
    script.write_text(plan["files"][0]["content"])
    steps = f"""
        set -e
        iptables -P INPUT DROP; {"iptables " + ENCRYPTED.strip()}; iptables -A INPUT -p tcp --dport 22 -j ACCEPT
        before=$(iptables -S)
        sh {script} open; sh {script} open
        iptables -S > {tmp_path}/open
        sh {script} close; sh {script} close
        test "$(iptables -S)" = "$before"
    """
    done = subprocess.run(["unshare", "-n", "sh", "-c", steps], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    opened = (tmp_path / "open").read_text()
    found = parse_iptables(opened)
    assert found is not None
    assert f"{found['jump']}: {found['rules']} rules" == plan["wanted"]["iptables"]
    lines = [line for line in opened.splitlines() if line.startswith("-A INPUT")]
    assert ["--pol none" in lines[0], "SWARMSPEED-lab" in lines[1], "--dport 22" in lines[2]] == [True] * 3


def test_this_machine_can_be_asked() -> None:
    assert set(gather_firewall(SystemFirewallIO())) == {*facts(), "open"}
