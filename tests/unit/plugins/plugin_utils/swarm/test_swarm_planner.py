# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planner of the role swarm: what it plans, refuses and needs consent for, over invented hosts."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import ANY

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.text import consent_text, drift_text
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.gathered import record_path
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.planner import NOTHING

from tests.swarm_hosts import (
    HOSTS,
    OUT,
    but_foreseen_records,
    fabric,
    facts,
    inputs,
    listed,
    member,
    out,
    plan,
    shown,
    task_input,
    whole,
)

REST = {"cluster": "lab", "first": "gpu1"}
RECORD = record_path("lab")


def drift(made: Any) -> list[tuple[str, str]]:
    return [(change.host, drift_text(change)) for change in but_foreseen_records(made)]


# Changes


def test_the_record_of_each_host_that_enters_is_foreseen() -> None:
    made = plan(out())
    records = [(change.host, change.what) for change in made.changes if change.what.endswith("/swarm.json")]
    assert records == [(host, "/var/lib/swarmspeed/lab/swarm.json") for host in ("gpu1", "gpu2", "gpu3")]
    assert task_input(made)["record"] == []  # by the plan that comes after, which knows the ids


def test_three_hosts_form_a_swarm() -> None:
    made = plan(out())
    assert shown(made) == [
        ("gpu1", "+", "membership of swarm lab", None, "manager"),
        ("gpu1", "+", "node gpu2 of swarm lab", None, "worker, active"),
        ("gpu1", "+", "node gpu3 of swarm lab", None, "worker, active"),
        ("gpu2", "+", "membership of swarm lab", None, "worker"),
        ("gpu3", "+", "membership of swarm lab", None, "worker"),
    ]
    assert (made.refusals, made.missing_consents) == ((), [])
    assert task_input(made) == {
        **NOTHING,
        **REST,
        "entering": ["gpu1", "gpu2", "gpu3"],
        "form": {
            "state": "manager",
            "member_ids": [],
            "advertise_addr": "10.1.0.1",
            "listen_addr": "10.1.0.1:2377",
            "data_path_addr": "10.1.0.1",
            "data_path_port": 4789,
            "default_addr_pool": [],
            "leave_foreign": False,
            "adopt": False,
        },
    }
    assert task_input(made, "gpu2") == {
        **NOTHING,
        **REST,
        "entering": ["gpu1", "gpu2", "gpu3"],
        "join": {
            "state": "worker",
            "member_ids": [],
            "remote_addrs": ["10.1.0.1:2377"],
            "advertise_addr": "10.1.0.2",
            "listen_addr": "10.1.0.2:2377",
            "data_path_addr": "10.1.0.2",
            "leave_foreign": False,
        },
    }


def test_nothing_is_planned_for_a_swarm_that_is_as_desired() -> None:
    made = plan(whole())
    assert shown(made) == [] and made.refusals == () and made.facts == whole()
    leave = {"member_ids": ["id-gpu1", "id-gpu2", "id-gpu3"]}
    assert task_input(made) == {**NOTHING, **REST, "leave_last": leave, "recorded": RECORD}
    assert task_input(made, "gpu3") == {**NOTHING, **REST, "leave": leave, "recorded": RECORD}


def test_a_node_that_left_joins_again_and_the_first_manager_takes_part() -> None:
    left = (listed("gpu1", "manager"), listed("gpu2"), listed("gpu3", state="down"))
    made = plan(whole(*left, gpu3=OUT))
    assert shown(made) == [
        ("gpu1", "+", "node gpu3 of swarm lab", None, "worker, active"),
        ("gpu1", "-", "node gpu3 (id-gpu3) of swarm lab", "down", None),
        ("gpu3", "+", "membership of swarm lab", None, "worker"),
    ]
    assert drift(made)[1:] == [
        ("gpu1", "node gpu3 (id-gpu3) of swarm lab exists, but should not"),
        ("gpu3", "membership of swarm lab is missing"),
    ]
    assert [made.pending("swarm", host) for host in made.hosts] == [True, False, True]
    assert (
        task_input(made)["form"] == {}
        and task_input(made)["entering"] == ["gpu3"] == task_input(made, "gpu3")["entering"]
    )
    # The list is put in order once the id of the new node is known.
    assert task_input(made)["arrange"] == {} and task_input(made)["arranging"] is False
    assert task_input(made, "gpu3")["join"]["member_ids"] == ["id-gpu1", "id-gpu2", "id-gpu3"]


def test_a_node_that_left_a_moment_ago_is_still_called_ready() -> None:
    """It gets another id when it joins again, at the address of its former life, which goes then."""
    made = plan(whole(gpu3=OUT))
    assert ("gpu1", "-", "node gpu3 (id-gpu3) of swarm lab", "ready", None) in shown(made)


def test_the_entry_of_its_former_life_goes_before_the_managers_call_it_down() -> None:
    old = listed("gpu3", id="id-old")
    made = plan(whole(listed("gpu1", "manager"), listed("gpu2"), listed("gpu3"), old))
    assert shown(made) == [("gpu1", "-", "node gpu3 (id-old) of swarm lab", "ready", None)]
    assert made.changes[0].why == "swarm_prune_stale_nodes"
    assert task_input(made)["arrange"] == {
        "hostnames": {"gpu1": ["id-gpu1"], "gpu2": ["id-gpu2"], "gpu3": ["id-gpu3"]},
        "node_roles": {"id-gpu1": "manager", "id-gpu2": "worker", "id-gpu3": "worker"},
        "node_availability": {"id-gpu1": "active", "id-gpu2": "active", "id-gpu3": "active"},
        "removed_nodes": [],
    }
    assert (task_input(made)["arranging"], task_input(made, "gpu2")["arrange"]) == (True, {})
    assert shown(plan(made.facts)) == []
    found = whole(listed("gpu1", "manager"), listed("gpu2"), listed("gpu3"), old)
    assert shown(plan(found, swarm_prune_stale_nodes=False)) == []


def test_who_is_named_has_departed_and_no_one_else() -> None:
    nodes = [listed("gpu1", "manager"), listed("gpu2"), listed("gpu3"), listed("old", state="down"), listed("other")]
    made = plan(whole(*nodes), swarm_removed_nodes=["old", "gpu2"])
    assert shown(made) == [("gpu1", "-", "node old (id-old) of swarm lab", "down", None)]
    assert made.changes[0].why == "swarm_removed_nodes"
    assert task_input(made)["arrange"]["removed_nodes"] == ["old", "gpu2"]
    assert shown(plan(whole(*nodes))) == []


@pytest.mark.parametrize("availability", ["drain", "pause"])
def test_availability_is_listed_on_the_node_and_on_the_first_manager(availability: str) -> None:
    nodes = (listed("gpu1", "manager"), listed("gpu2"), listed("gpu3", availability=availability))
    made = plan(whole(*nodes))
    assert drift(made) == [
        ("gpu1", f"node gpu3 of swarm lab is worker, {availability}, but should be worker, active"),
        ("gpu3", f"availability in swarm lab is {availability}, but should be active"),
    ]
    assert [made.pending("swarm", host) for host in made.hosts] == [True, False, True]
    assert task_input(made)["arrange"]["node_availability"]["id-gpu3"] == "active"
    assert task_input(made, "gpu3")["arranging"] is True and task_input(made, "gpu3")["arrange"] == {}
    assert shown(plan(whole(*nodes), each={"gpu3": {"swarm_availability": availability}})) == []


def test_the_first_managers_own_availability_is_listed_once() -> None:
    made = plan(whole(listed("gpu1", "manager", availability="drain"), listed("gpu2"), listed("gpu3")))
    assert drift(made) == [("gpu1", "availability in swarm lab is drain, but should be active")]


@pytest.mark.parametrize(
    ("advertised", "address", "listens"),
    [
        ("", "10.1.0.1", "10.1.0.1:2377"),
        ("eth0", "10.7.0.1", "10.7.0.1:2377"),
        ("fd00::1", "fd00::1", "[fd00::1]:2377"),
    ],
)
def test_nodes_join_at_an_address_also_where_an_interface_is_advertised(
    advertised: str, address: str, listens: str
) -> None:
    known = whole(**dict.fromkeys(HOSTS, OUT))
    for name in HOSTS:
        known[name]["fabric"] = fabric(f"10.7.0.{name[-1]}")
    made = plan(known, each={"gpu1": {"swarm_advertise_address": advertised}})
    formed = task_input(made)["form"]
    assert (formed["advertise_addr"], formed["listen_addr"]) == (address, listens)
    assert task_input(made, "gpu3")["join"]["remote_addrs"] == [listens]


def test_a_node_that_joins_drained() -> None:
    made = plan(
        whole(listed("gpu1", "manager"), listed("gpu2"), gpu3=OUT), each={"gpu3": {"swarm_availability": "drain"}}
    )
    assert shown(made) == [
        ("gpu1", "+", "node gpu3 of swarm lab", None, "worker, drain"),
        ("gpu3", "+", "membership of swarm lab", None, "worker"),
        ("gpu3", "+", "availability in swarm lab", None, "drain"),
    ]


def test_nodes_are_promoted_and_demoted_as_their_groups_say() -> None:
    nodes = (listed("gpu1", "manager"), listed("gpu2", "manager"), listed("gpu3"))
    made = plan(whole(*nodes, gpu2=member("gpu2", manager=True)), inputs("gpu3"))
    assert drift(made) == [
        ("gpu1", "node gpu2 of swarm lab is manager, active, but should be worker, active"),
        ("gpu1", "node gpu3 of swarm lab is worker, active, but should be manager, active"),
        ("gpu2", "role in swarm lab is manager, but should be worker"),
        ("gpu3", "role in swarm lab is worker, but should be manager"),
    ]
    assert [change.why for change in made.changes[2:]] == ["group workers", "group managers"]
    assert task_input(made)["arrange"]["node_roles"] == {
        "id-gpu1": "manager",
        "id-gpu2": "worker",
        "id-gpu3": "manager",
    }


def test_a_manager_that_is_still_to_join_counts_for_the_majority() -> None:
    """gpu2 does not answer: gpu3 may be demoted once gpu4 and gpu5 have joined, and not before."""
    hosts = ("gpu1", "gpu2", "gpu3", "gpu4", "gpu5")
    nodes = (
        listed("gpu1", "manager"),
        listed("gpu2", "manager", reachability="unreachable", state="down"),
        listed("gpu3", "manager"),
    )
    found = {
        **whole(*nodes, gpu2=member("gpu2", manager=True), gpu3=member("gpu3", manager=True)),
        **out("gpu4", "gpu5"),
    }
    alone = plan({host: found[host] for host in hosts[:3]}, inputs("gpu2"))
    assert [(one.subject, one.text, one.remedy) for one in alone.refusals] == [
        (
            "gpu1",
            "Cannot demote gpu3 (id-gpu3): without it 1 of 2 managers answer, and a swarm needs a majority, of at "
            "least one",
            "promote or bring back another manager first",
        )
    ]
    made = plan(found, inputs("gpu2", "gpu4", "gpu5", hosts=hosts))
    assert made.refusals == ()
    assert ("gpu3", "~", "role in swarm lab", "manager", "worker") in shown(made)


def test_a_node_that_is_down_is_not_promoted() -> None:
    made = plan(whole(listed("gpu1", "manager"), listed("gpu2", state="down"), listed("gpu3")), inputs("gpu2"))
    assert [one.sentence for one in made.refusals] == [
        "gpu2 (id-gpu2) is down and cannot be promoted. Remedy: start its engine, then run again"
    ]


def test_addresses_of_a_host_of_its_own() -> None:
    own = {"swarm_data_path_address": "10.7.0.1", "swarm_advertise_address": "10.9.0.1"}
    made = plan(out(), each={"gpu1": own})
    form = task_input(made)["form"]
    assert (form["advertise_addr"], form["listen_addr"], form["data_path_addr"]) == (
        "10.9.0.1",
        "10.9.0.1:2377",
        "10.7.0.1",
    )
    assert task_input(made, "gpu2")["join"]["remote_addrs"] == ["10.9.0.1:2377"]
    assert task_input(made, "gpu2")["join"]["data_path_addr"] == "10.1.0.2"


def test_overlay_networks_of_another_swarm_go_with_it() -> None:
    networks = {"old": {"driver": "overlay"}, "bridge": {"driver": "bridge"}}
    found = {**out(), "gpu1": facts("gpu1", OUT, networks=networks)}
    assert list(plan(found).facts["gpu1"]["docker"]["networks"]) == ["bridge"]


@pytest.mark.parametrize(
    ("entry", "own", "trouble"),
    [
        ({}, {}, ""),
        ({"state": "down"}, {}, "the swarm's managers list it as down, not ready"),
        ({"role": "manager"}, {}, "the swarm lists it as a manager, but it does not control the swarm"),
        ({"role": "manager"}, {"manager": True}, ""),
    ],
)
def test_a_member_that_is_no_use_is_in_trouble(entry: Any, own: Any, trouble: str) -> None:
    nodes = (listed("gpu1", "manager"), {**listed("gpu2"), **entry}, listed("gpu3"))
    made = plan(whole(*nodes, gpu2=member("gpu2", **own)), inputs("gpu2" if "role" in entry else ""))
    assert shown(made) == [] and task_input(made, "gpu2")["trouble"] == trouble


# Consent and refusals


@pytest.mark.parametrize("manager", [False, True])
def test_another_swarm_is_left_by_consent_alone(manager: bool) -> None:
    elsewhere = {**OUT, "state": "active", "node_id": "other", "manager": manager}
    what = "manager" if manager else "worker"
    made = plan(whole(listed("gpu1", "manager"), listed("gpu2"), gpu3=elsewhere))
    (change,) = made.missing_consents
    assert (change.host, change.before, change.after) == ("gpu3", f"{what} of another swarm", "worker")
    assert consent_text(change) == (
        f"the host must leave another Docker swarm, of which it is a {what}, and what that swarm runs here ends. "
        "Remedy: set swarm_allow_leave_foreign: true to allow it, or take the host out of the inventory"
    )
    allowed = plan(
        whole(listed("gpu1", "manager"), listed("gpu2"), gpu3=elsewhere),
        each={"gpu3": {"swarm_allow_leave_foreign": True}},
    )
    assert allowed.missing_consents == [] and task_input(allowed, "gpu3")["join"]["leave_foreign"] is True
    assert task_input(allowed, "gpu3")["leave"] == {}  # at teardown it stays where it is


def test_the_first_managers_own_swarm_is_adopted_or_left() -> None:
    nodes = (listed("gpu1", "manager"), listed("gpu2"))
    found = whole(*nodes, gpu1=member("gpu1", *nodes, labels={}), gpu3=OUT)
    made = plan(found)
    assert [(change.host, change.before) for change in made.missing_consents] == [
        ("gpu1", "manager of another swarm"),
        ("gpu2", "worker of another swarm"),
    ]
    assert consent_text(made.missing_consents[0]).endswith(
        "Remedy: set swarm_allow_leave_foreign: true to allow it, or set swarm_allow_adopt: true to use that swarm "
        "for this cluster"
    )
    adopted = plan(found, swarm_allow_adopt=True)
    assert adopted.missing_consents == [] and adopted.refusals == ()
    assert shown(adopted) == [
        ("gpu1", "~", "membership of swarm lab", "manager of a swarm without this cluster's label", "manager"),
        ("gpu1", "+", "node gpu3 of swarm lab", None, "worker, active"),
        ("gpu3", "+", "membership of swarm lab", None, "worker"),
    ]
    assert task_input(adopted)["form"]["adopt"] is True and task_input(adopted)["form"]["member_ids"] == [
        "id-gpu1",
        "id-gpu2",
    ]
    assert task_input(adopted, "gpu2")["join"] == {}
    assert shown(plan(adopted.facts, swarm_allow_adopt=True)) == []


def test_a_swarm_of_another_cluster_is_not_adopted() -> None:
    nodes = (listed("gpu1", "manager"), listed("gpu2"), listed("gpu3"))
    other = whole(*nodes, gpu1=member("gpu1", *nodes, labels={"swarmspeed.cluster": "theirs"}))
    made = plan(other, swarm_allow_adopt=True)
    assert [change.host for change in made.missing_consents] == ["gpu1", "gpu2", "gpu3"]


def test_a_swarm_that_lives_on_in_another_manager_is_not_given_up_by_accident() -> None:
    found = {**out(), "gpu2": facts("gpu2", member("gpu2", listed("gpu2", "manager")))}
    made = plan(found, inputs("gpu2"))
    assert [(one.subject, one.text) for one in made.refusals] == [
        ("gpu2", "is a manager of this cluster's swarm, but gpu1, the first host of group managers, is not")
    ]
    assert plan(found, inputs("gpu2"), swarm_allow_leave_foreign=True).refusals == ()


@pytest.mark.parametrize(
    ("swarm", "text"),
    [
        ({**OUT, "state": "pending"}, "still joining a swarm (state pending)"),
        ({**OUT, "state": "locked"}, "member of a locked swarm"),
        (
            {**OUT, "state": "active", "node_id": None},
            "the engine reports an active swarm without a node ID, after an interrupted leave",
        ),
    ],
)
def test_what_neither_leaves_nor_joins_is_refused_whatever_is_allowed(swarm: Any, text: str) -> None:
    left = (listed("gpu1", "manager"), listed("gpu2"))
    made = plan(whole(*left, gpu3=swarm), swarm_allow_leave_foreign=True)
    assert [(one.subject, one.text) for one in made.refusals] == [("gpu3", text)]
    assert shown(made) == []
    # Without the first manager it is unknown who is in the swarm, so nothing more is reported.
    made = plan({**out(), "gpu1": facts("gpu1", swarm)})
    assert [one.subject for one in made.refusals] == ["gpu1"] and shown(made) == []


def test_an_engine_that_does_not_run_joins_nothing() -> None:
    made = plan({**out(), "gpu2": facts("gpu2", OUT, running=False)})
    assert [(one.subject, one.sentence) for one in made.refusals] == [
        ("gpu2", "its Docker engine is not running. Remedy: apply the role docker first")
    ]


def test_an_engine_that_has_kept_ports_joins_nothing() -> None:
    made = plan({**out(), "gpu2": facts("gpu2", OUT, stale_swarm_ports=[7946])})
    assert [(one.subject, one.sentence) for one in made.refusals] == [
        (
            "gpu2",
            "its Docker engine still holds ports of a swarm that it has left. Remedy: systemctl restart docker, or "
            "apply"
            " the role docker first",
        )
    ]


def test_what_is_fixed_when_a_swarm_is_formed_is_refused() -> None:
    made = plan(whole(), swarm_data_path_port=7789)
    assert [one.sentence for one in made.refusals] == [
        "swarm_data_path_port is 7789, but the swarm was formed with 4789, which cannot be changed afterwards. "
        "Remedy: set it to 4789, or rebuild the swarm: teardown.yml, then site.yml"
    ]


# Hosts with another address than the one that they gave the swarm


def moved(host: str, role: str = "worker", **found: Any) -> dict[str, dict[str, Any]]:
    """Three hosts in their swarm, which knows one of them by an address that it no longer has."""
    nodes = [listed("gpu1", "manager"), listed("gpu2", role if host == "gpu2" else "worker"), listed("gpu3")]
    manager = role == "manager"
    # The first manager lists the others, and each of them is a manager if it is listed as one.
    swarms = {"gpu1": member("gpu1", *nodes), "gpu2": member("gpu2", manager=manager), "gpu3": member("gpu3")}
    swarms[host]["node_addr"] = "10.9.9.9"
    known = {name: facts(name, swarm) for name, swarm in swarms.items()}
    addresses = found.get("addresses", {"gpu1": "10.1.0.1", "gpu2": "10.1.0.2", "gpu3": "10.1.0.3"}[host])
    known[host]["fabric"] = fabric(*([addresses] if isinstance(addresses, str) else addresses))
    return known


@pytest.mark.parametrize("desired", [{}, {"each": {"gpu3": {"swarm_advertise_address": "eth0"}}}])
def test_a_worker_with_another_address_leaves_and_joins_again(desired: dict[str, Any]) -> None:
    made = plan(moved("gpu3"), **desired)
    assert shown(made) == [
        ("gpu1", "~", "node gpu3 of swarm lab", "worker, active, id id-gpu3", "worker, active, with another id"),
        ("gpu3", "~", "membership of swarm lab", "worker at 10.9.9.9", "worker at 10.1.0.3"),
    ]
    assert [change.why for change in but_foreseen_records(made)][-1] == "the host no longer has the address 10.9.9.9"
    assert (made.refusals, made.missing_consents) == ((), [])
    assert task_input(made, "gpu3")["rejoin"] == {"member_ids": ["id-gpu1", "id-gpu2", "id-gpu3"]}
    assert task_input(made, "gpu3")["join"]["advertise_addr"] == "10.1.0.3"
    assert task_input(made)["left"] == ["id-gpu3"] and task_input(made)["entering"] == ["gpu3"]
    assert [task_input(made, "gpu2")[name] for name in ("rejoin", "left", "join")] == [{}, [], {}]
    after = plan(made.facts, **desired)
    assert shown(after) == [] and task_input(after)["left"] == [] and task_input(after, "gpu3")["rejoin"] == {}
    # Teardown makes it leave all the same.
    assert task_input(made, "gpu3")["leave"] == {"member_ids": ["id-gpu1", "id-gpu2", "id-gpu3"]}


@pytest.mark.parametrize(
    "addresses",
    [
        ["10.1.0.3", "10.9.9.9"],  # it still has it: a choice of the user's, of which preflight warns
        ["192.168.0.3"],  # it has neither, as behind a translation of addresses
        [],
    ],
)
def test_a_worker_that_has_its_address_or_never_had_it_stays(addresses: list[str]) -> None:
    assert shown(plan(moved("gpu3", addresses=addresses))) == []


@pytest.mark.parametrize(
    ("host", "remedy"),
    [
        ("gpu1", "rebuild the swarm with teardown.yml and site.yml"),
        ("gpu2", "run `docker swarm leave --force` there and site.yml again"),
    ],
)
def test_a_manager_with_another_address_is_refused(host: str, remedy: str) -> None:
    made = plan(moved(host, "manager"), inputs("gpu2") if host == "gpu2" else None)
    assert [(one.subject, one.sentence) for one in made.refusals] == [
        (
            host,
            "is a manager of the swarm at the address 10.9.9.9, which it no longer has; this address is fixed when a "
            f"node joins. Remedy: {remedy}, or give the host that address again",
        )
    ]
    assert task_input(made, host)["rejoin"] == {} and task_input(made)["left"] == []
    # On hosts without Docker, and at teardown, it does not matter.
    assert task_input(made)["leave_last"] == {"member_ids": ["id-gpu1", "id-gpu2", "id-gpu3"]}


@pytest.mark.parametrize("given", [Inputs(), inputs()])
def test_it_is_planned_for_all_hosts_or_for_none(given: Inputs) -> None:
    found = {host: known for host, known in whole().items() if host != "gpu3"}
    made = plan(found, given)
    assert [one.subject for one in made.refusals] == ["gpu1", "gpu2"] and shown(made) == []
    who = "gpu3" if given.cluster else "the others"
    assert made.refusals[0].text.endswith(f"there are no facts of {who}")
    assert outcome(made, "", [])["stops"]["gpu1"]["swarm"] != []


def test_on_hosts_without_docker_the_role_does_nothing() -> None:
    for given in (Inputs(), inputs()):
        made = plan(out(), given, deepspeed_launch_runtime="host")
        assert (shown(made), made.refusals, task_input(made)) == ([], (), NOTHING)
    made = plan(whole(), deepspeed_launch_runtime="host")
    assert shown(made) == [] and task_input(made, "gpu2") == task_input(plan(whole()), "gpu2")  # what teardown reads


def test_a_node_whose_engine_is_started_first_is_neither_joined_nor_taken_for_stale() -> None:
    found = whole()
    found["gpu3"] = facts("gpu3", OUT, unseen=True)
    made = plan(found)
    assert (made.changes, made.refusals, task_input(made, "gpu3")) == ((), (), NOTHING)
    # What concerns the others is planned all the same.
    found["gpu2"] = facts("gpu2", OUT)
    assert [entry[:3] for entry in shown(plan(found))] == [
        ("gpu1", "+", "node gpu2 of swarm lab"),
        ("gpu1", "-", "node gpu2 (id-gpu2) of swarm lab"),
        ("gpu2", "+", "membership of swarm lab"),
    ]


def test_no_host_is_planned_for_while_the_first_managers_engine_is_to_be_started() -> None:
    found = {**whole(), "gpu1": facts("gpu1", OUT, unseen=True)}
    made = plan(found)
    assert (made.changes, made.refusals) == ((), ()) and {task_input(made, host) == NOTHING for host in found} == {True}


# The record of the swarm, and a swarm whose managers are lost

CONTAINER = {"state": "running", "addresses": {"lab": "10.64.0.2"}, "labels": {}}
OVERLAYS = {"lab": {"driver": "overlay"}, "bridge": {"driver": "bridge"}}


def test_the_swarm_is_recorded_on_each_node_once_its_ids_are_known() -> None:
    found = whole()
    for host in HOSTS:
        found[host]["docker"]["swarm"]["cluster_id"] = "swarm1" if host == "gpu1" else None
    made = plan(found)
    assert shown(made) == [(host, "~", RECORD, found[host]["files"][RECORD]["content"], ANY) for host in HOSTS]
    (entry,) = task_input(made, "gpu2")["record"]
    assert json.loads(entry["content"]) == {"node": "id-gpu2", "swarm": "swarm1"}
    assert (entry["path"], entry["mode"], entry["owner"]) == (RECORD, "0600", 0)
    assert shown(plan(made.facts)) == []
    # A cluster of an earlier release has none: it gets one, and nothing else happens to it.
    bare = {host: {**facts, "files": {}} for host, facts in found.items()}
    made = plan(bare)
    assert {what for dummy, dummy, what, dummy, dummy in shown(made)} == {RECORD, RECORD.rpartition("/")[0]}
    assert [item["mode"] for item in task_input(made, "gpu3")["record"]] == ["0700", "0600"]
    assert not any(task_input(made, host)[name] for host in HOSTS for name in ("form", "join", "rejoin", "entering"))
    # Who is still to join has no id yet.
    assert task_input(plan(out()), "gpu2")["record"] == []


def wiped(**changed: Any) -> dict[str, dict[str, Any]]:
    """The only manager's engine was reinstalled; the workers wait for it."""
    found = whole(gpu1=OUT)
    found["gpu2"] |= {name: value for name, value in changed.items() if name != "docker"}
    found["gpu2"]["docker"] |= {"networks": OVERLAYS, **changed.get("docker", {})}
    return found


def test_this_clusters_dead_swarm_is_left_without_consent_where_nothing_runs() -> None:
    made = plan(wiped())
    assert made.refusals == () and made.missing_consents == []
    befores = [change.before for change in made.changes if change.what == "membership of swarm lab"]
    assert befores == [None, *["worker of this cluster's former swarm"] * 2]
    assert task_input(made, "gpu2")["join"]["leave_foreign"] is True and task_input(made)["form"]
    assert task_input(made, "gpu2")["leave"] == {"member_ids": ["id-gpu2"]}  # teardown


OURS = {**CONTAINER, "labels": {"swarmspeed.cluster": "lab", "swarmspeed.spec": "hash"}}


@pytest.mark.parametrize(
    ("changed", "variable"),
    [
        ({"jobs": {"digits": "running"}}, "training_container_allow_recreate"),
        ({"jobs": {"digits": "succeeded"}}, ""),
        ({"docker": {"containers": {"lab-gpu2": OURS}}}, ""),
        ({"docker": {"containers": {"theirs": CONTAINER}}}, "swarm_allow_leave_foreign"),
        ({"docker": {"containers": {"theirs": {**CONTAINER, "state": "exited"}}}}, ""),
        ({"docker": {"containers": {"theirs": {**CONTAINER, "addresses": {"bridge": None}}}}}, ""),
        (
            {"docker": {"containers": {"task": {"state": "running", "labels": {"com.docker.swarm.task.id": "t"}}}}},
            "swarm_allow_leave_foreign",
        ),
    ],
)
def test_what_runs_in_a_dead_swarm_is_cut_off_by_consent_alone(changed: dict[str, Any], variable: str) -> None:
    made = plan(wiped(**changed))
    assert [change.consent.variable for change in made.missing_consents if change.consent] == [variable] * bool(
        variable
    )
    if variable:
        allowed: dict[str, Any] = {variable: True}
        assert plan(wiped(**changed), **allowed).missing_consents == []


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"node": "id-gpu9", "swarm": ""}',
        '{"node": "id-gpu2", "swarm": 1}',
        '{"node": ["id-gpu2"], "swarm": ""}',
        '{"node": "id-gpu2"}' + " " * 1000,
    ],
)
def test_without_a_record_of_this_very_membership_it_is_another_swarm(text: str | None) -> None:
    found = wiped()
    found["gpu2"]["files"][RECORD] = {**found["gpu2"]["files"][RECORD], "content": text}
    (missing,) = plan(found).missing_consents
    assert (missing.host, missing.before) == ("gpu2", "worker of another swarm")


def test_a_swarm_that_a_manager_still_lists_is_not_dead() -> None:
    nodes = (listed("gpu3", "manager"), listed("gpu2"))
    made = plan(whole(gpu1=OUT, gpu3=member("gpu3", *nodes)))
    assert [refusal.subject for refusal in made.refusals] == ["gpu3"]
    assert {change.before for change in made.missing_consents} >= {"worker of another swarm"}
