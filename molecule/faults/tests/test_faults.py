"""Faults made for real while a job starts or trains. Each ends the job everywhere, soon, told by node and cause.

The times are printed as a table (.cache/faults.md); no test has a limit tighter than what the documentation promises.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.journey import (
    JOBS,
    NODES,
    ROOT,
    Run,
    container,
    inside,
    lab_inventory,
    node,
    on,
    playbook,
    site,
    variables,
)

STEPS: dict[str, Any] = {
    "workspace_source": str(ROOT / "molecule" / "faults" / "scripts"),
    "deepspeed_launch_script": "steps.py",
    "deepspeed_launch_args": [],
    "deepspeed_launch_config_argument": "",
    "deepspeed_launch_name": "fault",
    "deepspeed_launch_logs_dir": str(ROOT / ".cache" / "faults"),
}
FOLDER = f"{JOBS}/fault"
PROMISE = 30.0
"""Seconds within which a job has ended on every node, from when its fault could be noticed."""
TABLE = ROOT / ".cache" / "faults.md"


def launch(**values: Any) -> Run:
    return playbook("launch", *variables(**{**STEPS, **values}))


def state(name: str = "lab1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(on(name, f"cat {FOLDER}/state.json"))
    return found


def log() -> str:
    """The merged log; empty while nobody has printed anything."""
    return on("lab1", f"cat {FOLDER}/launcher.log 2>/dev/null; true")


def alive(name: str) -> list[str]:
    """Processes of the job on a node, in its container or not."""
    command = "grep -lsz '^SWARMSPEED_JOB=/jobs/fault$' /proc/[0-9]*/environ; true"
    return on(name, command).split()


def wait(what: Callable[[], bool], seconds: float) -> float:
    """Seconds until something was so."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, state()
        time.sleep(0.5)
    return time.monotonic() - began


def training(**values: Any) -> None:
    """Start the job and wait until it trains."""
    launch(**{"deepspeed_launch_follow": False, **values}).done(change=True)
    wait(lambda: "rank 0: step " in log(), 120)


def ended(fault: str, transport: str, nodes: tuple[str, ...] = NODES) -> dict[str, Any]:
    """Wait for the job's end on all nodes that can be asked; note how long it took."""
    began = time.monotonic()
    noticed = wait(lambda: state()["state"] != "running" or state()["heartbeat"] < time.time() - 30, 120)
    wait(lambda: not any(alive(name) for name in nodes), 60)
    everywhere = time.monotonic() - began
    found = state()
    new = not TABLE.exists()
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("a", encoding="utf-8") as table:
        if new:
            table.write("| fault | transport | told after | nothing left after | said |\n|---|---|---|---|---|\n")
        table.write(f"| {fault} | {transport} | {noticed:.0f} s | {everywhere:.0f} s | {found['reason']} |\n")
    assert found["state"] == "failed", found
    assert everywhere < PROMISE + 15, (
        found
    )  # 15 s: silence that is waited for before a node counts as gone, and polling here
    port = found["master_port"]
    for name in nodes:
        if node(name).run(f"docker inspect -f '{{{{.State.Running}}}}' {container(name)}").stdout.strip() == "true":
            assert inside(name, f"ss -Hlnt 'sport = :{port}'") == ""
    return found


@pytest.fixture(autouse=True)
def no_job_of_an_earlier_test() -> None:
    playbook("stop", *variables(**STEPS)).done()
    for name in NODES:
        on(name, f"rm -rf {FOLDER}")


def pid_of(name: str, pattern: str) -> str:
    """A process of the job on a node, as the node sees it."""
    return on(name, f"pgrep -o -f {pattern!r}").strip()


def rank_on(name: str) -> str:
    return pid_of(name, "python3 -u steps.py")


TRANSPORTS = ("direct", "pdsh")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rank_that_is_killed(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    on("lab2", f"kill -9 {rank_on('lab2')}")
    found = ended("a rank is killed (SIGKILL)", transport)
    assert (found["failed_node"], found["failed_rank"]) == ("lab2", 1), found["reason"]
    assert "SIGKILL" in found["reason"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_launcher_that_is_killed(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    on("lab3", f"kill -9 {pid_of('lab3', 'deepspeed.launcher.launch')}")
    found = ended("launch.py is killed (SIGKILL)", transport)
    assert found["failed_node"] == "lab3", found["reason"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_container_that_is_killed(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    on("lab3", f"docker kill {container('lab3')}")
    try:
        found = ended("a container is killed", transport)
        assert found["failed_node"] == "lab3", found["reason"]
    finally:
        site("--tags", "training_container", *variables(deepspeed_launch_script="")).done()


def test_docker_that_stops_on_a_worker() -> None:
    training()
    on("lab2", "systemctl stop docker.socket docker")
    try:
        found = ended("Docker stops on a worker", "direct")
        assert found["failed_node"] == "lab2", found["reason"]
    finally:
        on("lab2", "systemctl start docker")
        site("--tags", "swarm,overlay_network,training_container", *variables(deepspeed_launch_script="")).done()


@contextmanager
def cut(name: str) -> Iterator[None]:
    """No packet between a node and the others; the controller still reaches it."""
    hosts = lab_inventory()["_meta"]["hostvars"]
    others = [hosts[other]["ansible_host"] for other in NODES if other != name]
    rules = [f"INPUT -s {address} -j DROP" for address in others]
    rules += [f"OUTPUT -d {address} -j DROP" for address in others]
    for rule in rules:
        on(name, f"iptables -I {rule}")
    try:
        yield
    finally:
        for rule in rules:
            on(name, f"iptables -D {rule}")
        for other in NODES:  # the overlay's DNS takes a while to know everybody again
            for wanted in NODES:
                ask = f"until getent hosts {container(wanted)}; do sleep 1; done"
                on(other, f"docker exec {container(other)} timeout 120 sh -c '{ask}'")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_node_whose_network_is_cut_while_it_trains(transport: str) -> None:
    training(deepspeed_launch_transport=transport)
    with cut("lab3"):
        found = ended("a node's network is cut while it trains", transport)
    assert found["failed_node"] == "lab3", found["reason"]
    assert "lab3 has gone" in found["reason"]


def test_a_node_whose_network_is_cut_while_the_job_starts() -> None:
    launch(deepspeed_launch_follow=False).done(change=True)
    with cut("lab2"):
        found = ended("a node's network is cut while the job starts", "direct")
    assert found["failed_node"] == "lab2", found["reason"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_script_that_raises_on_one_rank(transport: str) -> None:
    training(deepspeed_launch_args=["--raise-on", "2"], deepspeed_launch_transport=transport)
    found = ended("the script raises on one rank", transport)
    assert (found["failed_node"], found["failed_rank"]) == ("lab3", 2), found["reason"]
    assert "ValueError: a column is missing (raised at /workspace/steps.py" in found["reason"]
    assert found["first_failure"]["kind"] == "script"


def test_a_script_that_hangs() -> None:
    training(deepspeed_launch_args=["--hang-on", "1"], deepspeed_launch_stall_timeout=15)
    found = ended("the script hangs (time-out of 15 s)", "direct")
    assert "no rank has printed anything for 15 s (deepspeed_launch_stall_timeout: 15)" in found["reason"]


def test_memory_that_runs_out() -> None:
    name = container("lab2")
    on("lab2", f"docker update --memory 700m --memory-swap 700m {name}")
    try:
        training(deepspeed_launch_args=["--eat-on", "1"])
        found = ended("a rank runs out of memory (cgroup)", "direct")
        assert (found["failed_node"], found["failed_rank"]) == ("lab2", 1), found["reason"]
        assert "out-of-memory" in found["reason"]
    finally:
        on("lab2", f"docker rm --force {name}")  # a limit can not be taken back
        site("--tags", "training_container", *variables(deepspeed_launch_script="")).done(change=True)


def test_a_wrong_interface() -> None:
    run = launch(deepspeed_launch_environment={"GLOO_SOCKET_IFNAME": "nope0"})
    assert run.rc != 0
    assert "Training job fault failed" in run.text
    assert "Unable to find address for: nope0" in run.text
    assert state()["first_failure"]["id"].startswith("gloo"), state()["first_failure"]


def test_a_master_port_that_is_taken() -> None:
    listen = "import socket, time; s = socket.create_server(('', 29555)); time.sleep(300)"
    on("lab1", f'docker exec -d {container("lab1")} python3 -c "{listen}"')
    try:
        launch(deepspeed_launch_master_port=29555).refused("29555")
    finally:
        on("lab1", "pkill -f 29555")


def test_a_script_that_is_missing_on_one_node() -> None:
    on("lab2", "rm /srv/swarmspeed/swarmspeed/workspace/steps.py")
    playbook("launch", "--tags", "launch", *variables(**STEPS)).refused("lab2", "steps.py")
    assert alive("lab1") == []


def test_shared_memory_that_is_full() -> None:
    inside("lab3", "dd if=/dev/zero of=/dev/shm/full bs=1M || true")
    try:
        launch().refused("lab3", "/dev/shm")
    finally:
        inside("lab3", "rm /dev/shm/full")


def test_a_lock_that_a_dead_process_left_is_removed() -> None:
    lock = "/root/.cache/torch_extensions/py311_cpu/fused_adam/lock"
    inside("lab2", f"mkdir -p $(dirname {lock}); touch -d '1 hour ago' {lock}")
    launch(deepspeed_launch_args=["--steps", "3"]).done(change=True)
    inside("lab2", f"test ! -e {lock}")


DIGITS: dict[str, Any] = {
    "deepspeed_launch_name": "fault",
    "deepspeed_launch_logs_dir": STEPS["deepspeed_launch_logs_dir"],
    "deepspeed_launch_args": ["--epochs", "8", "--target", "0.9", "--checkpoints", "/workspace/checkpoints/fault"],
    "deepspeed_launch_checkpoints": "/workspace/checkpoints/fault",
    "deepspeed_launch_resume": "auto",
    "deepspeed_launch_resume_args": ["--resume", "@tag@"],
    "deepspeed_launch_ds_config": {
        "train_micro_batch_size_per_gpu": 16,
        "checkpoint": {"use_node_local_storage": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 2.0e-3, "weight_decay": 0.01}},
    },
}


@pytest.mark.parametrize("where", ["lab2", "lab1"])
def test_a_container_that_is_restarted_while_it_trains_and_the_job_goes_on(where: str) -> None:
    for name in NODES:
        on(name, "rm -rf /srv/swarmspeed/swarmspeed/workspace/checkpoints/fault")
    playbook("launch", *variables(**DIGITS, deepspeed_launch_follow=False, deepspeed_launch_rerun=True)).done(
        change=True
    )
    wait(lambda: "rank 0: digits: epoch 2/8" in log(), 300)
    on(where, f"docker restart -t 1 {container(where)}")
    wait(lambda: state()["state"] == "succeeded" and state()["heartbeat"] > time.time() - 600, 300)
    assert "digits: going on after epoch" in log()
    assert "digits: epoch 8/8" in log()
    assert state()["restarts"][0]["resumed_from"].startswith("epoch")
    assert not any(alive(name) for name in NODES)


def test_the_cluster_is_whole_afterwards() -> None:
    site(*variables(deepspeed_launch_script="")).done()
    site(*variables(deepspeed_launch_script="")).done(change=False)
