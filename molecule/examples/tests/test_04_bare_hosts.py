"""The example for servers without Docker, on nodes from which everything of the containers was taken back."""

from __future__ import annotations

import re

import pytest

from tests.engines import containers, swarm_state
from tests.playbook_run import (
    CLUSTER_ROOT,
    NODES,
    Run,
    as_the_readme_says,
    container,
    job,
    on,
    playbook,
    site,
    variables,
)

VALUES = ("-e", "@examples/bare_hosts/vars.yml")
TAKE_PART = ("lab1", "lab3")


@pytest.fixture(scope="module")
def first() -> Run:
    """Take the containers away, and run the example."""
    playbook("teardown", *variables(workspace_remove=True, deepspeed_launch_remove_jobs=True)).done()
    return as_the_readme_says("bare_hosts")


def test_two_servers_train_without_docker(first: Run) -> None:
    assert "Job bare-hosts succeeded: 2 rank(s) on 2 node(s)." in first.text
    assert re.search(r"accuracy on held-out digits \S+, target 0.9 reached", first.text)
    state = job("bare-hosts", f"{CLUSTER_ROOT}/host_jobs")
    assert (state["state"], state["world_size_seen"], state["hosts"]) == ("succeeded", 2, ["lab1", "lab3"])


def test_a_second_run_changes_nothing(first: Run) -> None:
    again = as_the_readme_says("bare_hosts").done(change=False)
    assert "Job bare-hosts succeeded" in again.text


def test_every_promise_is_kept(first: Run) -> None:
    playbook("verify", *VALUES).done(change=False)


@pytest.mark.parametrize("name", NODES)
def test_there_is_no_container_and_no_swarm(name: str, first: Run) -> None:
    assert [found for found in containers(name) if container(name) in found] == []
    assert swarm_state(name) == "inactive"


@pytest.mark.parametrize("name", NODES)
def test_the_checkpoint_is_on_those_that_took_part(name: str, first: Run) -> None:
    found = on(name, f"ls {CLUSTER_ROOT}/workspace/checkpoints/digits/epoch06 2>/dev/null; true").split()
    assert bool(found) == (name in TAKE_PART)


def test_root_logs_in_between_the_servers_on_request_alone(first: Run) -> None:
    keys = "cat /root/.ssh/authorized_keys 2>/dev/null; true"
    before = {name: on(name, keys).splitlines() for name in NODES}
    requested = ("--tags", "ssh_trust", *variables(ssh_trust_hosts=True))
    site(*VALUES, *requested).done(change=True)
    site(*VALUES, *requested).done(change=False)
    playbook("verify", *VALUES, *requested).done(change=False)
    for name in NODES:
        lines = on(name, keys).splitlines()
        assert [line for line in before[name] if line not in lines] == []
        assert len(lines) == len(before[name]) + 3
    # Both ways, as deepspeed --hostfile needs it.
    assert on("lab1", "ssh lab2 ssh -o BatchMode=yes lab1 hostname").split() == on("lab1", "hostname").split()
    site(*VALUES, "--tags", "ssh_trust").done(change=True)
    assert {name: on(name, keys).splitlines() for name in NODES} == before


def test_nothing_of_it_is_left(first: Run) -> None:
    consents = ("workspace_remove", "workspace_python_remove", "deepspeed_launch_remove_jobs", "assets_remove")
    playbook("teardown", *VALUES, *variables(**dict.fromkeys(consents, True))).done(change=True)
    for name in NODES:
        assert on(name, f"ls -d /opt/train {CLUSTER_ROOT} 2>/dev/null; true") == ""
