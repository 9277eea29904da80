"""The training containers use the hosts' own interfaces, and no overlay is made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import inspect
from tests.playbook_run import JOBS, NODES, container, inside, job, lab_inventory, on, playbook, variables


def test_verify_finds_every_promise_kept() -> None:
    playbook("verify", *variables(cluster_network_mode="host")).done(change=False)


@pytest.mark.parametrize("name", NODES)
def test_the_container_is_in_the_hosts_network(name: str) -> None:
    assert inspect(name, "container", container(name))["HostConfig"]["NetworkMode"] == "host"


@pytest.mark.parametrize("name", NODES)
def test_sshd_listens_on_the_underlay_only(name: str) -> None:
    address = lab_inventory()["_meta"]["hostvars"][name]["ansible_host"]
    assert on(name, "ss -Hlnt 'sport = :2222' | awk '{print $4}'").split() == [f"{address}:2222"]


@pytest.mark.parametrize("name", NODES)
def test_nccl_and_gloo_use_the_underlays_interface(name: str) -> None:
    address = lab_inventory()["_meta"]["hostvars"][name]["ansible_host"]
    device = on(name, f"ip -br -4 address show to {address}").split()[0].partition("@")[0]
    assert f"NCCL_SOCKET_IFNAME=={device}" in inside(name, "cat /etc/nccl.conf").splitlines()
    assert f"GLOO_SOCKET_IFNAME={device}" in inside(name, "cat /root/.ssh/environment").splitlines()


def test_the_job_was_trained_by_three_ranks() -> None:
    assert (job()["state"], job()["world_size_seen"]) == ("succeeded", 3)
    assert "target 0.95 reached" in on("lab1", f"cat {JOBS}/digits/launcher.log")
