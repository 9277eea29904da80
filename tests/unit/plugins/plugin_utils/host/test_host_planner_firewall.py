# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role host: an interrupted dpkg, and the firewall."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.host.firewall_rules import (
    SCRIPT_PATH,
    UNIT_PATH,
    policy_path,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome

from tests.plain_hosts import IPTABLES, NFTABLES, OPEN, act, done, host, plan, shown

POLICY = policy_path("lab")

# dpkg


@pytest.mark.parametrize(
    ("dpkg", "before"),
    [
        ({"unfinished": ["bc (half-configured)"]}, "interrupted: bc (half-configured)"),
        ({"journal": True}, "interrupted: journal in /var/lib/dpkg/updates"),
        (
            {"unfinished": ["bc (unpacked)"], "journal": True},
            "interrupted: bc (unpacked), journal in /var/lib/dpkg/updates",
        ),
    ],
)
def test_an_interrupted_dpkg_is_repaired_before_all_else(dpkg: dict[str, Any], before: str) -> None:
    made = plan(host(dpkg={"unfinished": [], "journal": False, "busy": False, **dpkg}))
    first = made.changes[0]
    assert (first.what, first.before, first.after) == ("dpkg", before, "every package configured")
    assert act(made)["repair_dpkg"] is True and first.consent is None
    drift = outcome(made, "", [])["drift"]["gpu1"]["host"]
    assert drift[0] == f"dpkg is {before}, wanted is every package configured"


def test_a_dpkg_that_is_at_work_is_no_change_and_is_waited_for() -> None:
    busy = {"unfinished": ["docker.io (unpacked)"], "journal": True, "busy": True}
    made = plan({**done(), "dpkg": busy})
    assert shown(made) == [] and not made.pending("host", "gpu1")
    assert act(made)["repair_dpkg"] is True


@pytest.mark.parametrize(
    ("unfinished", "restart", "needed", "missing"),
    [
        (["bc (half-configured)"], False, False, False),
        (["dockerize-me"], False, False, False),
        (["docker.io (half-configured)"], False, True, True),
        (["containerd (unpacked)", "runc (unpacked)"], False, True, True),
        (["docker.io (half-configured)"], True, True, False),
    ],
)
def test_an_engine_is_configured_again_by_consent(
    unfinished: list[str], restart: Any, needed: bool, missing: bool
) -> None:
    facts = {**done(), "dpkg": {"unfinished": unfinished, "journal": False, "busy": False}}
    made = plan(facts, docker_allow_restart=restart)
    assert (made.changes[0].consent is not None, bool(made.missing_consents)) == (needed, missing)
    stops = outcome(made, "", [])["stops"]["gpu1"]["host"]
    assert stops == (
        [
            f"an interrupted dpkg must be repaired ({', '.join(unfinished)}), which restarts the engine and stops "
            "these running containers: job. Remedy: set docker_allow_restart: true to allow it, or stop the "
            "containers first"
        ]
        if missing
        else []
    )
    assert plan({**facts, "docker": {"containers": {}}}).missing_consents == []


# The firewall


def test_nothing_is_opened_where_nothing_keeps_packets_out() -> None:
    assert shown(plan({**done(), "firewall": {**OPEN, "iptables": {**IPTABLES, "refuses": False}}})) == []


def test_iptables_is_opened_by_a_unit() -> None:
    made = plan({**done(), "firewall": {**OPEN, "active": ["iptables"], "iptables": IPTABLES}})
    assert shown(made) == [("+", SCRIPT_PATH), ("+", UNIT_PATH), ("+", "opening for the other nodes in iptables")]
    assert made.changes[2].after.startswith("swarmspeed lab ") and made.changes[2].after.endswith(": 4 rules")
    assert act(made)["restart_unit"] and act(made)["reload_units"] and act(made)["ufw"] == []
    whole = made.facts["gpu1"]
    assert shown(plan(whole)) == []
    flushed = {**whole["firewall"], "iptables": {**whole["firewall"]["iptables"], "jump": None, "rules": 0}}
    again = plan({**whole, "firewall": flushed})
    assert shown(again) == [("+", "opening for the other nodes in iptables")]
    assert act(again)["restart_unit"] and not act(again)["reload_units"] and act(again)["files"] == []
    drift = outcome(again, "", [])["drift"]["gpu1"]["host"]
    assert drift == ["opening for the other nodes in iptables is missing"]
    edited = {**whole["files"], UNIT_PATH: {**whole["files"][UNIT_PATH], "mode": "0666"}}
    unit = plan({**whole, "files": edited})
    assert shown(unit) == [("~", UNIT_PATH)] and act(unit)["restart_unit"] and act(unit)["reload_units"]


def test_nftables_is_opened_in_each_chain_that_keeps_packets_out() -> None:
    facts = {**OPEN, "active": ["nftables"], "nftables": [NFTABLES, {**NFTABLES, "name": "open", "refuses": False}]}
    made = plan({**done(), "firewall": facts})
    assert shown(made)[2:] == [("+", "opening for the other nodes in nftables inet filter input")]
    assert shown(plan(made.facts["gpu1"])) == []
    assert made.facts["gpu1"]["firewall"]["nftables"][1] == facts["nftables"][1]
    more = plan(made.facts["gpu1"], host_firewall_ports=["8000/tcp"])
    assert shown(more) == [("~", SCRIPT_PATH), ("~", "opening for the other nodes in nftables inet filter input")]


def test_rules_of_ufw_are_changes_each() -> None:
    old = {"protocol": "tcp", "ports": "9999", "source": "10.1.0.9", "comment": "swarmspeed lab"}
    facts = {**OPEN, "active": ["ufw"], "ufw": [old, {**old, "comment": "mine"}]}
    made = plan({**done(), "firewall": facts}, group_names=["cluster", "workers"])
    assert shown(made) == [
        ("-", "ufw rule tcp 9999 from 10.1.0.9"),
        ("+", "ufw rule tcp 7946 from 10.1.0.2"),
        ("+", "ufw rule tcp 7946 from 10.1.0.3"),
        ("+", "ufw rule udp 4789,7946 from 10.1.0.2"),
        ("+", "ufw rule udp 4789,7946 from 10.1.0.3"),
    ]
    assert len(act(made)["ufw"]) == 5 and not act(made)["restart_unit"]
    assert {**old, "comment": "mine"} in made.facts["gpu1"]["firewall"]["ufw"]
    assert shown(plan(made.facts["gpu1"], group_names=["cluster", "workers"])) == []
    closed = plan(made.facts["gpu1"], host_firewall="keep")
    assert {sign for sign, dummy in shown(closed)} == {"-"} and len(act(closed)["ufw"]) == 4
    assert act(closed)["undo"]["ufw"] == act(closed)["ufw"]


def test_firewalld_is_reloaded_for_its_policy_alone() -> None:
    made = plan({**done(), "firewall": {**OPEN, "active": ["firewalld"]}})
    assert shown(made) == [("+", POLICY)]
    assert act(made)["reload_firewalld"] and not act(made)["restart_unit"]
    kept = made.facts["gpu1"]
    assert act(plan({**kept, "sysctls": {}}, host_sysctls={"a.b": 1}))["reload_firewalld"] is False
    closed = plan(kept, host_firewall="keep")
    assert shown(closed) == [("-", POLICY)] and act(closed)["reload_firewalld"] is True
    assert act(plan(kept))["undo"]["reload_firewalld"] is True
    assert act(made)["undo"]["reload_firewalld"] is False  # nothing is there yet
    stopped = plan({**kept, "firewall": OPEN})  # firewall-cmd would fail
    assert shown(stopped) == [("-", POLICY)] and act(stopped)["reload_firewalld"] is False


def test_a_firewall_that_is_not_in_use_any_more_is_closed_before_its_files_go() -> None:
    opened = done({**done(), "firewall": {**OPEN, "active": ["iptables"], "iptables": IPTABLES}})
    made = plan({**opened, "firewall": OPEN})
    assert shown(made) == [("-", SCRIPT_PATH), ("-", UNIT_PATH)]
    assert act(made)["close_unit"] is True and act(made)["restart_unit"] is False
    assert act(plan(opened))["close_unit"] is False and act(plan(opened))["undo"]["close_unit"] is True


def test_rules_of_ufw_that_stay_are_not_removed_with_the_unit() -> None:
    """They once were: all of the role's rules in ufw were removed, and only the missing ones were added again."""
    before = done({**done(), "firewall": {**OPEN, "active": ["ufw", "iptables"], "iptables": IPTABLES}})
    made = plan({**before, "firewall": {**before["firewall"], "active": ["ufw"]}})
    assert act(made)["close_unit"] is True and act(made)["ufw"] == []


@pytest.mark.parametrize(
    ("wished", "protocol", "ports"),
    [
        ({"group_names": ["workers"]}, "tcp", "7946"),
        ({}, "tcp", "2377,7946"),
        ({"swarm_data_path_port": "7789"}, "udp", "7789,7946"),
        ({"overlay_network_encrypted": True}, "esp", "any"),
        ({"host_firewall_ports": ["8000/tcp"]}, "tcp", "2377,7946,8000"),
        ({"cluster_network_mode": "host"}, "tcp", "2222,2377,7946,29480:29599,32768:60999"),
        ({"cluster_network_mode": "host", "deepspeed_launch_runtime": "host"}, "tcp", "29480:29599,32768:60999"),
    ],
)
def test_what_is_let_in_follows_from_the_variables(wished: dict[str, Any], protocol: str, ports: str) -> None:
    made = plan({**done(), "firewall": {**OPEN, "active": ["ufw"]}}, **wished)
    assert ("+", f"ufw rule {protocol} {ports} from 10.1.0.2") in shown(made)
    assert any("ufw rule esp" in what for dummy, what in shown(made)) is (protocol == "esp")


def test_a_port_that_is_none_is_refused_and_nothing_of_the_firewall_is_touched() -> None:
    opened = done({**done(), "firewall": {**OPEN, "active": ["iptables"], "iptables": IPTABLES}})
    made = plan(opened, host_firewall_ports=["80/sctp"])
    assert shown(made) == [] and made.pending("host", "gpu1")
    (refusal,) = made.refusals
    assert refusal.text.startswith("host_firewall_ports: '80/sctp' is neither a port such as 8000/tcp nor a range")
    assert refusal.remedy == "correct host_firewall_ports"
    assert act(made)["close_unit"] is False
    # It is still known how all of it is taken back.
    assert act(made)["undo"]["close_unit"] is True
    assert {SCRIPT_PATH, UNIT_PATH} <= {entry["path"] for entry in act(made)["undo"]["files"]}
