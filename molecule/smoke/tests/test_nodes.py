"""The lab's nodes are hosts as a cloud gives them: systemd, sshd, apt, names, a network, an identity each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import testinfra
from testinfra.host import Host

INVENTORY = Path(__file__).parents[3] / "inventories" / "lab"


@pytest.fixture(scope="module")
def nodes() -> list[Host]:
    """Every node of the lab, for what is asked of all together."""
    return list(testinfra.get_hosts(["ansible://cluster"], ansible_inventory=str(INVENTORY)))


def test_systemd_is_up_and_nothing_failed(host: Host) -> None:
    assert host.check_output("systemctl is-system-running") == "running"
    assert host.file("/proc/1/comm").content_string.strip() == "systemd"


def test_debian_12_and_13_alternate(host: Host) -> None:
    number = int(host.check_output("hostname").removeprefix("lab"))
    assert host.system_info.codename == ("bookworm" if number % 2 else "trixie")


@pytest.mark.parametrize("path", ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf"])
def test_files_that_docker_mounts_are_plain_ones(host: Host, path: str) -> None:
    # A mounted file cannot be replaced by rename, which is how Ansible and others write.
    assert host.file(path).size > 0
    assert not host.mount_point(path).exists


def test_the_inner_engine_has_a_disk_that_overlay2_can_sit_on(host: Host) -> None:
    assert host.mount_point("/var/lib/docker").filesystem != "overlay"


def test_kernel_settings_can_be_written(host: Host) -> None:
    assert host.run("sysctl -w net.ipv4.ip_forward=1").rc == 0


def test_apt_reaches_its_mirrors(host: Host) -> None:
    update = host.run("apt-get -o APT::Update::Error-Mode=any update")
    assert update.rc == 0, update.stderr


def test_nodes_reach_each_other(host: Host, nodes: list[Host]) -> None:
    for node in nodes:
        address = node.check_output("hostname -I").split()[0]
        assert host.run(f"ping -c 1 -W 5 {address}").rc == 0, f"no answer from {address}"


@pytest.mark.parametrize("path", ["/etc/machine-id", "/etc/ssh/ssh_host_ed25519_key.pub"])
def test_no_two_nodes_share_an_identity(nodes: list[Host], path: str) -> None:
    identities = [node.file(path).content_string.split()[:2] for node in nodes]
    assert all(identities)
    assert len({tuple(identity) for identity in identities}) == len(nodes)


def test_only_the_engine_printed_the_host_keys(nodes: list[Host]) -> None:
    pinned = INVENTORY.parents[1] / ".lab" / os.environ.get("LAB_NAME", "swarmspeed") / "known_hosts"
    keys = {node.file("/etc/ssh/ssh_host_ed25519_key.pub").content_string.split()[1] for node in nodes}
    assert {line.split()[2] for line in pinned.read_text(encoding="utf-8").splitlines()} == keys
