# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role swarm, searched: against a comparison in a few lines, and against itself afterwards."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.swarm_hosts import HOSTS, OUT, act, facts, inputs, listed, member, plan

ROLE = st.sampled_from(["manager", "worker"])
AVAILABILITY = st.sampled_from(["active", "pause", "drain"])
STATE = st.sampled_from(["ready", "ready", "down"])


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Three hosts: the first out of swarms, in this one, or in one without label; the others likewise, or elsewhere."""
    first = draw(st.sampled_from(["out", "in", "in", "in", "unlabelled"]))
    others = {host: draw(st.sampled_from(["out", "in", "in", "elsewhere"])) for host in HOSTS[1:]}
    nodes = [listed("gpu1", "manager", availability=draw(AVAILABILITY))]
    for host, where in others.items():
        if where == "in":
            nodes.append(listed(host, draw(ROLE), availability=draw(AVAILABILITY), state=draw(STATE)))
    for number in range(draw(st.integers(0, 2))):  # earlier lives, and strangers
        name = draw(st.sampled_from([*HOSTS, "old", "stranger"]))
        role, state = draw(ROLE), draw(STATE)
        nodes.append(
            listed(name, role, id=f"former{number}", state=state, addr=draw(st.sampled_from(["10.1.0.3", ""])))
        )
    swarm = OUT if first == "out" else member("gpu1", *nodes)
    found = {"gpu1": facts("gpu1", {**swarm, "labels": {}} if first == "unlabelled" else swarm)}
    roles = {str(node["id"]): node["role"] for node in nodes}
    for host, where in others.items():
        own = OUT if where == "out" else member(host, manager=roles.get(f"id-{host}") == "manager")
        found[host] = facts(host, {**own, "node_id": f"elsewhere-{host}"} if where == "elsewhere" else own)
    return found


WISHED = st.fixed_dictionaries(
    {},
    optional={
        "swarm_allow_leave_foreign": st.booleans(),
        "swarm_allow_adopt": st.booleans(),
        "swarm_availability": AVAILABILITY,
        "swarm_prune_stale_nodes": st.booleans(),
        "swarm_removed_nodes": st.lists(st.sampled_from(["old", "stranger", "gpu3"]), unique=True),
    },
)
MANAGERS = st.sampled_from([(), ("gpu2",), ("gpu2", "gpu3")])


def compared(found: dict[str, Any], managers: tuple[str, ...], wished: dict[str, Any]) -> set[str]:
    """Return the hosts on which something differs, the first one's list of nodes included, as README.md says."""
    swarm = found["gpu1"]["docker"]["swarm"]
    label = swarm["labels"].get("swarmspeed.cluster")
    ours = swarm["manager"] and (label == "lab" or (label is None and bool(wished.get("swarm_allow_adopt"))))
    nodes = {node["id"]: node for node in swarm["nodes"]} if ours else {}
    ids = {host: found[host]["docker"]["swarm"]["node_id"] for host in HOSTS}
    differing = set()
    for host, node_id in ids.items():
        entry = nodes.get(node_id)
        role = "manager" if host in ("gpu1", *managers) else "worker"
        wanted = {"role": role, "availability": wished.get("swarm_availability", "active")}
        if entry is None or {key: entry[key] for key in wanted} != wanted:
            differing.add(host)
    if ours and label is None:
        differing.add("gpu1")
    addresses = {nodes[node_id]["hostname"]: nodes[node_id]["addr"] for node_id in ids.values() if node_id in nodes}
    # Who is still to join will have the address of the underlay.
    addresses = {host: addresses.get(host) or f"10.1.0.{number}" for number, host in enumerate(HOSTS, 1)}
    for node in nodes.values():
        if node["id"] in ids.values():
            continue
        gone = node["state"] == "down" or node["addr"] == addresses.get(node["hostname"])
        stale = wished.get("swarm_prune_stale_nodes", True) and node["hostname"] in HOSTS and gone
        departed = node["hostname"] in wished.get("swarm_removed_nodes", [])
        if stale or (departed and not (wished.get("swarm_prune_stale_nodes", True) and node["hostname"] in HOSTS)):
            differing.add("gpu1")
    return differing | ({"gpu1"} if differing else set())


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(clusters(), MANAGERS, WISHED)
def test_a_change_is_planned_where_the_comparison_finds_a_difference(
    found: dict[str, Any], managers: tuple[str, ...], wished: Any
) -> None:
    made = plan(found, inputs(*managers), **wished)
    if not made.refusals:
        assert {change.host for change in made.changes} == compared(found, managers, wished)


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(clusters(), MANAGERS, WISHED)
def test_once_all_is_done_nothing_is_left_to_do(found: dict[str, Any], managers: tuple[str, ...], wished: Any) -> None:
    made = plan(found, inputs(*managers), **wished)
    if made.refusals:
        return
    after = plan(made.facts, inputs(*managers), **wished)
    assert [(change.host, change.what) for change in after.changes] == [] and after.refusals == ()
    for host in HOSTS:
        assert not any(act(after, host)[name] for name in ("form", "join", "entering", "arrange", "arranging"))


@settings(deadline=None, derandomize=True, max_examples=examples(500))
@given(clusters(), MANAGERS, WISHED)
def test_the_role_has_something_to_act_on_for_each_change(
    found: dict[str, Any], managers: tuple[str, ...], wished: Any
) -> None:
    made = plan(found, inputs(*managers), **wished)
    first = act(made, "gpu1")
    for change in made.changes:
        todo = act(made, change.host)
        if change.what.startswith("membership of "):
            assert todo["form"] or todo["join"]
        else:  # in this round, or once hosts have joined and it is planned again
            assert todo["entering"] or todo["arranging"]
    if made.changes:
        assert made.pending("swarm", "gpu1") and (first["entering"] or first["arrange"] or made.refusals)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(
    st.dictionaries(st.sampled_from(["docker", "system"]), JSON),
    st.dictionaries(st.sampled_from(["swarm", "running", "error", "networks"]), JSON | st.just(True)),
    st.dictionaries(st.sampled_from(["state", "node_id", "manager", "labels", "nodes"]), JSON | st.just("active")),
    st.dictionaries(st.sampled_from(["hosts", "managers", "underlay", "first"]), JSON),
)
def test_odd_facts_are_no_exception(
    odd: dict[str, Any], docker: dict[str, Any], swarm: dict[str, Any], cluster: dict[str, Any]
) -> None:
    whole = inputs()
    for host, replaced in (
        ("gpu1", {"docker": {"running": True, "swarm": swarm}}),
        ("gpu2", odd),
        ("gpu3", {"docker": docker}),
    ):
        found = {name: facts(name, OUT) for name in HOSTS}
        found[host] = {**found[host], **replaced}
        json.dumps(outcome(plan(found, whole), "", ["swarm"]), default=str)
    given_cluster = type(whole)(cluster={**whole.cluster, **cluster})
    json.dumps(outcome(plan({name: facts(name, OUT) for name in HOSTS}, given_cluster), "", ["swarm"]), default=str)
