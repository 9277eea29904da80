# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role overlay_network: what it plans, refuses and needs consent for, over invented hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.addressing import MTU_OPTION
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.planner import (
    NOTHING,
    OverlayNetworkPlanner,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Plan, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import consent_text, drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.planner import SwarmPlanner
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import swarm_hosts
from tests.effort import examples
from tests.role_values import defaults
from tests.swarm_hosts import HOSTS, fabric, out, whole

SUBNET = "10.64.0.0/24"
WISHES = defaults(cluster_name="lab")
NETWORK: dict[str, Any] = {
    "driver": "overlay",
    "attachable": True,
    "subnets": [SUBNET],
    "options": {MTU_OPTION: "1500"},
    "labels": {"swarmspeed.cluster": "lab"},
}
CREATE = {"subnet": SUBNET, "driver_options": {MTU_OPTION: "1500"}, "labels": {"swarmspeed.cluster": "lab"}}
FOUND = {"name": "lab", "exists": True, "subnet": SUBNET}


def inputs(**overlay: Any) -> Inputs:
    return Inputs(
        cluster={
            **swarm_hosts.inputs().cluster,
            "overlay": {"subnet": SUBNET, "mtu": 1500, "addresses": {}, **overlay},
        }
    )


def cluster(network: Mapping[str, Any] | None = None, *attached: str, jobs: Any = ()) -> dict[str, dict[str, Any]]:
    """Three hosts in a swarm, their containers up; those of ``attached`` are on the network, jobs run on gpu2."""
    found = whole()
    for host, facts in found.items():
        addresses = {"lab": "10.64.0.9"} if host in attached else {}
        facts["docker"]["containers"] = {f"lab-{host}": {"state": "running", "labels": {}, "addresses": addresses}}
        facts["jobs"] = dict(jobs) if host == "gpu2" else {}
    found["gpu1"]["docker"]["networks"] = {"lab": network} if network else {}
    return found


def plan(found: Mapping[str, Mapping[str, Any]], given_inputs: Inputs | None = None, **wished: Any) -> Plan:
    wishes = {host: {**WISHES, **wished} for host in found}
    return fold([OverlayNetworkPlanner()], found, wishes, given_inputs or inputs())


def shown(made: Plan) -> list[tuple[str, str, str, Any, Any]]:
    return [(change.host, change.action, change.what, change.before, change.after) for change in made.changes]


def act(made: Plan, host: str = "gpu1") -> Mapping[str, Any]:
    return made.acts[host]["overlay_network"]


# Changes


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_network_is_made_on_the_first_manager(encrypted: bool) -> None:
    made = plan(cluster(), overlay_network_encrypted=encrypted)
    kind = "encrypted" if encrypted else "not encrypted"
    assert shown(made) == [("gpu1", "+", "network lab", None, f"overlay, subnet {SUBNET}, MTU 1500, {kind}")]
    assert (made.refusals, made.missing_consents) == ((), [])
    options = {MTU_OPTION: "1500", **({"encrypted": ""} if encrypted else {})}
    assert act(made) == {**NOTHING, "name": "lab", "create": {**CREATE, "driver_options": options}}
    assert [made.pending("overlay_network", host) for host in HOSTS] == [True, False, False]
    assert drift_text(made.changes[0]) == "network lab is missing"


@pytest.mark.parametrize("recreate", [False, True])
@pytest.mark.parametrize("options", [{MTU_OPTION: "1500"}, {}])  # the driver's own MTU is 1500
def test_a_network_as_wished_is_left_alone(recreate: bool, options: Any) -> None:
    made = plan(cluster({**NETWORK, "options": options}, *HOSTS), overlay_network_allow_recreate=recreate)
    assert shown(made) == [] and made.refusals == ()
    assert act(made) == {**NOTHING, **FOUND, "ours": True}
    assert act(made, "gpu2") == {**NOTHING, **FOUND}


@pytest.mark.parametrize(
    ("change", "what", "before", "after"),
    [
        ({"driver": "bridge"}, "driver", "bridge", "overlay"),
        ({"attachable": False}, "attachable", False, True),
        ({"subnets": ["10.65.0.0/24"]}, "subnet", "10.65.0.0/24", SUBNET),
        ({"subnets": []}, "subnet", None, SUBNET),
        ({"options": {MTU_OPTION: "1200"}}, "MTU", "1200", "1500"),
        ({"options": {"encrypted": "", MTU_OPTION: "1500"}}, "encryption", True, False),
    ],
)
def test_another_network_of_that_name_is_replaced_by_consent_alone(
    change: Any, what: str, before: Any, after: Any
) -> None:
    made = plan(cluster({**NETWORK, **change}, "gpu2"))
    sign = "+" if before is None else "~"
    taken_off = ("container lab-gpu2", "on network lab", "taken off until the network is made again")
    expected = [
        ("gpu1", sign, f"{what} of network lab", before, after),
        ("gpu1", "~", "network lab", "present", "replaced"),
        ("gpu2", "~", *taken_off),
    ]
    assert shown(made) == expected
    # No host begins, as none may take its container off before.
    assert [change.host for change in made.missing_consents] == ["gpu1", "gpu2"]
    allowed = plan(cluster({**NETWORK, **change}, "gpu2"), overlay_network_allow_recreate=True)
    assert shown(allowed) == expected and allowed.missing_consents == [] and allowed.refusals == ()
    assert (act(allowed)["replace"], act(allowed)["create"], act(allowed)["detach"]) == (True, CREATE, "")
    assert (act(allowed, "gpu2")["detach"], act(allowed, "gpu2")["create"]) == ("lab-gpu2", {})
    assert allowed.facts["gpu2"]["docker"]["containers"]["lab-gpu2"]["addresses"] == {}


def test_the_consent_says_what_differs() -> None:
    made = plan(cluster({**NETWORK, "options": {MTU_OPTION: "1200"}}))
    assert consent_text(made.missing_consents[0]) == (
        "network lab exists with other settings (its MTU is 1200, wanted is 1500) and must be replaced, for which its "
        "containers are taken off it. Remedy: set overlay_network_allow_recreate: true to allow it, or set the "
        "overlay_network_* variables to what exists, or choose another overlay_network_name"
    )


@pytest.mark.parametrize("state", ["starting", "running"])
def test_a_running_job_is_not_cut_off_without_consent_of_its_own(state: str) -> None:
    found = cluster({**NETWORK, "subnets": ["10.65.0.0/24"]}, *HOSTS, jobs={"digits": state, "old": "failed"})
    made = plan(found, overlay_network_allow_recreate=True)
    # The job runs over all nodes: none of them takes its container off.
    assert [change.host for change in made.missing_consents] == list(HOSTS)
    assert consent_text(made.missing_consents[2]) == (
        "network lab is replaced, which cuts off job digits. Remedy: set training_container_allow_recreate: true to "
        "allow it, or wait for the job, or stop it"
    )
    assert (
        plan(found, overlay_network_allow_recreate=True, training_container_allow_recreate=True).missing_consents == []
    )
    apart = cluster({**NETWORK, "subnets": ["10.65.0.0/24"]}, "gpu3", jobs={"digits": state})
    assert plan(apart, overlay_network_allow_recreate=True).missing_consents == []  # gpu2's container is not on it


# Refusals


def test_containers_of_others_are_not_taken_off() -> None:
    found = cluster({**NETWORK, "subnets": ["10.65.0.0/24"]})
    found["gpu3"]["docker"]["containers"]["theirs"] = {"state": "running", "addresses": {"lab": "10.65.0.7"}}
    assert plan(found).refusals == ()  # nothing would be replaced
    made = plan(found, overlay_network_allow_recreate=True)
    assert [(one.subject, one.sentence) for one in made.refusals] == [
        (
            "gpu3",
            "container theirs is not ours and is on network lab, which is to be replaced. Remedy: take it off (docker "
            "network disconnect lab theirs), or remove it",
        )
    ]


def test_without_a_swarm_there_is_no_overlay() -> None:
    made = plan(out())
    assert [(one.subject, one.sentence) for one in made.refusals] == [
        ("gpu1", "it manages no swarm, and an overlay network is made in one. Remedy: apply the role swarm first")
    ]
    wishes = {host: {**WISHES, **swarm_hosts.WISHES} for host in HOSTS}
    together = fold([SwarmPlanner(), OverlayNetworkPlanner()], out(), wishes, inputs())
    assert together.refusals == () and "network lab" in [what for _host, _action, what, *_ in shown(together)]


@pytest.mark.parametrize("given_inputs", [Inputs(), swarm_hosts.inputs(), inputs()])
def test_it_is_planned_for_all_hosts_or_for_none(given_inputs: Inputs) -> None:
    found = {host: known for host, known in cluster().items() if host != "gpu3"}
    made = plan(found, given_inputs)
    assert [one.subject for one in made.refusals] == ["gpu1", "gpu2"] and shown(made) == []


@pytest.mark.parametrize("wished", [{"cluster_network_mode": "host"}, {"deepspeed_launch_runtime": "host"}])
def test_without_an_overlay_the_role_does_nothing_and_teardown_removes_what_is_ours(wished: Any) -> None:
    for given_inputs in (Inputs(), inputs()):
        made = plan(cluster(), given_inputs, **wished)
        assert (shown(made), made.refusals, act(made)["create"]) == ([], (), {})
    assert act(plan(cluster(NETWORK), **wished))["ours"] is True


@pytest.mark.parametrize(("labels", "ours"), [({}, False), ({"swarmspeed.cluster": "theirs"}, False)])
def test_a_network_of_others_stays_at_teardown(labels: Any, ours: bool) -> None:
    assert act(plan(cluster({**NETWORK, "labels": labels})))["ours"] is ours


def test_the_network_of_a_manager_that_has_lost_its_address_goes_with_the_swarm() -> None:
    """Removing it fails, as the manager does not learn that containers have left it."""
    found = cluster(NETWORK)
    found["gpu1"]["docker"]["swarm"]["node_addr"] = "10.9.9.9"
    found["gpu1"]["fabric"] = fabric("10.1.0.1", "10.1.0.7")
    for wished, known in (({}, "10.1.0.1"), ({"swarm_advertise_address": "10.1.0.7"}, "10.1.0.1")):
        made = plan(
            found, replace(inputs(), cluster={**inputs().cluster, "underlay": {"addresses": {"gpu1": known}}}), **wished
        )
        assert act(made)["ours"] is False and made.refusals == ()
    found["gpu1"]["docker"]["swarm"]["node_addr"] = "10.1.0.7"
    assert act(plan(found))["ours"] is True


def test_what_a_benchmark_has_left_is_known() -> None:
    found = cluster(NETWORK)
    assert [act(plan(found), host)["bench_left"] for host in HOSTS] == [False] * 3
    found["gpu3"]["docker"]["containers"]["lab-bench-gpu3"] = {"labels": {"swarmspeed.bench": "host"}}
    assert [act(plan(found), host)["bench_left"] for host in HOSTS] == [False, False, True]
    found["gpu1"]["docker"]["networks"]["lab-bench-overlay"] = {"labels": {"swarmspeed.bench": "overlay"}}
    assert [act(plan(found), host)["bench_left"] for host in HOSTS] == [True, False, True]


# Searched


NETWORKS = st.none() | st.builds(
    lambda driver, attachable, subnets, mtu, encrypted: {
        **NETWORK,
        "driver": driver,
        "attachable": attachable,
        "subnets": subnets,
        "options": {**({MTU_OPTION: mtu} if mtu else {}), **({"encrypted": ""} if encrypted else {})},
    },
    st.sampled_from(["overlay", "overlay", "bridge"]),
    st.sampled_from([True, True, False]),
    st.sampled_from([[SUBNET], [SUBNET], ["10.65.0.0/24"], []]),
    st.sampled_from(["1500", "", "1450"]),
    st.booleans(),
)
WISHED = st.fixed_dictionaries(
    {}, optional={"overlay_network_encrypted": st.booleans(), "overlay_network_allow_recreate": st.booleans()}
)


@settings(deadline=None, derandomize=True, max_examples=examples(300))
@given(NETWORKS, st.lists(st.sampled_from(HOSTS), unique=True), WISHED)
def test_what_differs_is_planned_and_afterwards_nothing(network: Any, attached: list[str], wished: Any) -> None:
    made = plan(cluster(network, *attached), **wished)
    options = (network or {}).get("options", {})
    found = network and (
        network["driver"],
        network["attachable"],
        network["subnets"],
        options.get(MTU_OPTION, "1500"),
        "encrypted" in options,
    )
    differs = found != ("overlay", True, [SUBNET], "1500", wished.get("overlay_network_encrypted", False))
    assert bool(made.changes) is differs
    replaced = differs and network is not None
    taking_part = {"gpu1", *(attached if replaced else ())} if differs else set()
    assert {change.host for change in made.changes} == taking_part
    for host in HOSTS:
        assert bool(act(made, host)["detach"]) is (replaced and host in attached)
    assert (bool(act(made)["create"]), act(made)["replace"]) == (differs, replaced)
    after = plan(made.facts, **wished)
    assert shown(after) == [] and act(after)["exists"] is True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(
    st.dictionaries(st.sampled_from(["docker", "jobs"]), JSON),
    st.dictionaries(st.sampled_from(["networks", "containers", "swarm"]), JSON),
    st.dictionaries(st.sampled_from(["driver", "subnets", "options", "labels", "attachable"]), JSON),
    st.dictionaries(st.sampled_from(["hosts", "overlay"]), JSON),
)
def test_odd_facts_are_no_exception(odd: Any, docker: Any, network: Any, view: Any) -> None:
    found = cluster(network, *HOSTS)
    found["gpu2"] = {**found["gpu2"], "docker": docker}
    found["gpu3"] = {**found["gpu3"], **odd}
    for given_inputs in (inputs(), Inputs(cluster={**inputs().cluster, **view})):
        made = plan(found, given_inputs, overlay_network_allow_recreate=True)
        json.dumps(outcome(made, "", ["overlay_network"]), default=str)
