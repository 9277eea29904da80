"""Which network carries the training, and how NCCL is configured: problems made on the nodes, and their messages.

Only interfaces named trouble* are made, and taken away again; nothing of the cluster is changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.playbook_run import ETC, NODES, Run, inside, lab_inventory, on, site, variables


def preflight(**given: object) -> Run:
    """Run the checks alone, which change nothing."""
    return site("--tags", "preflight", *variables(**given))


@contextmanager
def interfaces(commands: dict[str, list[str]]) -> Iterator[None]:
    """Run ``ip`` commands on nodes, and remove the interfaces afterwards, whatever happened."""
    try:
        for name, lines in commands.items():
            on(name, "; ".join(["set -e", *(f"ip {line}" for line in lines)]))
        yield
    finally:
        for name in commands:
            on(name, "for one in trouble0 trouble1; do ip link delete $one 2>/dev/null || true; done")


def card(number: int, address: str) -> list[str]:
    """Return what makes a card (one end of a veth) with an address."""
    name = f"trouble{number}"
    return [
        f"link add {name} type veth peer name {name}p",
        f"link set {name}p up",
        f"link set {name} up",
        f"address add {address} dev {name}",
    ]


def test_every_run_says_which_network_and_why() -> None:
    address = lab_inventory()["_meta"]["hostvars"]["lab1"]["ansible_host"]
    subnet = f"{address.rpartition('.')[0]}.0/24"
    done = preflight().done(change=False)
    assert f"Training network {subnet} (MTU " in done.text
    assert "the only subnet that all hosts share. RDMA: none, as no node has an active RDMA port." in done.text


def test_a_second_network_that_ansible_does_not_use_is_not_taken_unless_asked_for() -> None:
    with interfaces({name: card(0, f"10.250.0.{number}/24") for number, name in enumerate(NODES, 1)}):
        reported = "of 2 equally fast subnets that all hosts share, the one that Ansible reaches them by"
        assert reported in preflight().done(change=False).text
        requested = preflight(cluster_underlay_subnet="10.250.0.0/24").done(change=False)
        assert "Training network 10.250.0.0/24" in requested.text
        assert "requested by cluster_underlay_subnet" in requested.text


def test_one_node_on_another_subnet_is_named_with_what_it_has() -> None:
    made = {name: card(0, f"10.250.{int(name == 'lab3')}.{number}/24") for number, name in enumerate(NODES, 1)}
    with interfaces(made):
        preflight(cluster_underlay_subnet="10.250.0.0/24").refused(
            "cluster_underlay_subnet is 10.250.0.0/24, but no interface that is up has an address in it on: lab3 (has",
            "trouble0 10.250.1.3/24",
        )


def test_hosts_that_share_no_subnet_are_reached_at_the_addresses_given_by_hand() -> None:
    own = {name: f"10.250.{number}.{number}" for number, name in enumerate(NODES, 1)}
    with interfaces({name: card(0, f"{address}/24") for name, address in own.items()}):
        given = f"{{{{ {own}[inventory_hostname] }}}}"
        done = preflight(cluster_address=given).done(change=False)
        assert f"Training network {', '.join(own.values())} (MTU " in done.text
        preflight(cluster_address="{{ '10.250.1.1' if inventory_hostname == 'lab1' else '' }}").refused_by(
            ("cluster_address", "cluster_address")
        )
        preflight(cluster_address=given.replace("10.250.3.3", "10.250.3.4")).refused(
            "should be reached at 10.250.3.4, but no active interface there has that address.", "trouble0 10.250.3.3/24"
        )


def test_two_interfaces_with_equal_claims_are_asked_about() -> None:
    made = {name: card(0, f"10.250.0.{number}/24") for number, name in enumerate(NODES, 1)}
    made["lab2"] += card(1, "10.250.0.102/24")
    with interfaces(made):
        preflight(cluster_underlay_subnet="10.250.0.0/24").refused(
            "Two interfaces have equal claims to 10.250.0.0/24 on lab2 (trouble0 and trouble1). "
        )
        done = preflight(cluster_underlay_subnet="10.250.0.0/26").done(change=False)
        assert "Training network 10.250.0.0/26" in done.text


def test_a_bridge_with_one_address_on_every_host_is_no_underlay() -> None:
    bridge = ["link add trouble0 type bridge", "link set trouble0 up", "address add 10.251.0.1/24 dev trouble0"]
    with interfaces(dict.fromkeys(NODES, bridge)):
        assert "the only subnet that all hosts share" in preflight().done(change=False).text
        preflight(cluster_underlay_subnet="10.251.0.0/24").refused(
            "cluster_underlay_subnet is 10.251.0.0/24, but lab1, lab2 and lab3 all have 10.251.0.1 there."
        )


def test_a_wrong_interface_name_is_refused() -> None:
    settings = {"NCCL_SOCKET_IFNAME": "=bond9"}
    preflight(nccl_env_settings=settings).refused_by(("nccl_env", "nccl_env_settings.NCCL_SOCKET_IFNAME"))
    run = preflight(nccl_env_settings=settings, cluster_network_mode="host")
    run.refused_by(("nccl_interface", ", ".join(NODES))).refused("names bond9", "it has eth0")


def test_what_nccl_would_misread_is_refused() -> None:
    preflight(nccl_env_settings={"NCCL_IB_DISABLE": True, "NCCL_IB_RETRY_CNT": 8}).refused_by(
        ("nccl_env", "nccl_env_settings.NCCL_IB_DISABLE"), ("nccl_env", "nccl_env_settings.NCCL_IB_RETRY_CNT")
    )


@pytest.mark.parametrize("name", NODES)
def test_the_settings_carry_their_reasons(name: str) -> None:
    lines = on(name, f"cat {ETC}/nccl.conf").splitlines()
    assert lines[lines.index("NCCL_IB_DISABLE=1") - 1].startswith("# an overlay is a network namespace of its own")
    rendered = inside(name, "cat /etc/nccl.conf").splitlines()
    assert any(line.startswith("NCCL_SOCKET_IFNAME==eth") for line in rendered)
