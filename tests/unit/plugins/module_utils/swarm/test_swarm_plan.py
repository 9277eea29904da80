# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The steps from what is to what is wanted, and the refusals. States are invented; their shapes are the engine's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm import steps as plan
from ansible_collections.swarmspeed.cluster.plugins.module_utils.swarm.state import (
    Current,
    Node,
    Step,
    SwarmError,
    Wanted,
    relation,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

LABEL = {"swarmspeed.cluster": "demo"}
AT = {"10.0.0.1:2377": "boss"}


def node(node_id: str, hostname: str = "", role: str = "worker", **kwargs: Any) -> Node:
    return Node(node_id, hostname or node_id, role, **kwargs)


def boss(node_id: str, **kwargs: Any) -> Node:
    return node(node_id, role="manager", **kwargs)


VIRGIN = Current()
WORKER = Current(state="active", node_id="me", remotes=AT)
MANAGER = Current(state="active", node_id="me", manager=True, cluster_id="C1", labels=LABEL, nodes=(boss("me"),))
OF_TWO = replace(MANAGER, nodes=(boss("me"), boss("b")))
OF_TWO_ONE_GONE = replace(MANAGER, nodes=(boss("me"), boss("b", reachable=False)))
NO_LEADER = Current(state="active", node_id="me", manager=True, error="The swarm does not have a leader.", remotes=AT)
PENDING = Current(state="pending", remotes={"10.0.0.1:2377": ""})
LOCKED = Current(state="locked", error="Swarm is encrypted and needs to be unlocked before it can be used.")
KNOWN = frozenset({"boss", "me"})
STRANGERS = frozenset({"boss2"})
JOIN: dict[str, Any] = {"remote_addrs": ["10.0.0.1:2377"], "join_token": "SWMTKN-1-a-b"}


def want(state: str, **kwargs: Any) -> Wanted:
    return Wanted(**{"state": state, "cluster": "demo", **kwargs})


def short(steps: list[Step]) -> list[str]:
    """Each step on one line; a forced one with an exclamation mark."""
    return [
        " ".join(filter(None, (step.kind, step.node, step.role)))
        + ("!" if step.force else "")
        + (f": {step.words}" if step.words else "")
        for step in steps
    ]


INIT, LEAVE = "init manager: init", "leave: leave swarm"
AS_WORKER, AS_MANAGER = "join worker: join as worker", "join manager: join as manager"
CASES: list[tuple[Current, Wanted, list[str]]] = [
    # into the swarm
    (VIRGIN, want("manager", init=True), [INIT]),
    (VIRGIN, want("manager", init=True, member_ids=frozenset()), [INIT]),
    (VIRGIN, want("manager", init=True, member_ids=KNOWN), [AS_MANAGER]),
    (VIRGIN, want("manager", init=True, cluster_id="C1"), [AS_MANAGER]),
    (VIRGIN, want("manager", init=True, **JOIN), [AS_MANAGER]),
    (VIRGIN, want("manager", init=True, remote_addrs=["10.0.0.1:2377"]), [INIT]),
    (VIRGIN, want("manager"), [AS_MANAGER]),
    (VIRGIN, want("worker"), [AS_WORKER]),
    # there already
    (WORKER, want("worker", member_ids=KNOWN), []),
    (MANAGER, want("manager"), []),
    (MANAGER, want("manager", init=True), []),
    (MANAGER, want("manager", data_path_port=4789, default_addr_pool=["10.0.0.0/8"], subnet_size=24), []),
    # there, but otherwise
    (replace(WORKER, state="pending"), want("worker", member_ids=KNOWN), ["wait"]),
    (WORKER, want("manager", member_ids=KNOWN), ["wait manager"]),
    (OF_TWO, want("worker"), ["role me worker: demote to worker"]),
    (
        replace(MANAGER, labels={}),
        want("manager", init=True, cluster_id="C1"),
        ["label: label swarm"],
    ),
    (replace(MANAGER, labels={}), want("manager", init=True, adopt=True), ["label: label swarm"]),
    (replace(MANAGER, labels={}), want("manager", init=True, adopt=True, leave_foreign=True), ["label: label swarm"]),
    # elsewhere
    (
        replace(WORKER, node_id="gone"),
        want("worker", member_ids=KNOWN),
        ["leave: leave, as the managers removed this node", AS_WORKER],
    ),
    (WORKER, want("worker", member_ids=STRANGERS, leave_foreign=True), ["leave: leave foreign swarm", AS_WORKER]),
    (MANAGER, want("worker", cluster_id="C2", leave_foreign=True), ["leave!: leave foreign swarm", AS_WORKER]),
    (
        replace(MANAGER, labels={}),
        want("manager", init=True, leave_foreign=True, member_ids=frozenset({"me"})),
        ["leave!: leave foreign swarm", INIT],
    ),
    (LOCKED, want("worker", leave_foreign=True), ["leave!: leave unknown swarm", AS_WORKER]),
    (PENDING, want("worker", member_ids=KNOWN, **JOIN), ["leave!: cancel unfinished join", AS_WORKER]),
    (PENDING, want("worker", remote_addrs=["10.0.0.1"]), ["leave!: cancel unfinished join", AS_WORKER]),
    # out of it
    (VIRGIN, want("absent"), []),
    (WORKER, want("absent", member_ids=KNOWN), [LEAVE]),
    (WORKER, want("absent", member_ids=KNOWN, force=True), [LEAVE]),
    (replace(WORKER, node_id="gone"), want("absent", member_ids=KNOWN), [LEAVE]),
    (replace(WORKER, state="pending"), want("absent", member_ids=KNOWN), ["leave!: leave swarm"]),
    (PENDING, want("absent", **JOIN), ["leave!: leave swarm"]),
    (MANAGER, want("absent", force=True), ["leave!: leave swarm"]),
    (OF_TWO, want("absent"), ["role me worker: demote to worker", LEAVE]),
    (OF_TWO, want("absent", force=True), ["role me worker!: demote to worker", "leave!: leave swarm"]),
    (OF_TWO_ONE_GONE, want("absent", force=True), ["leave!: leave swarm"]),
    (NO_LEADER, want("absent", member_ids=KNOWN, force=True), ["leave!: leave swarm"]),
    # not its swarm: left alone, or left when configured
    (WORKER, want("absent"), []),
    (WORKER, want("absent", member_ids=STRANGERS, force=True), []),
    (MANAGER, want("absent", cluster_id="C2", force=True), []),
    (replace(MANAGER, labels={}), want("absent", force=True), []),
    (LOCKED, want("absent", force=True), []),
    (PENDING, want("absent"), []),
    (WORKER, want("absent", leave_foreign=True), ["leave: leave foreign swarm"]),
    (MANAGER, want("absent", cluster_id="C2", leave_foreign=True), ["leave!: leave foreign swarm"]),
    (LOCKED, want("absent", leave_foreign=True), ["leave!: leave foreign swarm"]),
]


@pytest.mark.parametrize(("current", "wanted", "expected"), CASES)
def test_steps_of_membership(current: Current, wanted: Wanted, expected: list[str]) -> None:
    assert short(plan.plan_membership(current, wanted)) == expected


OTHER_WORKER = "This host is a worker of another swarm (node me, managers at 10.0.0.1:2377), not of swarm demo"
LEAVE_HINT = " leave_foreign: true makes this host leave it, which ends what that swarm runs here. Nothing was changed."
REFUSALS: list[tuple[Current, Wanted, str]] = [
    (WORKER, want("worker", member_ids=STRANGERS), f"{OTHER_WORKER}.{LEAVE_HINT}"),
    (
        replace(MANAGER, labels={"swarmspeed.cluster": "other"}, remotes={"10.9.0.1:2377": "me"}),
        want("manager", init=True, adopt=True),
        "This host is a manager of swarm other (node me, swarm id C1, managers at 10.9.0.1:2377), not of swarm demo."
        + LEAVE_HINT,
    ),
    (
        replace(MANAGER, labels={}),
        want("manager", init=True),
        "This host is a manager of a swarm that no cluster is named on (node me, swarm id C1, managers at unknown),"
        f" not of swarm demo. adopt: true takes that swarm over as it is;{LEAVE_HINT}",
    ),
    (
        WORKER,
        want("worker", leave_foreign=True),
        "This host is a worker of some swarm, and which one only its managers know: give member_ids, the node ids that"
        " the managers of demo list (an empty list if there are none yet).",
    ),
    (
        LOCKED,
        want("worker"),
        "It is not known which swarm this host is in (state locked, Swarm is encrypted and needs to be unlocked before"
        " it can be used). If it is locked, run `docker swarm unlock` on it; otherwise `docker swarm leave --force` on"
        " it, or leave_foreign: true here, lets it join again.",
    ),
    (
        replace(WORKER, state="error", error="Swarm certificates have expired."),
        want("worker", member_ids=KNOWN),
        "This host's membership of swarm demo is in state error (Swarm certificates have expired). Run `docker swarm"
        " leave --force` on this host, then this play again: it joins again.",
    ),
    (
        NO_LEADER,
        want("manager", member_ids=KNOWN),
        "Swarm demo has no leader (The swarm does not have a leader). Start the engines of the other managers. If they"
        " are lost, run `docker swarm init --force-new-cluster` here: it keeps the swarm.",
    ),
    (
        MANAGER,
        want("worker"),
        "Cannot demote me (me): without it 0 of 0 managers answer, and a swarm needs a majority, of at least one."
        " Promote or bring back another manager first.",
    ),
    (
        MANAGER,
        want("manager", data_path_port=4790),
        "Swarm demo was made with data_path_port 4789, not 4790, and that is fixed for its life. Set data_path_port to"
        " 4789, or tear the cluster down and build it again.",
    ),
    (
        replace(MANAGER, labels={}),
        want("manager", init=True, adopt=True, default_addr_pool=["10.1.0.0/16", "10.2.0.0/16"]),
        "Swarm demo was made with default_addr_pool 10.0.0.0/8, not 10.1.0.0/16, 10.2.0.0/16, and that is fixed for"
        " its life. Set default_addr_pool to 10.0.0.0/8, or tear the cluster down and build it again.",
    ),
    (
        replace(VIRGIN, live_restore=True),
        want("worker"),
        "The Docker engine runs with live-restore, which swarm mode refuses: take live-restore out of"
        " /etc/docker/daemon.json (or the engine's command line) and restart the engine.",
    ),
    (
        replace(VIRGIN, nftables=True),
        want("manager", init=True),
        "The Docker engine runs with the nftables firewall backend, which swarm mode refuses: set"
        ' "firewall-backend": "iptables" in /etc/docker/daemon.json and restart the engine.',
    ),
    (
        MANAGER,
        want("absent"),
        "This host cannot leave swarm demo safely: it is the last manager, and with it go the swarm and its overlay"
        " networks. Bring other managers up first, or give force: true.",
    ),
    (
        OF_TWO_ONE_GONE,
        want("absent"),
        "This host cannot leave swarm demo safely: without it 0 of 1 managers answer, which is not a majority."
        " Bring other managers up first, or give force: true.",
    ),
    (
        NO_LEADER,
        want("absent", member_ids=KNOWN),
        "This host cannot leave swarm demo safely: it has no leader (The swarm does not have a leader)."
        " Bring other managers up first, or give force: true.",
    ),
]


@pytest.mark.parametrize(("current", "wanted", "text"), REFUSALS)
def test_refusals_of_membership(current: Current, wanted: Wanted, text: str) -> None:
    with pytest.raises(SwarmError) as caught:
        plan.plan_membership(current, wanted)
    assert str(caught.value) == text


STATES = [VIRGIN, WORKER, MANAGER, OF_TWO, OF_TWO_ONE_GONE, NO_LEADER, PENDING, LOCKED, replace(MANAGER, labels={})]


@settings(max_examples=examples(200))
@given(
    st.sampled_from(STATES),
    st.sampled_from(["manager", "worker", "absent"]),
    st.sampled_from([None, frozenset(), KNOWN, STRANGERS]),
    st.sampled_from(["", "C1", "C2"]),
    st.booleans(),
)
def test_without_consent_no_other_swarm_is_left(
    current: Current, state: str, members: frozenset[str] | None, cluster_id: str, force: bool
) -> None:
    wanted = want(state, member_ids=members, cluster_id=cluster_id, force=force)
    if relation(current, wanted) not in ("foreign", "unlabelled", "unknown"):
        return
    try:
        assert plan.plan_membership(current, wanted) == []
    except SwarmError:
        assert state != "absent"


def test_joining_needs_address_and_token() -> None:
    wanted = want("manager", init=True, cluster_id="C1", remote_addrs=["10.0.0.1:2377"])
    with pytest.raises(SwarmError) as caught:
        plan.check_join(plan.plan_membership(VIRGIN, wanted), wanted)
    assert str(caught.value) == (
        "This host has to join swarm demo; missing: join_token. Take the token from a manager that is up"
        " (return_tokens: true) and its address with port 2377. init does not create a second swarm beside one that"
        " exists."
    )
    plan.check_join(plan.plan_membership(VIRGIN, want("worker", **JOIN)), want("worker", **JOIN))
    plan.check_join(plan.plan_membership(VIRGIN, want("manager", init=True)), want("manager", init=True))


def test_notes() -> None:
    assert plan.notes(WORKER, want("absent", member_ids=STRANGERS)) == [
        f"{OTHER_WORKER}, and was left alone. leave_foreign: true makes it leave."
    ]
    assert plan.notes(WORKER, want("absent")) == [
        "It is not known which swarm this host is in (state active, managers at 10.0.0.1:2377), so it was left alone."
        " Give member_ids, or leave_foreign: true to make it leave whichever it is."
    ]
    moved = replace(WORKER, node_addr="10.0.0.2")
    for requested in ("10.0.0.3", "10.0.0.3:2377"):
        assert plan.notes(moved, want("worker", member_ids=KNOWN, advertise_addr=requested)) == [
            "This node advertises 10.0.0.2, not 10.0.0.3: an address is fixed when a node joins. To change it, run with"
            " state: absent and then again."
        ]
    for requested in ("10.0.0.2", "10.0.0.2:2377", "eth0", ""):
        assert plan.notes(moved, want("worker", member_ids=KNOWN, advertise_addr=requested)) == []
    assert plan.notes(WORKER, want("absent", member_ids=KNOWN)) == []
    assert plan.notes(VIRGIN, want("absent")) == []
    assert plan.notes(WORKER, want("absent", member_ids=STRANGERS, leave_foreign=True)) == []


def listed(*nodes: Node, **kwargs: Any) -> Current:
    return replace(MANAGER, nodes=nodes, **kwargs)


def names(**ids: str) -> Mapping[str, frozenset[str]]:
    return {hostname: frozenset(filter(None, node_ids.split(","))) for hostname, node_ids in ids.items()}


ME = boss("me", hostname="h1", addr="10.0.0.1")
H2, H3 = node("b", "h2", addr="10.0.0.2"), node("c", "h3", addr="10.0.0.3")
DOWN2 = node("old", "h2", state="down", addr="10.0.0.9")
LATE2 = node("old", "h2", addr="10.0.0.2")
NODE_CASES: list[tuple[Current, Wanted, list[str]]] = [
    (listed(ME, H2, DOWN2), want("manager"), []),
    (listed(ME, H2, DOWN2), want("manager", hostnames=names(h2="b")), ["remove old: remove stale node h2 (old)"]),
    (listed(ME, DOWN2), want("manager", hostnames=names(h2="")), ["remove old: remove stale node h2 (old)"]),
    (
        listed(ME, H2, LATE2),
        want("manager", hostnames=names(h2="b")),
        ["wait old", "remove old: remove stale node h2 (old)"],
    ),
    # never: a node that is up elsewhere, that belongs, that bears another name, or this one
    (listed(ME, H2, replace(LATE2, addr="10.0.0.9")), want("manager", hostnames=names(h2="b")), []),
    (listed(ME, replace(H2, addr=""), replace(LATE2, addr="")), want("manager", hostnames=names(h2="b")), []),
    (listed(ME, replace(H2, state="down")), want("manager", hostnames=names(h2="b")), []),
    (listed(ME, H2, DOWN2), want("manager", hostnames=names(h2="b,old")), []),
    (listed(ME, H2, DOWN2), want("manager", hostnames=names(h2="b", h3="old")), []),
    (listed(ME, H2, DOWN2), want("manager", hostnames=names(h2="b"), node_roles={"old": "worker"}), []),
    (listed(ME, H2, DOWN2), want("manager", hostnames=names(h3="c"), removed_nodes=frozenset({"h4"})), []),
    (listed(replace(ME, state="down")), want("manager", hostnames=names(h1="x")), []),
    # departed
    (
        listed(ME, replace(H2, addr="10.0.0.9"), replace(H2, id="b2")),
        want("manager", removed_nodes=frozenset({"b"})),
        ["wait b", "remove b: remove node h2 (b)"],
    ),
    (
        listed(ME, H2, replace(H3, state="down")),
        want("manager", removed_nodes=frozenset({"h2", "h3"})),
        ["wait b", "remove b: remove node h2 (b)", "remove c: remove node h3 (c)"],
    ),
    (listed(ME, H2), want("manager", removed_nodes=frozenset({"h2"}), hostnames=names(h2="b")), []),
    # roles: up, then out, then down
    (
        listed(ME, boss("b"), H3, boss("old", hostname="h3", state="down", reachable=False)),
        want("manager", hostnames=names(h3="c"), node_roles={"c": "manager", "b": "worker", "me": "manager"}),
        [
            "role c manager: promote h3 (c)",
            "role old worker: demote h3 (old)",
            "remove old: remove stale node h3 (old)",
            "role b worker: demote b (b)",
        ],
    ),
    (listed(ME, H2), want("manager", node_roles={"me": "manager", "b": "worker"}), []),
    (listed(ME, boss("b")), want("absent", node_roles={}), []),
    # availability: last, and not of a node that is removed
    (
        listed(ME, replace(H2, availability="drain"), H3),
        want("manager", node_availability={"b": "active", "c": "active", "me": "pause"}),
        ["availability me pause: set h1 (me) to pause", "availability b active: set h2 (b) to active"],
    ),
    (listed(ME, replace(H2, availability="drain")), want("manager"), []),
    (listed(ME, replace(H2, availability="drain")), want("manager", node_availability={"b": "drain"}), []),
    (
        listed(ME, replace(H2, state="down", availability="drain")),
        want("manager", removed_nodes=frozenset({"h2"}), node_availability={"b": "active"}),
        ["remove b: remove node h2 (b)"],
    ),
]


@pytest.mark.parametrize(("current", "wanted", "expected"), NODE_CASES)
def test_steps_of_the_list(current: Current, wanted: Wanted, expected: list[str]) -> None:
    assert short(plan.plan_nodes(current, wanted)) == expected


@pytest.mark.parametrize(
    ("current", "wanted", "text"),
    [
        (
            listed(ME),
            want("manager", node_roles={"x": "worker"}),
            "node_roles names x, which this swarm does not know: join that host first.",
        ),
        (
            listed(ME),
            want("manager", node_availability={"x": "drain"}),
            "node_availability names x, which this swarm does not know: join that host first.",
        ),
        (
            listed(ME, boss("b")),
            want("manager", node_roles={"me": "worker"}),
            "node_roles makes this very node a worker, and state makes it a manager: take one of them out.",
        ),
        (
            listed(ME, replace(H2, state="down")),
            want("manager", node_roles={"b": "manager"}),
            "h2 (b) is down and cannot be promoted: start its engine, then run again.",
        ),
        (
            listed(ME, boss("b"), boss("c", reachable=False)),
            want("manager", node_roles={"b": "worker"}),
            "Cannot demote b (b): without it 1 of 2 managers answer, and a swarm needs a majority, of at least one."
            " Promote or bring back another manager first.",
        ),
    ],
)
def test_refusals_of_the_list(current: Current, wanted: Wanted, text: str) -> None:
    with pytest.raises(SwarmError) as caught:
        plan.plan_nodes(current, wanted)
    assert str(caught.value) == text


ROLES = st.dictionaries(st.sampled_from("abcde"), st.sampled_from(["manager", "worker"]))


@settings(max_examples=examples(150))
@given(st.lists(st.tuples(st.sampled_from(["manager", "worker"]), st.booleans()), min_size=5, max_size=5), ROLES)
def test_a_majority_stands_after_every_step(found: list[tuple[str, bool]], roles: dict[str, str]) -> None:
    nodes = [Node(name, name, role, reachable=up) for name, (role, up) in zip("abcde", found)]
    everyone = {entry.id: entry for entry in [boss("me"), *nodes]}
    try:
        steps = plan.plan_nodes(listed(*everyone.values()), want("manager", node_roles=roles))
    except SwarmError:
        return
    for step in steps:
        everyone[step.node] = replace(everyone[step.node], role=step.role, reachable=True)
        managers = [entry for entry in everyone.values() if entry.role == "manager"]
        if step.role == "worker":
            assert 2 * sum(entry.reachable for entry in managers) > len(managers)
    assert {name: everyone[name].role for name in roles} == roles
