# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which swarm is a host in: answers of an engine and parameters, read."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm import state as swarm
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm.state import (
    Current,
    Node,
    Step,
    SwarmError,
    Wanted,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

# Recorded from engine 20.10.24 (Debian 12), GET /info of a manager and of a worker, GET /nodes; unused fields left out.
MANAGER_INFO: dict[str, Any] = {
    "Name": "node1",
    "LiveRestoreEnabled": False,
    "Swarm": {
        "NodeID": "2hdkdavc3qmc5ip327xdgyodv",
        "NodeAddr": "172.31.77.11",
        "LocalNodeState": "active",
        "ControlAvailable": True,
        "Error": "",
        "RemoteManagers": [{"NodeID": "2hdkdavc3qmc5ip327xdgyodv", "Addr": "172.31.77.11:2377"}],
        "Cluster": {
            "ID": "vc0abjt4fkcnsrau86dx30z50",
            "Version": {"Index": 10},
            "Spec": {"Name": "default", "Labels": {"swarmspeed.cluster": "demo"}},
            "DefaultAddrPool": ["10.0.0.0/8"],
            "SubnetSize": 24,
            "DataPathPort": 4789,
        },
    },
}
WORKER_INFO: dict[str, Any] = {
    "Name": "node2",
    "LiveRestoreEnabled": False,
    "Swarm": {
        "NodeID": "7vaur21bposb0j0matczug7aq",
        "NodeAddr": "172.31.77.12",
        "LocalNodeState": "active",
        "ControlAvailable": False,
        "Error": "",
        "RemoteManagers": [{"NodeID": "2hdkdavc3qmc5ip327xdgyodv", "Addr": "172.31.77.11:2377"}],
    },
}
NODES: list[dict[str, Any]] = [
    {
        "ID": "2hdkdavc3qmc5ip327xdgyodv",
        "Version": {"Index": 9},
        "Spec": {"Labels": {}, "Role": "manager", "Availability": "active"},
        "Description": {"Hostname": "node1"},
        "Status": {"State": "ready", "Addr": "172.31.77.11"},
        "ManagerStatus": {"Leader": True, "Reachability": "reachable", "Addr": "172.31.77.11:2377"},
    },
    {
        "ID": "6f8ulu3qgtef7ywksisk5jsqc",
        "Version": {"Index": 44},
        "Spec": {"Labels": {}, "Role": "worker", "Availability": "active"},
        "Description": {"Hostname": "node2"},
        "Status": {"State": "down", "Message": "heartbeat failure", "Addr": "172.31.77.12"},
    },
]
TOKEN = "SWMTKN-1-0iwku0ha2ettwxp3qgmdmdjdf7tx3fqn52ltpbp4irsqq2raj6-6f6neq7zsnph1xhmq67l8to4l"  # of a swarm long gone


def test_a_manager_is_read() -> None:
    assert swarm.parse_current(MANAGER_INFO, NODES) == Current(
        state="active",
        node_id="2hdkdavc3qmc5ip327xdgyodv",
        node_addr="172.31.77.11",
        manager=True,
        cluster_id="vc0abjt4fkcnsrau86dx30z50",
        labels={"swarmspeed.cluster": "demo"},
        default_addr_pool=("10.0.0.0/8",),
        remotes={"172.31.77.11:2377": "2hdkdavc3qmc5ip327xdgyodv"},
        nodes=(
            Node("2hdkdavc3qmc5ip327xdgyodv", "node1", "manager", "ready", "active", "172.31.77.11", True, True),
            Node("6f8ulu3qgtef7ywksisk5jsqc", "node2", "worker", "down", "active", "172.31.77.12", False, True),
        ),
    )


def test_a_worker_is_read() -> None:
    current = swarm.parse_current(WORKER_INFO)
    assert (current.state, current.node_id, current.manager) == ("active", "7vaur21bposb0j0matczug7aq", False)
    assert (current.cluster_id, current.labels, current.nodes) == ("", {}, ())


@pytest.mark.parametrize(
    "info", [{}, {"Swarm": None}, {"Swarm": {"LocalNodeState": "inactive", "RemoteManagers": None}}]
)
def test_no_swarm_is_the_default(info: dict[str, Any]) -> None:
    assert swarm.parse_current(info) == Current()


def test_what_swarm_mode_refuses_is_read() -> None:
    current = swarm.parse_current(
        {"LiveRestoreEnabled": True, "FirewallBackend": {"Driver": "nftables"}, "ServerVersion": "29.0.1"}
    )
    assert current.live_restore and current.nftables
    assert not swarm.parse_current({"FirewallBackend": {"Driver": "iptables"}}).nftables
    # From 29.6 on a feature that GET /info does not show lets it in.
    for version, refused in (("29.5.3", True), ("29.6.0", False), ("29.7.2", False)):
        info = {"ServerVersion": version, "FirewallBackend": {"Driver": "nftables"}}
        assert swarm.parse_current(info).nftables is refused


def test_an_unreachable_manager_is_read() -> None:
    node = {"ID": "x", "Spec": {"Role": "manager"}, "ManagerStatus": {"Reachability": "unreachable"}}
    assert swarm.parse_node(node) == Node("x", "", "manager", "unknown", "active", "", False, False)


def current(**kwargs: Any) -> Current:
    return Current(**{"state": "active", "node_id": "me", "remotes": {"10.0.0.1:2377": "boss"}, **kwargs})


def manager(**kwargs: Any) -> Current:
    return current(**{"manager": True, "cluster_id": "C1", "labels": {"swarmspeed.cluster": "demo"}, **kwargs})


def wanted(**kwargs: Any) -> Wanted:
    return Wanted(**{"state": "manager", "cluster": "demo", **kwargs})


IDS = frozenset({"boss", "me"})
OTHER = {"swarmspeed.cluster": "other"}
RELATIONS = [
    (Current(), wanted(), "none"),
    # workers: only the managers' list tells
    (current(), wanted(state="worker", member_ids=IDS), "this"),
    (current(state="pending"), wanted(state="worker", member_ids=IDS), "this"),
    (current(), wanted(state="worker", member_ids=frozenset({"boss"})), "removed"),
    (current(), wanted(state="worker", member_ids=frozenset({"stranger"})), "foreign"),
    (current(), wanted(state="worker", member_ids=frozenset()), "foreign"),
    (current(), wanted(state="worker"), "unknown"),
    (current(node_id="", state="pending"), wanted(state="worker", member_ids=IDS), "unknown"),
    (current(node_id="", state="locked"), wanted(member_ids=IDS), "unknown"),
    # managers: label, then cluster id, then the list
    (manager(), wanted(), "this"),
    (manager(), wanted(member_ids=IDS), "this"),
    (manager(), wanted(member_ids=frozenset()), "this"),
    (manager(), wanted(cluster_id="C1"), "this"),
    (manager(), wanted(cluster_id="C2"), "foreign"),
    (manager(), wanted(cluster_id="C2", member_ids=IDS), "foreign"),
    (manager(), wanted(member_ids=frozenset({"boss"})), "foreign"),
    (manager(labels=OTHER), wanted(), "foreign"),
    (manager(labels=OTHER), wanted(member_ids=IDS, cluster_id="C1"), "foreign"),
    (manager(labels={}), wanted(init=True), "unlabelled"),
    (manager(labels={}), wanted(init=True, member_ids=IDS), "unlabelled"),
    (manager(labels={"mine": "1"}), wanted(member_ids=frozenset({"boss"})), "unlabelled"),
    (manager(labels={}), wanted(member_ids=IDS), "this"),
    (manager(labels={}), wanted(cluster_id="C1"), "this"),
    # a manager without a leader cannot say which swarm it serves, and remembers itself among the managers
    (manager(cluster_id="", labels={}), wanted(member_ids=IDS), "this"),
    (manager(cluster_id="", labels={}), wanted(), "unknown"),
    (manager(cluster_id="", remotes={"a": "me"}), wanted(member_ids=frozenset({"boss"})), "foreign"),
]


@pytest.mark.parametrize(("found", "requested", "expected"), RELATIONS)
def test_relation(found: Current, requested: Wanted, expected: str) -> None:
    assert swarm.relation(found, requested) == expected


def params(**kwargs: Any) -> dict[str, Any]:
    return {"state": "manager", "cluster": "demo", "timeout": 60, "return_tokens": False, **kwargs}


def test_parameters_are_taken_over() -> None:
    assert swarm.parse_wanted(params()) == Wanted("manager", "demo")
    found = swarm.parse_wanted(
        params(
            member_ids=["a", "", "b"],
            join_token=TOKEN,
            listen_addr="",
            hostnames={"n1": "a", "n2": None, "n3": ["b", "c"], "n4": ""},
            node_roles={"a": "worker"},
            removed_nodes=["n9"],
            default_addr_pool=["10.42.0.0/16", "10.43.0.0/16"],
            subnet_size=24,
            data_path_port=1024,
        )
    )
    assert found.member_ids == frozenset({"a", "b"})
    assert found.listen_addr == "0.0.0.0:2377"
    assert found.hostnames == {"n1": {"a"}, "n2": set(), "n3": {"b", "c"}, "n4": set()}
    assert (found.node_roles, found.removed_nodes, found.data_path_port) == ({"a": "worker"}, frozenset({"n9"}), 1024)
    assert TOKEN not in repr(found)


def test_an_empty_member_list_is_not_a_missing_one() -> None:
    assert swarm.parse_wanted(params(member_ids=[])).member_ids == frozenset()
    assert swarm.parse_wanted(params(member_ids=None)).member_ids is None


@pytest.mark.parametrize(
    ("given_params", "text"),
    [
        (params(cluster=" "), "cluster is empty: give the name of the cluster this swarm serves."),
        (
            params(state="worker", init=True),
            "init is true and state is worker: only a manager can create the swarm.",
        ),
        (
            params(join_token="SWMTKN-1-secret"),
            "join_token is not a swarm join token (SWMTKN-1-…): take it from a manager, with return_tokens: true.",
        ),
        (
            params(state="worker", hostnames={"a": "b"}),
            "hostnames is for managers: only they keep the list of nodes; state is worker.",
        ),
        (
            params(state="absent", node_roles={"a": "worker"}),
            "node_roles is for managers: only they keep the list of nodes; state is absent.",
        ),
        (params(node_availability={"a": "off"}), "node_availability: a has 'off'; it is active, pause or drain."),
        (
            params(state="worker", node_availability={"a": "drain"}),
            "node_availability is for managers: only they keep the list of nodes; state is worker.",
        ),
        (params(node_roles={"a": "boss"}), "node_roles: a has role 'boss'; it is manager or worker."),
        (
            params(hostnames={"n1": 5}),
            "hostnames: n1 needs a node id, or a list of them where hosts share the name.",
        ),
        (
            params(hostnames={"n1": ["a", 5]}),
            "hostnames: n1 needs a node id, or a list of them where hosts share the name.",
        ),
        (params(data_path_port=80), "data_path_port is 80; the engine takes 1024 to 49151."),
        (params(data_path_port=49152), "data_path_port is 49152; the engine takes 1024 to 49151."),
        (params(subnet_size=30), "subnet_size is 30; the engine takes a prefix length of at most 29."),
        (
            params(default_addr_pool=["10.42.0.1/16"]),
            "default_addr_pool: '10.42.0.1/16' is not an IPv4 network such as 10.42.0.0/16:"
            " 10.42.0.1/16 has host bits set",
        ),
        (
            params(default_addr_pool=["10.42.0.0/28"]),
            "default_addr_pool: 10.42.0.0/28 is smaller than one subnet (/24):"
            " give a larger pool or a larger subnet_size.",
        ),
        (
            params(default_addr_pool=["10.1.0.0/16", "10.1.2.0/24"]),
            "default_addr_pool: 10.1.2.0/24 and 10.1.0.0/16 overlap: give pools that share no address.",
        ),
    ],
)
def test_bad_parameters(given_params: dict[str, Any], text: str) -> None:
    with pytest.raises(SwarmError) as caught:
        swarm.parse_wanted(given_params)
    assert str(caught.value) == text


def test_departed_may_be_given_to_a_manager_that_leaves() -> None:
    assert swarm.parse_wanted(params(state="absent", removed_nodes=["a"])).removed_nodes == {"a"}


MANAGERS = st.lists(st.booleans(), min_size=1, max_size=9).map(
    lambda answers: [Node(str(i), role="manager", reachable=answer) for i, answer in enumerate(answers)]
)


@settings(max_examples=examples(60))
@given(MANAGERS, st.integers(0, 3))
def test_a_majority_stands_exactly_when_more_than_half_of_those_who_stay_answer(
    nodes: list[Node], workers: int
) -> None:
    everyone = nodes + [Node(f"w{i}") for i in range(workers)]
    staying = [node.reachable for node in nodes[1:]]
    answering, rest, enough = swarm.quorum_without(everyone, "0")
    assert (answering, rest) == (sum(staying), len(staying))
    assert enough == (sum(staying) > len(staying) / 2)


def test_diff_joins_steps_of_one_subject_and_skips_waiting() -> None:
    steps = [
        Step("leave", "leave foreign swarm", before="worker of another swarm", after="in no swarm"),
        Step("join", "join as worker", before="in no swarm", after="worker of swarm demo"),
        Step("wait", before="x", after="y"),
        Step("remove", "remove stale node", subject="n2 (id)", before="down", after="removed"),
    ]
    assert swarm.diff(steps) == (
        {"membership": "worker of another swarm", "n2 (id)": "down"},
        {"membership": "worker of swarm demo", "n2 (id)": "removed"},
    )
    assert swarm.diff([]) == ({}, {})
