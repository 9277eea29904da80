"""What a user gets wrong or finds broken is refused with host or variable and remedy, and nothing is changed.

Preflight's problems are asserted by check and subject; its sentences are in the unit tests of the checks.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.engines import inspect, ready, swarm_state
from tests.playbook_run import (
    NODES,
    ROOT,
    Run,
    condition,
    container,
    lab_inventory,
    leave_swarm,
    on,
    playbook,
    site,
    snapshot,
    variables,
    write_inventory,
)

ALL = ", ".join(NODES)

# What one stage of preflight finds it reports at once, so one run shows many a mistake.
WRONG = {
    "cluster_network_mode": "bridge",
    "cluster_accelerator": "tpu",
    "swarm_leave_foregin": True,
    "deepspeed_launch_script": "nowhere.py",
    "training_image_source": "archive",
    "training_image_name": "mine:1",
    "training_image_archive": "/nowhere/image.tar",
}
UNFIT = {
    "training_image_source": "present",
    "training_image_name": "mine:1",
    "preflight_min_free_gib": 100000,
    "deepspeed_launch_include": "lab2:1",
    "deepspeed_launch_ds_config": {"train_micro_batch_size_per_gpu": 16, "zero_optimization": {"stge": 1}},
}
# A slip in the configuration keeps preflight from planning memory, so this is a run of its own.
UNPLANNED = {"deepspeed_launch_ds_config_preset": "auto"}
RESTARTS = {"docker_daemon_config": {"data-root": "/data"}}
WITHOUT_A_CLUSTER = ("site", "verify", "launch", "teardown")


@dataclass(frozen=True)
class Refusals:
    """Runs that must not change anything, and what was on the nodes before and after them."""

    runs: dict[str, Run]
    before: dict[str, list[str]]
    after: dict[str, list[str]]


def subnet() -> str:
    """Return the network that the lab's nodes are in."""
    info = json.loads(on("lab1", "ip -json -4 address show eth0"))[0]["addr_info"][0]
    return str(ipaddress.IPv4Interface(f"{info['local']}/{info['prefixlen']}").network)


def lab3_with(path: Path, address: str) -> Path:
    """Write what is added to the lab's inventory for lab3 to have another address."""
    path.write_text(json.dumps({"all": {"hosts": {"lab3": {"ansible_host": address}}}}), encoding="utf-8")
    return path


def unused_address() -> str:
    known = {name: values["ansible_host"] for name, values in lab_inventory()["_meta"]["hostvars"].items()}
    unused = str(ipaddress.IPv4Address(known["lab3"]) + 100)
    assert unused not in known.values()
    return unused


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Refusals:
    """All runs that find nothing but variables and inventories wrong, side by side."""
    folder = tmp_path_factory.mktemp("inventories")
    no_managers = write_inventory(folder / "no_managers.json", [], ["lab1", "lab2", "lab3"])
    two_managers = write_inventory(folder / "two_managers.json", ["lab1", "lab2"], ["lab2", "lab3"])
    no_cluster = folder / "hosts.yml"
    no_cluster.write_text("all: {hosts: {gpu1: {ansible_host: 192.0.2.1}}}\n", encoding="utf-8")
    away = lab3_with(folder / "away.json", unused_address())
    runs: dict[str, Callable[[], Run]] = {
        "unreachable": partial(site, "--inventory", away),
        "wrong": partial(site, *variables(**WRONG)),
        "unfit": partial(site, *variables(**UNFIT, overlay_network_subnet=subnet())),
        "unplanned": partial(site, "--check", *variables(**UNPLANNED)),
        "restarts": partial(site, "--tags", "docker", *variables(**RESTARTS)),
        "no managers": partial(playbook, "site", inventory=no_managers),
        "two managers": partial(playbook, "site", inventory=two_managers),
        **{name: partial(playbook, name, inventory=no_cluster) for name in WITHOUT_A_CLUSTER},
    }
    before = snapshot()
    with ThreadPoolExecutor(max_workers=4) as pool:
        found = dict(zip(runs, pool.map(lambda run: run(), runs.values())))
    return Refusals(found, before, snapshot())


def test_variables_that_are_wrong_before_any_connection(refusals: Refusals) -> None:
    run = refusals.runs["wrong"].refused_by(
        ("variable_values", "cluster_network_mode"),
        ("variable_values", "cluster_accelerator"),
        ("variable_names", "swarm_leave_foregin"),
        ("files", "deepspeed_launch_script"),
        ("files", "training_image_archive"),
    )
    # By the roles' own specs, and by the lab's own workspace_source.
    run.refused("did you mean swarm_allow_leave_foreign?", f"{ROOT}/examples/digits/nowhere.py ")


def test_variables_that_do_not_fit_what_is_on_the_nodes(refusals: Refusals) -> None:
    run = refusals.runs["unfit"].refused_by(
        ("disk", ALL),
        ("image", ALL),
        ("overlay_subnet", ALL),
        ("hostfile", "deepspeed_launch_include"),
        ("ds_config", "deepspeed_launch_ds_config"),
    )
    run.refused("100000.0 GiB are needed", f"network {subnet()} of device eth0", "'lab2' has no slot 1", "'stage'")


def test_a_plan_of_memory_without_gpus(refusals: Refusals) -> None:
    preset = ("ds_config", "deepspeed_launch_ds_config_preset")
    run = refusals.runs["unplanned"].refused_by(("ds_config", "deepspeed_launch_ds_config_model"), preset, preset)
    run.refused("gpus.count: ", "gpus.memory: ")


def test_an_engine_in_use_is_not_restarted(refusals: Refusals) -> None:
    refusals.runs["restarts"].refused(
        "lab1: the engine must be restarted for data-root in /etc/docker/daemon.json (docker_daemon_config), which "
        "stops these running containers: swarmspeed-lab1. Remedy: set docker_allow_restart: true to allow it, or stop "
        "the containers first."
    )


def test_a_host_cannot_be_reached(refusals: Refusals) -> None:
    refusals.runs["unreachable"].refused_by(("reachable", "lab3"))


def test_groups_are_wrong(refusals: Refusals) -> None:
    refusals.runs["no managers"].refused_by(("managers", "group managers"))
    refusals.runs["two managers"].refused_by(("groups", "lab2"), ("managers", "group managers"))


@pytest.mark.parametrize("name", WITHOUT_A_CLUSTER)
def test_an_inventory_without_a_cluster_is_no_success(name: str, refusals: Refusals) -> None:
    refusals.runs[name].refused("The inventory has no group cluster, or no host in it. gpu1: in no group")


def test_none_of_these_runs_changed_anything(refusals: Refusals) -> None:
    assert refusals.after == refusals.before
    assert not any(count for run in refusals.runs.values() for count in run.changed.values())


# /etc/os-release is a link, which stays as it is under another name meanwhile.
DISTRIBUTION = (
    "mv /etc/os-release /etc/os-release.kept && sed 's/^ID=.*/ID=arch/' /etc/os-release.kept > /etc/os-release",
    "mv -f /etc/os-release.kept /etc/os-release",
)
PYTHON = "/usr/local/bin/python-in-the-past"
CLOCK = (
    f"printf '#!/bin/sh\\nexec faketime -f -90s /usr/bin/python3 \"$@\"\\n' > {PYTHON} && chmod +x {PYTHON}",
    f"rm {PYTHON}",
)
PORT = (
    "systemd-run --quiet --unit=taker python3 -m http.server 2222; "
    "for try in 1 2 3 4 5; do ss -lnt | grep -q :2222 && exit; sleep 1; done; exit 1",
    "systemctl stop taker",
)


def test_a_node_of_another_distribution_with_a_wrong_clock_and_a_taken_port(tmp_path: Path) -> None:
    on(
        "lab2",
        "apt-get -qq install -y --no-install-recommends faketime >/dev/null 2>&1 || (apt-get -qq update && "
        "apt-get -qq install -y faketime) >/dev/null",
    )
    extra = tmp_path / "extra.json"
    hosts: dict[str, Any] = {"lab2": {"ansible_python_interpreter": PYTHON}}
    extra.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    with condition("lab2", *DISTRIBUTION), condition("lab2", *CLOCK), condition("lab2", *PORT):
        before = snapshot()
        # The port is that of the node itself only where containers have no network of their own.
        run = site("--inventory", extra, *variables(cluster_network_mode="host"))
        assert snapshot() == before
    run.refused_by(("distribution", "lab2"), ("clock", "lab2"), ("port_2222", "lab2"))
    run.refused("Arch 13")
    # On a busy machine gathering takes long; how far the figure is to be trusted stands beside it.
    found = re.search(r"its clock is ([\d.]+) s behind the controller's \(±([\d.]+) s\)", run.text)
    assert found and abs(float(found[1]) - 90) <= float(found[2]) + 1, run.text


def test_a_node_is_in_another_swarm() -> None:
    leave_swarm("lab3")
    on("lab3", "docker swarm init --advertise-addr eth0")
    before = snapshot()
    site().refused_by(("foreign_swarm", "lab3")).refused("as a manager")
    assert snapshot() == before
    site(*variables(swarm_allow_leave_foreign=True)).done(change=True)
    assert ready("lab1").count("lab3") == 1
    assert {swarm_state(name) for name in NODES} == {"active"}


@pytest.mark.usefixtures("repaired")
def test_a_container_of_that_name_is_somebody_elses() -> None:
    """After the other swarm, of which it shows that nothing is left to repair: it repairs this one container."""
    image = inspect("lab2", "container", container("lab2"))["Config"]["Image"]
    on(
        "lab2",
        f"docker rm -f {container('lab2')} && docker run --detach --name {container('lab2')} --entrypoint sleep "
        f"{image} infinity",
    )
    before = snapshot()
    try:
        # All roles before training_container are run.
        site().refused(
            "lab2: a container swarmspeed-lab2 exists that this collection did not make. Remedy: rename or "
            "remove it, or choose another cluster_name."
        )
        assert snapshot() == before
    finally:
        on("lab2", f"docker rm -f {container('lab2')}")
    run = site("--tags", "training_container").done(change=True)
    assert (run.changed["lab1"], run.changed["lab3"]) == (0, 0)
