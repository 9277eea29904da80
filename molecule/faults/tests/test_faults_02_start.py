"""Faults made for real before a job starts. Most are found by the checks of all nodes, and no rank is started."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines import inspect
from tests.fault_runs import STEPS, TRANSPORTS, clean, everybody_known, launch, log, repair, state
from tests.playbook_run import ETC, NODES, container, inside, on, playbook, variables

WORKSPACE = "/srv/swarmspeed/swarmspeed/workspace"


def not_started() -> None:
    """Assert that no rank was started anywhere."""
    for name in NODES:
        assert on(name, "ls /srv/swarmspeed/swarmspeed/jobs/fault 2>/dev/null; true") == ""
    clean(29500)


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
        launch(deepspeed_launch_master_port=29555).refused("lab1: port 29555", "python3")
        not_started()
    finally:
        on("lab1", "pkill -f 29555")


def test_a_script_that_is_missing_on_one_node() -> None:
    playbook("launch", "--tags", "workspace", *variables(**STEPS)).done()
    on("lab2", f"rm {WORKSPACE}/steps.py {WORKSPACE}/.swarmspeed/code/*/steps.py")
    playbook("launch", "--tags", "launch", *variables(**STEPS)).refused("lab2", "steps.py")
    not_started()


def test_shared_memory_that_is_full() -> None:
    inside("lab3", "dd if=/dev/zero of=/dev/shm/full bs=1M || true")
    try:
        launch().refused("lab3", "/dev/shm")
        not_started()
    finally:
        inside("lab3", "rm /dev/shm/full")


def test_a_lock_that_a_dead_process_left_is_removed() -> None:
    lock = "/root/.cache/torch_extensions/py311_cpu/fused_adam/lock"
    inside("lab2", f"mkdir -p $(dirname {lock}); touch -d '1 hour ago' {lock}")
    launch(deepspeed_launch_args=["--steps", "3"]).done(change=True)
    inside("lab2", f"test ! -e {lock}")


def test_a_hostfile_that_is_missing_on_one_node() -> None:
    # Gone after the role has written it and before the job starts: without --skip-tags it is just written again.
    on("lab2", f"rm {ETC}/hostfile")
    run = playbook("launch", "--skip-tags", "hostfile", *variables(**STEPS))
    run.refused("lab2: hostfile /etc/swarmspeed/hostfile is not there. Remedy: ")
    not_started()
    repair("hostfile")
    assert "lab2 slots=1" in on("lab2", f"cat {ETC}/hostfile")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_hostfile_that_the_launcher_does_not_find(transport: str) -> None:
    arguments = ["--hostfile", "/etc/swarmspeed/nowhere"]
    run = launch(deepspeed_launch_launcher_args=arguments, deepspeed_launch_transport=transport)
    run.refused(
        "DeepSpeed did not find its hostfile and would have trained on one node instead of 3. "
        "Check --hostfile in the command and that the file is mounted into the container (--tags hostfile)."
    )
    assert "step 1/" not in log()
    assert (state()["state"], state()["world_size_expected"]) == ("failed", 3)
    clean(state()["master_port"])


def test_fewer_nodes_than_asked_are_no_success() -> None:
    run = launch(deepspeed_launch_launcher_args=["--num_nodes", "2"], deepspeed_launch_args=["--steps", "3"])
    run.refused("Training job fault failed: DeepSpeed started with a world size of 2, expected 3.")
    clean(state()["master_port"])


@pytest.fixture
def another_image() -> Iterator[str]:
    """On lab2 the image's name stands for one with one more layer, and its container runs from that."""
    reference = inspect("lab2", "container", container("lab2"))["Config"]["Image"]
    right = inspect("lab2", "image", reference)["Id"]
    name = container("lab2")
    on("lab2", f"docker exec {name} touch /opt/somebody-was-here && docker commit {name} {reference}")
    on("lab2", f"docker rm --force {name}")
    repair()
    assert inspect("lab2", "container", name)["Image"] != right
    yield reference
    everybody_known()


def test_another_image_on_one_node(another_image: str) -> None:
    launch().refused(f"image: its content differs between the nodes: {another_image}", "on lab1, lab3", "on lab2")
    not_started()
    # The remedy in the message fixes it.
    repair("training_image,training_container")
    launch(deepspeed_launch_args=["--steps", "3"]).done(change=True)
