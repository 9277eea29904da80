# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The table of decisions in docs/init.md, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.decisions import (
    choose_managers,
    choose_names,
    choose_network,
    gpus,
    notes,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.servers import Server

from tests.init_servers import H100, facts, server

ONE, TWO = server(11), server(12)


def both(**of: Any) -> dict[str, Any]:
    return {"10.0.0.11": facts(11, **of), "10.0.0.12": facts(12, **of)}


@pytest.mark.parametrize(
    ("found", "mode", "subnet", "reason"),
    [
        (both(speed=10_000), "overlay", "10.0.0.0/24", "at 10 Gbit/s"),
        (both(), "overlay", "10.0.0.0/24", "is not known"),
        (both(speed=25_000), "host", "10.0.0.0/24", "25 Gbit/s between private addresses"),
        (both(speed=10_000, fast=100_000), "host", "10.9.0.0/24", "100 Gbit/s"),
        (both(speed=10_000, rdma=True), "host", "10.0.0.0/24", "an overlay carries no RDMA"),
        ({**both(rdma=True), "10.0.0.12": facts(12)}, "overlay", "10.0.0.0/24", "not every node"),
        (
            {"10.0.0.11": facts(11, speed=25_000), "10.0.0.12": facts(12, speed=10_000)},
            "overlay",
            "10.0.0.0/24",
            "10 Gbit/s",
        ),
        (
            {
                "10.0.0.11": facts(11, speed=25_000, address="8.8.8.11"),
                "10.0.0.12": facts(12, speed=25_000, address="8.8.8.12"),
            },
            "overlay",
            "8.8.8.0/24",
            "public addresses",
        ),
    ],
)
def test_the_network_of_the_training(found: dict[str, Any], mode: str, subnet: str, reason: str) -> None:
    network = choose_network([ONE, TWO], found)
    assert (network.mode.value, network.subnet.value, network.address) == (mode, subnet, "")
    assert reason in network.mode.reason
    assert network.subnet.reason


def test_a_single_server_has_no_network_to_choose() -> None:
    network = choose_network([ONE], {"10.0.0.11": facts(11, speed=100_000, rdma=True)})
    assert (network.mode.value, network.subnet.value) == ("overlay", "")


def test_routed_servers_are_reached_at_the_addresses_in_the_list() -> None:
    apart = {"10.0.0.11": facts(11), "10.0.1.12": facts(12, address="10.0.1.12", speed=25_000)}
    network = choose_network([ONE, Server("10.0.1.12")], apart)
    assert network.address == "{{ ansible_host }}"
    assert network.subnet.value == "" and "share no subnet" in network.subnet.reason


def test_behind_a_translated_address_nothing_is_decided() -> None:
    apart = {"10.0.0.11": facts(11, address="192.168.0.5"), "10.0.0.12": facts(12, address="192.168.1.5")}
    network = choose_network([ONE, TWO], apart)
    assert (network.mode.value, network.subnet.value, network.address) == ("overlay", "", "")


def test_equal_subnets_are_the_users_choice() -> None:
    # Neither is the one that Ansible uses, which would decide.
    equal = {
        "10.0.0.11": facts(11, address="192.168.5.11", speed=9_000, fast=9_000),
        "10.0.0.12": facts(12, address="192.168.5.12", speed=9_000, fast=9_000),
    }
    network = choose_network([ONE, TWO], equal)
    assert network.subnet.value == ""
    assert "10.9.0.0/24" in network.subnet.reason and "Set cluster_underlay_subnet" in network.subnet.reason


@pytest.mark.parametrize(("count", "managers"), [(1, "1"), (2, "1"), (4, "1"), (5, "3"), (64, "3")])
def test_managers(count: int, managers: str) -> None:
    assert choose_managers(count).value == managers


@pytest.mark.parametrize(
    ("hostnames", "count", "names"),
    [
        (("node-a", "node-b"), 0, ["node-a", "node-b"]),
        (("Node-A.example.com", "node-b"), 0, ["node-a", "node-b"]),
        (("same", "same"), 0, ["node1", "node2"]),
        (("localhost", "node-b"), 8, ["gpu1", "gpu2"]),
        (("under_score", "node-b"), 0, ["node1", "node2"]),
        (("x" * 31, "node-b"), 8, ["gpu1", "gpu2"]),
    ],
)
def test_names(hostnames: tuple[str, str], count: int, names: list[str]) -> None:
    first, second = (facts(number, hostname=name, gpus=count) for number, name in zip((11, 12), hostnames))
    assert list(choose_names([ONE, TWO], {"10.0.0.11": first, "10.0.0.12": second}).values()) == names


def test_a_given_name_stays_and_no_other_takes_it() -> None:
    found = {"10.0.0.11": facts(11, hostname="a"), "10.0.0.12": facts(12, hostname="gpu2")}
    assert choose_names([server(11, name="gpu2"), TWO], found) == {"10.0.0.11": "gpu2", "10.0.0.12": "node1"}


def test_new_servers_take_no_name_of_the_inventory() -> None:
    assert choose_names([ONE], {"10.0.0.11": facts(11, hostname="a", gpus=1)}, ["a", "gpu1"]) == {"10.0.0.11": "gpu2"}


def test_gpus_in_words() -> None:
    assert gpus(facts(11, gpus=8)) == f"8 × {H100}"
    without_driver = facts(11)
    without_driver["gpu"]["pci_devices"] = [{"address": "0000:1a:00.0"}] * 4
    assert gpus(without_driver) == "4 × NVIDIA GPU, no driver yet"
    hostile = facts(11, gpus=1)
    hostile["gpu"]["gpus"][0]["name"] = "x\n  evil: {{ lookup('pipe', 'id') }}"
    assert gpus(hostile) == "1 × x  evil  lookuppipe id "
    assert gpus(facts(11)) == ""


def test_notes_are_about_mixed_servers_and_firewalls() -> None:
    found = {"10.0.0.11": facts(11, gpus=1), "10.0.0.12": facts(12, firewall=("ufw",))}
    mixed, walls = notes([ONE, TWO], {"10.0.0.11": "a", "10.0.0.12": "b"}, found)
    assert mixed.startswith("No GPU on b:")
    assert walls.startswith("Firewall on b (ufw):")
    assert notes([ONE], {"10.0.0.11": "a"}, {"10.0.0.11": facts(11)}) == []
