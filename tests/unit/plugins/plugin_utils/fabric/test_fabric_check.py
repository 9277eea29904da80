# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who is blamed for what: the reasons of pairs that fail, and that consequences are not reported again."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.checks import Verdict, Wanted, judge
from hypothesis import given
from hypothesis import strategies as st

NODES = ("gpu1", "gpu2", "gpu3")
WANTED = Wanted(hosts=NODES)
FLAT = Wanted(hosts=NODES, network="host", data_port=None)


def entry(to: str, check: str, ok: bool = True, value: float | None = None, reported: str = "", **more: Any) -> Any:
    return {"to": to, "check": check, "ok": ok, "value": value, "said": reported, "end": "inner", **more}


def records(nodes: tuple[str, ...] = NODES, *, overlay: bool = True) -> dict[str, Any]:
    """What all nodes answer where all is well."""
    found: dict[str, Any] = {}
    for name in nodes:
        others = [other for other in nodes if other != name]
        pairs = []
        for to in others:
            pairs += [
                entry(to, "tcp", value=0.4, reported="10.0.0.2 port 29599"),
                entry(to, "clock", value=0.002),
                entry(to, "mtu", value=1350, reported="1350 bytes pass whole", wanted=1350),
                entry(to, "ssh", value=200),
            ]
            if overlay:
                pairs.append(entry(to, "name", value=0.0, reported=f"ai-{to} resolves to 10.0.0.2"))
                pairs.append(entry(to, "tcp", value=0.2, reported="10.1.0.2 port 7946", end="outer"))
                pairs.append(entry(to, "mtu", value=1400, reported="1400 bytes pass whole", end="outer"))
                pairs += [entry(to, f"udp {port}", end="outer") for port in (4789, 7946)]
        found[name] = {
            "start": {"trouble": {}, "ready": {"inner": {"interface": "eth0"}, "outer": {"interface": "eth0"}}},
            "end": {"trouble": {}, "pairs": pairs, "seen": {other: [4789, 7946] for other in others}},
        }
    return found


def fail(given_records: dict[str, Any], source: str, target: str, check: str, reported: str, **more: Any) -> None:
    """Let one check from one node to another fail, at the end given."""
    end = more.pop("end", "inner")
    for one in given_records[source]["end"]["pairs"]:
        if (one["to"], one["check"], one["end"]) == (target, check, end):
            one.update({"ok": False, "value": None, "said": reported, **more})
            return
    raise AssertionError(f"nothing like that: {source} {target} {check} {end}")


def judged(wrong: dict[str, Any], wanted: Wanted = WANTED) -> list[str]:
    return judge(wrong, wanted).problems


def one(wrong: dict[str, Any], wanted: Wanted = WANTED) -> str:
    (text,) = judged(wrong, wanted)
    return text


def test_nothing_is_wrong_where_all_is_well() -> None:
    verdict = judge(records(), WANTED)
    assert (verdict.problems, verdict.notes) == ([], [])
    assert all(finding.ok for finding in verdict.findings)
    assert {finding.network for finding in verdict.findings} == {"container", "host"}
    entries = [finding.entry() for finding in verdict.findings]
    assert set(entries[0]) == {"from", "to", "network", "check", "ok", "value", "unit", "said", "reason", "remedy"}
    assert {(found["check"], found["unit"]) for found in entries} == {
        ("tcp", "ms"), ("clock", "s"), ("mtu", "bytes"), ("ssh", "ms"), ("name", "s"),
        ("udp 4789", None), ("udp 7946", None),
    }  # fmt: skip


def test_a_port_of_vxlan_that_is_cut_is_reported_once_with_what_follows_left_out() -> None:
    wrong = records()
    for source in ("gpu1", "gpu2"):
        wrong["gpu3"]["end"]["seen"][source].remove(4789)
        for check, reported in (("tcp", "10.0.0.3 port 29599: no answer"), ("ssh", "no answer within 12 s")):
            fail(wrong, source, "gpu3", check, reported)
            fail(wrong, "gpu3", source, check, reported)
    verdict = judge(wrong, WANTED)
    (text,) = verdict.problems
    assert text == (
        "gpu1, gpu2 -> gpu3: between the hosts, UDP 4789: sent, but did not arrive. Most likely: port closed: a "
        "firewall on gpu3 or between the two drops 4789/udp, so no packet of the overlay arrives. Remedy: open "
        "4789/udp there; on the host itself by ansible-playbook site.yml --tags host."
    )
    following = [found for found in verdict.findings if found.follows]
    assert len(following) == 8
    assert {found.reason for found in following} <= {
        f"follows from udp 4789 from {source} to gpu3" for source in ("gpu1", "gpu2")
    }


def test_gossip_that_is_cut_explains_names_that_are_not_found() -> None:
    wrong = records()
    wrong["gpu2"]["end"]["seen"]["gpu1"].remove(7946)
    fail(wrong, "gpu1", "gpu2", "name", "ai-gpu2: Name or service not known")
    fail(wrong, "gpu1", "gpu2", "ssh", "not tried: its name is not found", follows="name")
    assert "drops 7946/udp, so names in the overlay go out of date" in one(wrong)


def test_a_host_that_nothing_reaches_is_one_problem() -> None:
    wrong = records()
    fail(wrong, "gpu1", "gpu2", "tcp", "10.1.0.2 port 7946: no answer", end="outer")
    wrong["gpu2"]["end"]["seen"]["gpu1"] = []
    fail(wrong, "gpu1", "gpu2", "tcp", "10.0.0.2 port 29599: no answer")
    text = one(wrong)
    assert text.startswith("gpu1 -> gpu2: between the hosts, TCP: 10.1.0.2 port 7946: no answer. Most likely: nothing")
    assert "open 2377/tcp, 7946/tcp, 7946/udp and 4789/udp" in text


@pytest.mark.parametrize(
    "check, end, reported, more, words",
    [
        ("tcp", "outer", "10.1.0.2 port 2377: no answer", {}, "drops 2377/tcp"),
        ("tcp", "outer", "10.1.0.2 port 7946: Connection refused", {}, "the engine of gpu2 does not listen"),
        (
            "mtu", "outer", "packets of 9000 bytes do not arrive unfragmented, those of 1400 do", {"value": 1400},
            "MTU: the interfaces claim more than the link between the hosts carries. Remedy: set the MTU of the "
            "interfaces to at most 1400 on all hosts",
        ),
        (
            "mtu", "inner", "packets of 8950 bytes do not arrive unfragmented, those of 1350 do", {"value": 1350},
            "MTU: the overlay network claims more than the hosts' network carries. Remedy: remove overlay_network_mtu, "
            "or set it to at most 1400,",
        ),
        ("name", "inner", "ai-gpu2: Name or service not known", {}, "Most likely: DNS not converged"),
        (
            "name", "inner", "ai-gpu2 resolves to 10.0.0.9, but its address is 10.0.0.2", {},
            "Most likely: another container has this name",
        ),
        ("tcp", "inner", "10.0.0.2 port 29599: no answer", {}, "the overlay has no working path between the two"),
        (
            "tcp", "inner", "something else than gpu2 answers at 10.0.0.2 port 29599", {},
            "two containers with one address",
        ),
        ("ssh", "inner", "root@ai-gpu2: Permission denied (publickey)", {}, "Most likely: key: "),
        ("ssh", "inner", "Host key verification failed.", {}, "Most likely: key: "),
        ("ssh", "inner", "connect to host ai-gpu2 port 2222: Connection refused", {}, "port closed: no sshd listens"),
        ("ssh", "inner", "connect to host ai-gpu2 port 2222: Connection timed out", {}, "port closed: 2222/tcp"),
    ],
)  # fmt: skip
def test_each_failure_has_its_reason(check: str, end: str, reported: str, more: dict[str, Any], words: str) -> None:
    wrong = records()
    fail(wrong, "gpu1", "gpu2", check, reported, end=end, **more)
    text = one(wrong)
    assert text.startswith("gpu1 -> gpu2: ")
    assert reported.rstrip(".") in text
    assert words in text
    assert "Remedy: " in text


def test_an_encrypted_overlay_that_carries_nothing_is_reported_as_such() -> None:
    wrong = records()
    fail(wrong, "gpu1", "gpu2", "tcp", "10.0.0.2 port 29599: no answer")
    assert "IP protocol 50 (ESP)" in one(wrong, Wanted(hosts=NODES, encrypted=True))


def test_on_the_hosts_network_a_closed_port_is_a_firewall() -> None:
    wrong = records(overlay=False)
    fail(wrong, "gpu1", "gpu2", "tcp", "10.1.0.2 port 29599: no answer")
    text = one(wrong, FLAT)
    assert text.startswith("gpu1 -> gpu2: between the hosts, TCP: 10.1.0.2 port 29599: no answer.")
    assert "drops TCP in 29500-29599" in text


def test_a_clock_that_is_apart_is_reported_of_the_node_that_has_it() -> None:
    wrong = records()
    for name in ("gpu1", "gpu3"):
        for found in wrong[name]["end"]["pairs"]:
            if (found["to"], found["check"]) == ("gpu2", "clock"):
                found["value"] = 120.0
    for found in wrong["gpu2"]["end"]["pairs"]:
        if found["check"] == "clock":
            found["value"] = -120.0
    assert one(wrong) == (
        "gpu1, gpu3 -> gpu2: clock: its clock is 120.0 s ahead. Most likely: its time is not synchronised; 30 s are "
        "allowed. Remedy: timedatectl set-ntp true on gpu2, with a time server that it reaches."
    )


def test_of_two_nodes_the_clock_ahead_is_reported() -> None:
    wrong = records(("gpu1", "gpu2"))
    wrong["gpu1"]["end"]["pairs"][1]["value"] = 120.0
    wrong["gpu2"]["end"]["pairs"][1]["value"] = -120.0
    assert one(wrong, Wanted(hosts=("gpu1", "gpu2"))).startswith("gpu1 -> gpu2: clock: its clock is 120.0 s ahead")


@pytest.mark.parametrize(
    "record, reported",
    [
        (
            None,
            "gpu2: it did not answer when the network was tested. Remedy: check the error of this node above.",
        ),
        ({"start": {"unreachable": True}, "end": None}, "gpu2: it did not answer when the network was tested."),
        (
            {"start": {"trouble": {"text": "its container ai-gpu2 does not run", "remedy": "start it"}}, "end": None},
            "gpu2: its container ai-gpu2 does not run. Remedy: start it.",
        ),
    ],
)
def test_a_node_that_could_not_try_is_named_and_not_blamed_pair_by_pair(record: Any, reported: str) -> None:
    wrong = records()
    wrong["gpu2"] = record
    for name in ("gpu1", "gpu3"):
        wrong[name]["end"]["pairs"] = [found for found in wrong[name]["end"]["pairs"] if found["to"] != "gpu2"]
    verdict = judge(wrong, WANTED)
    assert len(verdict.problems) == 1
    assert verdict.problems[0].startswith(reported)
    assert {finding.target for finding in verdict.findings} == {"gpu1", "gpu3"}


def test_a_name_that_was_waited_for_is_a_note() -> None:
    slow = records()
    for found in slow["gpu1"]["end"]["pairs"]:
        if found["check"] == "name" and found["to"] == "gpu3":
            found["value"] = 31.4
    verdict = judge(slow, WANTED)
    assert verdict.problems == []
    assert verdict.notes == [
        "gpu1 found the name of gpu3 only after 31 s: the overlay's DNS was still converging, as it does for up to a "
        "minute after a restart of the engine's daemon."
    ]


def test_what_could_not_be_measured_is_reported_and_does_not_fail() -> None:
    deaf = records()
    deaf["gpu2"]["start"]["ready"]["outer"]["deaf"] = "Operation not permitted"
    deaf["gpu2"]["end"]["seen"] = {}
    verdict = judge(deaf, WANTED)
    assert verdict.problems == []
    assert verdict.notes == [
        "gpu1 -> gpu2, gpu3 -> gpu2: UDP 4789 between the hosts not measured: gpu2 cannot see datagrams.",
        "gpu1 -> gpu2, gpu3 -> gpu2: UDP 7946 between the hosts not measured: gpu2 cannot see datagrams.",
    ]


CHECKS = [("tcp", "inner"), ("mtu", "inner"), ("ssh", "inner"), ("name", "inner"), ("tcp", "outer"), ("mtu", "outer")]


@given(
    st.lists(
        st.tuples(
            st.permutations(NODES), st.sampled_from(CHECKS), st.sampled_from(["no answer", "Connection refused"])
        ),
        max_size=12,
    )
)
def test_whatever_fails_something_is_reported_of_it_and_of_nothing_else(broken: list[Any]) -> None:
    wrong = copy.deepcopy(records())
    for (source, target, *_rest), (check, end), printed in broken:
        fail(wrong, source, target, check, printed, end=end)
    verdict: Verdict = judge(wrong, WANTED)
    failed = [finding for finding in verdict.findings if not finding.ok]
    assert bool(failed) == bool(broken) == bool(verdict.problems)
    assert all(finding.reason and finding.remedy for finding in failed)
    # Each consequence has a cause between the same two nodes, which is reported.
    reported = {frozenset((finding.source, finding.target)) for finding in failed if not finding.follows}
    assert {frozenset((finding.source, finding.target)) for finding in failed} == reported
