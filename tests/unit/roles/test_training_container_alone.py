# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role training_container alone in a play of the user's own, by ansible-playbook itself, on stand-ins for hosts."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.files import ABSENT
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.cluster_view import cluster_view
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.gathered import folders_of
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_container.planner import (
    TrainingContainerPlanner,
)

from tests.adversary.hostile import facts as honest
from tests.role_values import defaults
from tests.stand_ins import StandIns, changed, tasks
from tests.training_nodes import ID, IMAGE

ROLE = "training_container"
NAMES = ("gpu1", "gpu2")
ROOT = "/srv/swarmspeed/swarmspeed"
CLUSTER: dict[str, Any] = {"swarmspeed_image": IMAGE, "training_image_source": "build"}
DONE = {"stage": "done", "error": ""}
LOST = {"stage": "connect", "error": "No route to host"}
AGAIN = [
    *("node_facts", "docker_container", "container_swap", "command"),
    *("container_swap", "node_facts", "overlay_reach"),
]
SENT = ["node_facts", "docker_container", "command", "node_facts", "overlay_reach"]


def found(number: int, **jobs: str) -> dict[str, Any]:
    """Facts of a host with the image and the folders, and no container."""
    facts = copy.deepcopy(honest(number))
    known = {**ABSENT, "exists": True, "owner": 0, "group": 0}
    folders = folders_of(defaults())
    facts["files"] = {path: {**known, "mode": mode} for path, mode in folders.items()}
    facts["docker"] |= {"images": {IMAGE: ID}, "containers": {}, "networks": {}}
    facts["jobs"] = jobs
    return facts


def made(number: int, **desired: Any) -> dict[str, Any]:
    """Facts of a host whose container was made."""
    facts = {name: found(one) for one, name in enumerate(NAMES, 1)}
    role_vars = defaults(**desired)
    view = {**cluster_view(list(NAMES), facts), "overlay": {"addresses": {}}, "image": IMAGE}
    plan = fold([TrainingContainerPlanner()], facts, dict.fromkeys(NAMES, role_vars), Inputs(view))
    return copy.deepcopy(dict(plan.facts[f"gpu{number}"]))


def add(
    hosts: StandIns,
    name: str,
    *states: dict[str, Any],
    reached: dict[str, str] | None = None,
    stdout: str = str(1 << 30),
) -> None:
    """``stdout`` is what commands print: bytes of shared memory, or the swarm's state."""
    (other,) = [one for one in NAMES if one != name]
    replies = {
        "overlay_reach": {"changed": False, "reached": {other: reached or DONE}},
        "command": {"rc": 0, "stdout": stdout},
    }
    hosts.add(name, *states, replies=replies)


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    prepared = StandIns(tmp_path, ROLE)
    add(prepared, "gpu1", made(1))
    add(prepared, "gpu2", found(2), made(2))
    return prepared


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_it_makes_what_is_missing_tries_the_overlay_and_a_second_run_only_tries(hosts: StandIns) -> None:
    output = hosts.play(**CLUSTER)
    # The reply of every stand-in but that of the trial is "changed", also that of a command that says it is not.
    assert changed(output) == {"gpu1": 0, "gpu2": 1}, output
    assert hosts.modules("gpu1") == ["node_facts", "overlay_reach"]
    assert hosts.modules("gpu2") == SENT
    assert "gpu1 goes on" in output and "gpu2 goes on" in output
    output = hosts.play(**CLUSTER)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts", "overlay_reach"],) * 2
    assert tasks(output)[-3:] == [
        "training_container : Test that every container reaches every other",
        "training_container : Find the nodes at fault",
        "Afterwards",
    ]
    assert changed(hosts.play(entry="verify", **CLUSTER)) == {"gpu1": 0, "gpu2": 0}


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_in_the_hosts_network_a_second_run_ends_at_once(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, ROLE)
    for number, name in enumerate(NAMES, 1):
        add(hosts, name, made(number, cluster_network_mode="host"))
    output = hosts.play(cluster_network_mode="host", **CLUSTER)
    assert changed(output) == {"gpu1": 0, "gpu2": 0}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"],) * 2
    assert tasks(output)[-2:] == ["preflight : Plan what the role would change", "Afterwards"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_check_mode_prints_the_plan_and_reports_it_by_one_task_a_host(hosts: StandIns) -> None:
    output = hosts.play("--check", "--diff", training_container_shm_size="3g", **CLUSTER)
    assert changed(output) == {"gpu1": 1, "gpu2": 1}, output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    assert "~ container swarmspeed-gpu1: running → made again  # shm_size" in output
    assert f"+ container swarmspeed-gpu2: image {IMAGE}, network swarmspeed" in output


def test_a_job_in_one_container_keeps_all_of_them_from_being_made_again(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, ROLE)

    def start() -> None:
        add(hosts, "gpu1", {**made(1), "jobs": {"digits": "running"}}, made(1, training_container_shm_size="3g"))
        add(hosts, "gpu2", found(2), made(2, training_container_shm_size="3g"))

    start()
    output = " ".join(hosts.play(training_container_shm_size="3g", **CLUSTER).split())
    reported = "container swarmspeed-gpu1 must be re-created, which cuts off job digits in it. Remedy: set"
    assert (
        f"gpu1: {reported} training_container_allow_recreate: true to allow it, or wait for the job, or stop it."
        in output
    )
    assert f"gpu2: skipped because of gpu1: {reported}" in output
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (["node_facts"], ["node_facts"])
    start()  # with the same facts
    output = hosts.play(training_container_shm_size="3g", training_container_allow_recreate=True, **CLUSTER)
    assert changed(output) == {"gpu1": 3, "gpu2": 1}, output
    assert hosts.modules("gpu1") == AGAIN


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_what_is_cut_off_is_repaired_by_a_restart_of_its_engine_where_nothing_runs(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, ROLE)
    add(hosts, "gpu1", made(1))
    ended = made(2)
    ended["docker"]["containers"]["swarmspeed-gpu2"] |= {"state": "exited"}
    add(hosts, "gpu2", made(2), ended, made(2), reached=LOST, stdout="active")
    # A stand-in replies the same however long it is waited for.
    output = " ".join(hosts.play("-e", '{"_training_container_patience": 0}', **CLUSTER).split())
    sent = hosts.modules("gpu2")
    assert sent[:2] == ["node_facts", "overlay_reach"] and sent[2].startswith("systemd")
    # The container ended with its engine, and is made again before the network is tried once more.
    assert sent[-6:] == AGAIN[1:]
    assert "docker_container" not in hosts.modules("gpu1")
    assert "gpu2: the overlay network is cut between the containers of gpu1 and gpu2" in output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
@pytest.mark.parametrize(
    ("arguments", "of_play", "reported"),
    [
        (["--limit", "gpu1"], {}, "--limit leaves out gpu2. Remedy: run without --limit."),
        ([], {"serial": 1}, "serial leaves gpu2 to another batch. Remedy: take serial out of the play."),
        ([], {"strategy": "free"}, "the play has strategy: free, under which hosts do not wait for one another."),
    ],
)
def test_it_needs_the_whole_cluster(hosts: StandIns, arguments: list[str], of_play: Any, reported: str) -> None:
    output = " ".join(hosts.play(*arguments, of_play=of_play, **CLUSTER).split())
    whole = "role training_container concerns all hosts of the groups managers and workers, and needs them together"
    assert f"{whole}: {reported}" in output
    assert hosts.modules("gpu1") == [] and hosts.modules("gpu2") == []


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_without_the_name_of_an_image_it_is_refused_and_a_container_that_is_there_stays(hosts: StandIns) -> None:
    output = " ".join(hosts.play().split())
    assert "gpu2: the name of the training image is unknown; the role training_image determines it" in output
    assert hosts.modules("gpu1") == ["node_facts"] and hosts.modules("gpu2") == ["node_facts"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_an_image_that_is_not_there_is_named(tmp_path: Path) -> None:
    hosts = StandIns(tmp_path, ROLE)
    for number, name in enumerate(NAMES, 1):
        add(hosts, name, found(number))
    output = " ".join(hosts.play(**{**CLUSTER, "swarmspeed_image": "train:2"}).split())
    assert (
        "gpu1: the image train:2, from which the container is created, is missing. Remedy: ansible-playbook" in output
    )
    assert "docker_container" not in hosts.modules("gpu1")


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_lists_what_is_not_done(hosts: StandIns) -> None:
    output = " ".join(hosts.play(entry="verify", **CLUSTER).split())
    assert "gpu2: role training_container: container swarmspeed-gpu2 is missing. Remedy: ansible-playbook" in output
    assert "command" not in hosts.modules("gpu2")
