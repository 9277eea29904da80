"""Faults made for real while a job trains. Each soon ends the job everywhere, and is reported with node and cause."""

from __future__ import annotations

import re
import time

import pytest

from tests.fault_runs import STALL, TRANSPORTS, cut, ended, launch, log, made, pid_of, rank_on, repair, training
from tests.playbook_run import container, on


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rank_that_is_killed(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    victim = rank_on("lab2")
    since = time.time()
    on("lab2", f"kill -9 {victim}")
    found = ended("a rank is killed (SIGKILL)", transport, since)
    assert (found["failed_node"], found["failed_rank"]) == ("lab2", 1), found["reason"]
    assert "SIGKILL" in found["reason"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_launcher_that_is_killed(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    victim = pid_of("lab3", "deepspeed.launcher.launch")
    since = time.time()
    on("lab3", f"kill -9 {victim}")
    found = ended("`launch.py` is killed (SIGKILL)", transport, since)
    assert found["failed_node"] == "lab3", found["reason"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_container_that_is_killed(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    since = time.time()
    on("lab3", f"docker kill {container('lab3')}")
    try:
        found = ended("a container is killed", transport, since)
        assert found["failed_node"] == "lab3", found["reason"]
    finally:
        repair()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_docker_that_stops_on_a_worker(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    try:
        on("lab2", "systemctl stop docker.socket docker")
        # From when Docker is down: it gives containers 10 s to end.
        found = ended("Docker stops on a worker", transport, time.time())
        assert found["failed_node"] == "lab2", found["reason"]
    finally:
        on("lab2", "systemctl start docker")
        repair("swarm,overlay_network,training_container")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_node_whose_network_is_cut_while_it_trains(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    with cut("lab3"):
        found = ended("a node's network is cut while it trains", transport, time.time())
    assert found["failed_node"] == "lab3", found["reason"]
    assert "lab3 has gone" in found["reason"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_node_whose_network_is_cut_while_the_job_starts(transport: str) -> None:
    launch(deepspeed_launch_follow=False, deepspeed_launch_transport=transport).done(change=True)
    assert "rank 0: step " not in log()
    with cut("lab2"):
        found = ended("a node's network is cut while the job starts", transport, time.time())
    assert found["failed_node"] == "lab2", found["reason"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_script_that_raises_on_one_rank(transport: str) -> None:
    training(deepspeed_launch_args=["--raise-on", "2"], deepspeed_launch_transport=transport)
    found = ended("the script raises on one rank", transport, made("lab3"))
    assert (found["failed_node"], found["failed_rank"]) == ("lab3", 2), found["reason"]
    assert "ValueError: a column is missing (raised at /workspace/steps.py" in found["reason"]
    assert found["first_failure"]["kind"] == "script"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_script_that_hangs(transport: str) -> None:
    training(
        deepspeed_launch_args=["--hang-on", "1"],
        deepspeed_launch_stall_timeout=STALL,
        # Else Gloo's own time-out, of a minute at least, comes at the same time.
        deepspeed_launch_environment={"DEEPSPEED_TIMEOUT": "10"},
        deepspeed_launch_transport=transport,
    )
    found = ended(f"the script hangs (time-out of {STALL} s)", transport, made("lab2"))
    assert re.search(
        rf"no rank has printed anything for \d+ s \(deepspeed_launch_stall_timeout: {STALL}\)", found["reason"]
    )


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_memory_that_runs_out(transport: str) -> None:
    name = container("lab2")
    on("lab2", f"docker update --memory 700m --memory-swap 700m {name}")
    try:
        training(deepspeed_launch_args=["--eat-on", "1"], deepspeed_launch_transport=transport)
        found = ended("a rank runs out of memory (cgroup)", transport, made("lab2"))
        assert (found["failed_node"], found["failed_rank"]) == ("lab2", 1), found["reason"]
        assert "out-of-memory" in found["reason"]
    finally:
        on("lab2", f"docker rm --force {name}")  # a limit cannot be revoked
        repair()
