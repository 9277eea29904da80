"""The controller may die at any moment: the next run finishes what it began."""

from __future__ import annotations

import os
import signal

import pytest

from tests.engines import swarm_nodes
from tests.playbook_run import ETC, NODES, container, inside, on, playbook, site, start

MOMENTS = (
    "swarm : Join the swarm",
    "ssh_trust : Generate the cluster's key pair, once",
    "training_container : Create the container",
)


def kill_at(words: str, given: tuple[str, ...]) -> str:
    """Start site.yml, kill the controller with all its workers as soon as it names a task; return its output."""
    process = start("site", *given)
    printed: list[str] = []
    assert process.stdout
    try:
        for line in process.stdout:
            printed.append(line)
            if words in line:
                break
        assert process.poll() is None, "".join(printed)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return "".join(printed)


def test_a_run_that_was_killed_again_and_again_is_finished_by_the_next(given: tuple[str, ...]) -> None:
    playbook("teardown", *given).done(change=True)
    for moment in MOMENTS:
        assert moment in kill_at(moment, given)
    site(*given).done(change=True)
    site("--check", "--diff", *given).done(change=False)


@pytest.mark.parametrize("name", NODES)
def test_the_cluster_is_complete(name: str) -> None:
    for other in NODES:
        assert inside(name, f"ssh {other} hostname") == container(other)
    assert on(name, f"sha256sum < {ETC}/ssh/id_ed25519") == on("lab1", f"sha256sum < {ETC}/ssh/id_ed25519")


def test_there_is_one_entry_a_node_in_the_swarm() -> None:
    assert [(found.host, found.status) for found in swarm_nodes("lab1")] == [(name, "ready") for name in NODES]
