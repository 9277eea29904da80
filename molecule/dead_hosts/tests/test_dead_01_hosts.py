"""A node that dies before a run, during fact gathering, in a role, or while its job is followed, is soon named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import containers, inspect, outside
from tests.fault_runs import NO_JOB, STEPS, everybody_known, forget, repair
from tests.installed import Installed
from tests.playbook_run import LAB, Run, container, lab_inventory, on, playbook, start, variables

LIMIT = 60.0
"""Seconds from a node's death to the end of the playbook."""
DEAD = "lab3"

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(params=["checkout", "installed"])
def begin(request: pytest.FixtureRequest) -> Start:
    """Start a playbook from the checkout, or from the tarball without this checkout's ansible.cfg."""
    if request.param == "checkout":
        return start
    return Installed(Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "dead_hosts").start


@pytest.fixture(autouse=True)
def everything_back() -> Iterator[None]:
    yield
    connect(DEAD)
    forget()


def outer(*words: str) -> None:
    subprocess.run(["docker", *words], check=True, capture_output=True, timeout=60)


def attached(name: str) -> bool:
    return LAB in outside().api.inspect_container(f"{LAB}-{name}")["NetworkSettings"]["Networks"]


def connect(name: str) -> None:
    """Bring a node back that was cut off, and wait until its engine and the overlay's DNS know everybody."""
    if attached(name):
        return
    outer(
        "network", "connect", "--ip", lab_inventory()["_meta"]["hostvars"][name]["ansible_host"], LAB, f"{LAB}-{name}"
    )
    until = time.monotonic() + 120
    while subprocess.run(
        ["docker", "exec", f"{LAB}-{name}", "docker", "info"], check=False, capture_output=True, timeout=60
    ).returncode:
        assert time.monotonic() < until, f"{name} did not come back"
        time.sleep(1)
    # Where it died before its container was made, the test repairs that.
    if container(name) in containers(name):
        on(name, f"docker start {container(name)}")
        everybody_known()


@contextmanager
def hanging_engine(name: str) -> Iterator[None]:
    """An engine that does not answer, so that gathering facts of its node takes a minute."""
    outer("exec", f"{LAB}-{name}", "sh", "-c", "kill -STOP $(pidof dockerd)")
    try:
        yield
    finally:
        outer("exec", f"{LAB}-{name}", "sh", "-c", "kill -CONT $(pidof dockerd)")


def dies(run: subprocess.Popen[str], sign: str, name: str = DEAD, after: float = 0.0) -> tuple[Run, float]:
    """Cut a node off some seconds after the run has printed this; return its end and how long that took."""
    began, lines = 0.0, []
    watchdog = threading.Timer(600, lambda: os.killpg(run.pid, signal.SIGKILL))
    watchdog.start()
    assert run.stdout is not None
    for line in run.stdout:
        lines.append(line)
        if not began and sign in line:
            time.sleep(after)
            outer("network", "disconnect", LAB, f"{LAB}-{name}")
            began = time.monotonic()
    rc = run.wait()
    watchdog.cancel()
    assert began, "".join(lines)[-4000:]
    return Run(rc, "".join(lines)), time.monotonic() - began


def named(run: Run, took: float, reported: str = f"{DEAD}: ") -> None:
    assert run.rc != 0, run.output[-4000:]
    assert took < LIMIT, f"{took:.0f} s\n{run.output[-4000:]}"
    last = run.output[-3000:]
    assert reported in last, run.output[-6000:]
    assert any(remedy in last for remedy in ("Remedy: ", "stop.yml", "verify.yml")), run.output[-6000:]
    assert "No start of json char" not in run.output


@pytest.mark.parametrize("name", ["site", "verify", "launch", "teardown"])
def test_dead_before_the_run(begin: Start, name: str) -> None:
    outer("network", "disconnect", LAB, f"{LAB}-{DEAD}")
    began = time.monotonic()
    process = begin(name, *variables(**STEPS) if name == "launch" else NO_JOB)
    output = process.communicate(timeout=600)[0]
    run = Run(process.returncode, output)
    named(run, time.monotonic() - began)
    run.refused_by(("reachable", DEAD))


@pytest.mark.parametrize("name", ["status", "report"])
def test_dead_before_a_look(begin: Start, name: str) -> None:
    outer("network", "disconnect", LAB, f"{LAB}-{DEAD}")
    began = time.monotonic()
    process = begin(name)
    output = process.communicate(timeout=600)[0]
    assert time.monotonic() - began < LIMIT, output[-4000:]
    assert DEAD in output and process.returncode == 0, output[-4000:]


def test_dies_while_its_facts_are_gathered(begin: Start) -> None:
    with hanging_engine(DEAD):
        run, took = dies(begin("site", *NO_JOB), ": Gather facts of every node]", after=3)
    named(run, took)


def test_dies_in_the_middle_of_a_role(begin: Start) -> None:
    on(DEAD, f"docker rm --force {container(DEAD)}")
    try:
        run, took = dies(begin("site", *NO_JOB), ": Create the container")
        named(run, took)
        assert f"{DEAD}: stopped responding during " in run.output
    finally:
        connect(DEAD)
        repair()


@pytest.mark.parametrize(
    ("name", "reported"),
    [("lab3", "failed: lab3 has gone: it has not answered for "), ("lab1", "lab1: ")],
    ids=["a worker", "the node of rank 0"],
)
def test_dies_while_its_job_is_followed(begin: Start, name: str, reported: str) -> None:
    try:
        run, took = dies(begin("launch", *variables(**STEPS)), "| step ", name)
        named(run, took, reported)
    finally:
        connect(name)


def test_a_network_that_is_cut_between_nodes_is_repaired_where_nothing_runs() -> None:
    """The overlay's own interface on a node is taken down: a stand-in for an engine that has lost its way there."""
    (network,) = inspect("lab2", "container", container("lab2"))["NetworkSettings"]["Networks"].values()
    on("lab2", f"nsenter --net=$(ls -d /run/docker/netns/1-{network['NetworkID'][:10]}) ip link set vxlan0 down")
    run = playbook("site", *NO_JOB).done(change=True)
    assert "Restart the engine of the unreachable node" in run.output
    playbook("site", *NO_JOB).done(change=False)
    playbook("verify", *NO_JOB).done(change=False)
