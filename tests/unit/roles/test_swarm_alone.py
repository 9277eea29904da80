# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The role swarm alone in a play of the user's own, by ansible-playbook itself, on stand-ins for three hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import Inputs

from tests.adversary.hostile import facts as honest
from tests.stand_ins import StandIns, changed
from tests.swarm_hosts import HOSTS, OUT, plan

ADDRESSES = {host: f"10.20.0.{number}" for number, host in enumerate(HOSTS, 1)}
CLUSTER = Inputs(cluster={"hosts": list(HOSTS), "managers": ["gpu1"], "underlay": {"addresses": ADDRESSES}})
TOKENS = {name: f"SWMTKN-1-{'a' * 50}-{name}" for name in ("worker", "manager")}
PLAYED = ["node_facts", "swarm_membership", "node_facts"]


def facts(number: int, swarm: Mapping[str, Any] = OUT) -> dict[str, Any]:
    found = honest(number)
    return {**found, "docker": {**found["docker"], "swarm": dict(swarm), "networks": {}}}


def after(found: Mapping[str, Any], **desired: Any) -> dict[str, Any]:
    """Return the facts of the hosts once the role has done what it plans, with ids as an engine gives them."""
    text = json.dumps(plan(found, CLUSTER, cluster_name="swarmspeed", **desired).facts)
    for host in HOSTS:
        text = text.replace(f"(known after apply: {host})", f"new{host}")
    made: dict[str, Any] = json.loads(text)
    # Again: the record of the swarm holds these ids.
    recorded: dict[str, Any] = json.loads(json.dumps(plan(made, CLUSTER, cluster_name="swarmspeed", **desired).facts))
    return {**made, **recorded}


@pytest.fixture
def hosts(tmp_path: Path) -> StandIns:
    """Three hosts that are in no swarm; their facts are others once they were sent swarm_membership."""
    made = StandIns(
        tmp_path,
        "swarm",
        ["swarm_membership"],
        {"cluster_id": "c1", "join_tokens": TOKENS, "nodes": [], "stat": {"exists": False}},
    )
    found = {host: facts(number) for number, host in enumerate(HOSTS, 1)}
    for host, later in after(found).items():
        made.add(host, found[host], later)
    return made


def test_three_hosts_form_a_swarm_and_a_second_run_does_nothing(hosts: StandIns) -> None:
    output = hosts.play()
    # The module forms the swarm and is asked for tokens on gpu1; the others join.
    assert changed(output) == {"gpu1": 2, "gpu2": 1, "gpu3": 1}, output
    assert hosts.modules("gpu1") == ["node_facts", "swarm_membership", "swarm_membership", "node_facts"]
    assert hosts.modules("gpu2") == PLAYED == hosts.modules("gpu3")
    assert TOKENS["worker"] not in output
    output = hosts.play()
    assert changed(output) == dict.fromkeys(HOSTS, 0), output
    assert [hosts.modules(host) for host in HOSTS] == [["node_facts"]] * 3
    assert all(f"{host} goes on" in output for host in HOSTS)


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_where_one_host_left_the_first_manager_takes_part_and_the_others_end(hosts: StandIns) -> None:
    whole = after({host: facts(number) for number, host in enumerate(HOSTS, 1)})
    found = {**whole, "gpu3": facts(3)}
    for host, later in after(found).items():
        hosts.add(host, found[host], later)
    output = hosts.play()
    assert changed(output) == {"gpu1": 1, "gpu2": 0, "gpu3": 1}, output
    assert hosts.modules("gpu1") == PLAYED == hosts.modules("gpu3")
    # What was gathered of a host that ended the role still counts when it is planned again.
    assert hosts.modules("gpu2") == ["node_facts"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_a_drained_node_is_the_first_managers_affair(hosts: StandIns) -> None:
    whole = after({host: facts(number) for number, host in enumerate(HOSTS, 1)})
    drained = json.loads(json.dumps(whole).replace('"availability": "active"', '"availability": "drain"', 2))
    for host, later in whole.items():
        hosts.add(host, drained[host], later)
    output = hosts.play("--check", "--diff")
    assert changed(output) == {"gpu1": 1, "gpu2": 1, "gpu3": 0}, output
    assert "    ~ node gpu2 of swarm swarmspeed: worker, drain → worker, active\n" in output
    assert "    ~ availability in swarm swarmspeed: drain → active  # swarm_availability\n" in output
    for host in HOSTS:
        assert hosts.modules(host) == ["node_facts"]
    output = hosts.play()
    assert (hosts.modules("gpu1"), hosts.modules("gpu2")) == (PLAYED, ["node_facts", "node_facts"]), output


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_without_consent_no_host_is_sent_anything(hosts: StandIns) -> None:
    elsewhere = {**OUT, "state": "active", "node_id": "another"}
    hosts.add("gpu3", facts(3, elsewhere), facts(3))
    output = " ".join(hosts.play().split())  # without any_errors_fatal the others would go on
    reason = "gpu3: the host must leave another Docker swarm, of which it is a worker"
    assert reason in output and f"gpu1: skipped because of {reason}" in output
    for host in HOSTS:
        assert hosts.modules(host) == ["node_facts"]


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
@pytest.mark.parametrize(
    ("arguments", "of_play", "reason"),
    [
        (["--limit", "gpu1,gpu3"], {}, "--limit leaves out gpu2. Remedy: run without --limit."),
        ([], {"serial": 2}, "serial leaves gpu3 to another batch. Remedy: take serial out of the play."),
        ([], {"strategy": "free"}, "the play has strategy: free, under which hosts do not wait for one another."),
        ([], {"hosts": "managers"}, "the play leaves out gpu2, gpu3. Remedy: set hosts: managers:workers"),
    ],
    ids=["limit", "serial", "free", "hosts"],
)
def test_a_part_of_the_hosts_is_refused_in_a_sentence(
    hosts: StandIns, arguments: list[str], of_play: dict[str, Any], reason: str
) -> None:
    output = " ".join(hosts.play(*arguments, of_play=of_play).split())
    assert (
        f"The role swarm concerns all hosts of the groups managers and workers, and needs them together: {reason}"
        in output
    )
    for host in HOSTS:
        assert hosts.modules(host) == []


@pytest.mark.slow  # it runs ansible-playbook; CI has one of these a role
def test_verify_passes_on_a_swarm_that_is_whole_and_lists_what_is_not(hosts: StandIns) -> None:
    output = " ".join(hosts.play(entry="verify").split())
    assert "gpu2: role swarm: membership of swarm swarmspeed is missing; /var/lib/swarmspeed" in output
    assert "swarm.json is missing. Remedy: ansible-playbook site.yml --tags swarm" in output
    hosts.play()
    assert changed(hosts.play(entry="verify")) == dict.fromkeys(HOSTS, 0)
    silent = hosts.facts("gpu1")
    silent["docker"]["swarm"]["nodes"][2]["state"] = "down"
    hosts.add("gpu1", silent, silent)
    output = " ".join(hosts.play(entry="verify").split())
    assert "gpu3: the swarm's managers list it as down, not ready. Remedy: see" in output
