# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role overlay_network acts on the plan: which of its tasks run, and that it works alone on stand-ins for hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.planner import OverlayNetworkPlanner
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold

from tests.adversary.hostile import facts as honest
from tests.planned_roles import PlannedRole
from tests.role_values import defaults, task_inputs, templar
from tests.stand_ins import StandIns, changed
from tests.swarm_hosts import HOSTS, listed, member

ROLE = PlannedRole("overlay_network")


def names(file: str, **task_input: Any) -> list[str]:
    return ROLE.names(file, ROLE.plan(True, **task_input))


DETACH, REMOVE = (
    "Disconnect the training container from a network that is replaced",
    "Remove the network that is replaced",
)
MAKE, TELL = "Create the attachable overlay network", "Report what is left to do when this role runs alone"


@pytest.mark.parametrize(
    ("task_input", "expected"),
    [
        ({}, []),
        ({"create": {"subnet": "x"}}, [MAKE]),
        ({"create": {"subnet": "x"}, "replace": True}, [REMOVE, MAKE, TELL]),
        ({"create": {"subnet": "x"}, "replace": True, "detach": "lab-gpu2"}, [DETACH, REMOVE, MAKE, TELL]),
        ({"detach": "lab-gpu2"}, [DETACH]),
    ],
)
def test_each_part_of_the_plan_has_its_task(task_input: dict[str, Any], expected: list[str]) -> None:
    assert names("converge", **task_input) == [*expected, "Gather facts and plan again"]


def test_teardown_removes_what_is_ours_and_what_a_benchmark_has_left() -> None:
    always = "Remove its programs"
    assert names("teardown") == [always]
    assert names("teardown", ours=True) == [always, "Remove the overlay network"]
    assert names("teardown", bench_left=True) == ["Remove what a killed benchmark left", always]


GONE, THERE = "d61e" + "0" * 60, "beef" + "0" * 60


@pytest.mark.parametrize(
    ("containers", "why"),
    [
        ([], ""),
        ([f"exited {THERE} theirs", f"created {THERE} other"], ""),
        (
            [f"running {THERE} theirs", f"paused {THERE} other", f"exited {THERE} old"],
            "the engine of gpu3 still holds the endpoint of a removed container, but containers run there (theirs, "
            "other). Remedy: systemctl restart docker there when these may be interrupted, then run again.",
        ),
        (
            [f"exited {GONE} theirs"],
            "container d61e00000000 on gpu3 has an endpoint in it. Remedy: docker rm --force d61e00000000 there, then "
            "run again.",
        ),
    ],
)
def test_an_engine_is_restarted_for_a_place_only_where_no_container_runs(containers: list[str], why: str) -> None:
    read, fail, restart, dummy = ROLE.tasks("place")
    values = ROLE.given(
        None,
        _overlay_network_place_host="gpu3",
        _overlay_network_place_container=GONE,
        _overlay_network_place_seen={"stdout_lines": containers},
        **fail["vars"],
    )
    assert str(templar(values).template(values["_overlay_network_place_why"])).strip() == why
    assert task_inputs(fail, values) is bool(why)
    assert read["delegate_to"] == restart["delegate_to"] == "{{ _overlay_network_place_host }}"
    assert restart["ansible.builtin.systemd_service"]["state"] == "restarted" and "when" not in restart


TASK = {"NodeID": "id-gpu3", "Spec": {"NetworkAttachmentSpec": {"ContainerID": GONE}}}
IN_USE = {"failed": True, "msg": "400 Client Error: network k is in use by task aka84"}


@pytest.mark.slow  # it runs ansible-playbook, and waits as long as the engine would be given to free the place
@pytest.mark.parametrize("node", ["id-gpu3", "id-gone"])
def test_all_hosts_go_on_once_the_place_of_a_container_that_is_gone_is_free(tmp_path: Path, node: str) -> None:
    """With any_errors_fatal, as in teardown.yml: a rescue on gpu1 would find the others ended."""
    hosts = StandIns(tmp_path, "overlay_network")
    found = json.dumps([{**TASK, "NodeID": node, "Description": {"Hostname": "gpu9"}}])
    replies = {"docker_network": [*[IN_USE] * 11, {}], "command": [{"stdout": found}]}
    for number, host in enumerate(HOSTS, 1):
        hosts.add(host, facts(number), replies=replies if number == 1 else {"command": {"stdout": ""}})
    remove = {"include_role": {"name": "swarmspeed.cluster.overlay_network", "tasks_from": "remove"}}
    of_play = {
        "any_errors_fatal": True,
        "tasks": [
            {"name": "Gather facts", "swarmspeed.cluster.node_facts": {}},
            {
                **remove,
                "when": "inventory_hostname == 'gpu1'",
                "vars": {"_overlay_network_input": {"name": "swarmspeed"}},
            },
            {"name": "Afterwards", "debug": {"msg": "{{ inventory_hostname }} goes on"}},
        ],
    }
    output = " ".join(hosts.play(of_play=of_play, entry="remove").split())
    went_on = [host for host in HOSTS if f"{host} goes on" in output]
    if node == "id-gpu3":
        assert went_on == list(HOSTS), output
        assert hosts.modules("gpu3") == ["node_facts", "command", "systemd_service"]
    else:
        assert went_on == [], output
        assert "container d61e00000000 on gpu9, which is in no group of the inventory, has an endpoint in it." in output
        assert "systemd_service" not in hosts.modules("gpu3")


# Alone


OLD = {
    "driver": "overlay",
    "attachable": False,
    "subnets": ["10.64.7.0/24"],
    "options": {},
    "labels": {},
}


def facts(number: int, network: dict[str, Any] | None = None, *, attached: bool = False) -> dict[str, Any]:
    """Facts of a host in the swarm, whose first manager has this network."""
    host, found = f"gpu{number}", honest(number)
    nodes = (listed("gpu1", "manager"), listed("gpu2"), listed("gpu3")) if number == 1 else ()
    swarm = member(host, *nodes, labels={"swarmspeed.cluster": "swarmspeed"})
    addresses = {"swarmspeed": "10.64.7.9"} if attached else {}
    container = {"id": "ab", "state": "running", "image": "i", "image_id": None, "labels": {}, "addresses": addresses}
    docker = {"swarm": swarm, "networks": {"swarmspeed": network} if network and number == 1 else {}}
    return {
        **found,
        "jobs": {},
        "docker": {**found["docker"], **docker, "containers": {f"swarmspeed-{host}": container}},
    }


def stand_ins(folder: Path, found: dict[str, dict[str, Any]], subnet: str, mtu: int) -> StandIns:
    """Hosts whose facts are others once they were sent the module that takes off a container or makes the network."""
    role_vars = defaults(overlay_network_allow_recreate=True)
    view = {"hosts": list(HOSTS), "overlay": {"subnet": subnet, "mtu": mtu}}
    made = fold([OverlayNetworkPlanner()], found, dict.fromkeys(found, role_vars), Inputs(cluster=view))
    hosts = StandIns(folder, "overlay_network", ["docker_network", "command"])
    for host, later in json.loads(json.dumps(made.facts)).items():
        hosts.add(host, found[host], later)
    return hosts


def mtu_of(found: dict[str, Any]) -> int:
    return int(min(interface["mtu"] for interface in found["fabric"]["interfaces"]))


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_the_network_is_made_and_a_second_run_does_nothing(tmp_path: Path) -> None:
    found = {host: facts(number) for number, host in enumerate(HOSTS, 1)}
    hosts = stand_ins(tmp_path, found, "10.64.0.0/24", mtu_of(found["gpu1"]))
    output = hosts.play()
    assert changed(output) == {"gpu1": 1, "gpu2": 0, "gpu3": 0}, output
    assert hosts.modules("gpu1") == ["node_facts", "docker_network", "node_facts"]
    assert [hosts.modules(host) for host in HOSTS[1:]] == [["node_facts"]] * 2
    output = hosts.play()
    assert changed(output) == dict.fromkeys(HOSTS, 0), output
    assert changed(hosts.play(entry="verify")) == dict.fromkeys(HOSTS, 0)


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_network_is_replaced_by_consent_once_all_containers_are_off_it(tmp_path: Path) -> None:
    found = {host: facts(number, OLD, attached=True) for number, host in enumerate(HOSTS, 1)}
    hosts = stand_ins(tmp_path, found, "10.64.7.0/24", mtu_of(found["gpu1"]))
    output = " ".join(hosts.play().split())
    for host in HOSTS:  # without any_errors_fatal in the play, none begins
        assert hosts.modules(host) == ["node_facts"]
    assert (
        "gpu1: network swarmspeed exists with other settings (it is not attachable, so only services can join" in output
    )
    assert "gpu3: network swarmspeed exists with other settings" in output
    output = " ".join(hosts.play(entry="verify").split())
    assert "gpu1: role overlay_network: network swarmspeed exists with other settings" in output
    [hosts.modules(host) for host in HOSTS]
    output = hosts.play(overlay_network_allow_recreate=True)
    assert changed(output) == {"gpu1": 3, "gpu2": 1, "gpu3": 1}, output
    assert hosts.modules("gpu1") == ["node_facts", "command", "docker_network", "docker_network", "node_facts"]
    assert hosts.modules("gpu3") == ["node_facts", "command", "node_facts"]
    assert output.index("Disconnect the training container") < output.index("Remove the overlay network")
    assert changed(hosts.play(overlay_network_allow_recreate=True)) == dict.fromkeys(HOSTS, 0)


def test_it_needs_all_hosts_together(tmp_path: Path) -> None:
    found = {host: facts(number) for number, host in enumerate(HOSTS, 1)}
    hosts = stand_ins(tmp_path, found, "10.64.0.0/24", 1500)
    output = " ".join(hosts.play("--limit", "gpu1").split())
    assert "The role overlay_network concerns all hosts of the groups managers and workers" in output
    assert "--limit leaves out gpu2, gpu3. Remedy: run without --limit." in output
    assert hosts.modules("gpu1") == []
