# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""RDMA devices, distances and borrowed speeds, on machines that are constructed (``fabric_machines``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.interfaces import gather_fabric
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.rdma import (
    DISTANCES,
    gpu_distances,
    parse_infiniband,
    pci_address,
    pci_distance,
    switch_management,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.topology import parse_topology
from ansible_collections.swarmspeed.cluster.tests.unit.plugins.module_utils.fabric.fabric_machines import (
    Machine,
    cloud_vm,
    device,
    dgx_hdr,
    hgx_b200,
    ipoib,
    port,
    roce_bond,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

RECORDED = Path(__file__).parents[1] / "fixtures/gpu"


def gathered(machine: Machine) -> dict[str, Any]:
    return gather_fabric(machine, machine.gpu)


def speeds(machine: Machine) -> dict[str, int | None]:
    return {interface["name"]: interface["speed_mbps"] for interface in gathered(machine)["interfaces"]}


def test_each_hca_of_a_big_machine_is_on_one_switch_with_one_gpu() -> None:
    found = {device["name"]: device for device in gathered(dgx_hdr())["infiniband"]}
    for slot in range(8):
        distances = found[f"mlx5_{slot}"]["gpu_distances"]
        near = [address for address, distance in distances.items() if distance == "PIX"]
        assert near == [f"0000:{slot:x}3:00.0"]
        assert sorted(distances.values()) == ["NODE"] * 3 + ["PIX"] + ["SYS"] * 4
    assert set(found["mlx5_8"]["gpu_distances"].values()) == {"NODE", "SYS"}
    assert found["mlx5_3"]["pci_address"] == "0000:34:00.0"
    assert (found["mlx5_3"]["numa_node"], found["mlx5_4"]["numa_node"]) == (0, 1)
    (gid,) = found["mlx5_0"]["ports"][0]["gids"]
    # The kernel calls an InfiniBand GID "IB/RoCE v1"; it is no RoCE.
    assert (gid["type"], gid["address"], gid["interface"]) == ("infiniband", None, None)


def test_a_bond_is_one_rdma_device_with_a_table_of_gids() -> None:
    facts = gathered(roce_bond())
    (device,) = facts["infiniband"]
    assert [(gid["index"], gid["type"], gid["address"]) for gid in device["ports"][0]["gids"]] == [
        (0, "roce_v1", None),
        (1, "roce_v2", None),
        (2, "roce_v1", "10.20.0.1"),
        (3, "roce_v2", "10.20.0.1"),
    ]
    assert device["ports"][0]["gids"][3]["interface"] == "bond0.100"
    assert device["gpu_distances"] == {
        "0000:1a:00.0": "PHB",
        "0000:1b:00.0": "PHB",
        "0000:b1:00.0": "SYS",
        "0000:b2:00.0": "SYS",
    }
    interfaces = {interface["name"]: interface for interface in facts["interfaces"]}
    assert interfaces["bond0"]["members"] == ["ens1f0np0", "ens1f1np1"]
    assert (interfaces["bond0.100"]["kind"], interfaces["bond0.100"]["parent"]) == ("vlan", "bond0")


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (
            roce_bond(),
            {"eno1": 1000, "ens1f0np0": 100000, "ens1f1np1": 100000, "bond0": 200000, "bond0.100": 200000},
        ),
        (ipoib(), {"eno1": 25000, "ib0": 100000, "ib0.8001": 100000}),
        (dgx_hdr(), {"eno1": 1000, "ibs0": 200000}),
        (cloud_vm(), {"ens5": None}),
    ],
    ids=["vlan-on-bond", "ipoib-and-partition", "dgx", "cloud"],
)
def test_an_interface_that_tells_no_speed_has_that_of_what_carries_it(
    machine: Machine, expected: dict[str, int | None]
) -> None:
    assert speeds(machine) == expected


def test_a_port_that_is_down_lends_no_speed() -> None:
    machine = ipoib()
    machine.devices[0]["ports"] = [port("InfiniBand", "10 Gb/sec (4X SDR)", up=False)]
    assert speeds(machine) == {"eno1": 25000, "ib0": None, "ib0.8001": None}


def test_interfaces_that_are_each_others_parents_end() -> None:
    machine = ipoib()
    machine.devices = []
    machine.links[1].update(linkinfo={"info_kind": "macvlan"}, link="ib0.8001")
    assert speeds(machine) == {"eno1": 25000, "ib0": None, "ib0.8001": None}


def test_a_virtio_card_has_the_address_of_the_pci_device_before_it() -> None:
    (interface,) = gathered(cloud_vm())["interfaces"]
    assert interface["pci_address"] == "0000:00:05.0"
    assert gathered(cloud_vm())["infiniband"] == []


def test_without_gpu_facts_no_distance_is_reported() -> None:
    assert gather_fabric(dgx_hdr())["infiniband"][0]["gpu_distances"] == {}


def test_nvidia_smis_own_matrix_counts_where_there_is_one() -> None:
    """The matrix is recorded (fixtures/gpu); the addresses are constructed."""
    topology = parse_topology((RECORDED / "topo_h100_x8.txt").read_text(encoding="utf-8"))
    assert topology is not None
    name, links = next(iter(topology.nics.items()))
    addresses = {index: f"0000:{int(index):02x}:00.0" for index in links}
    gpu = {
        "topology": {"nics": topology.nics},
        "gpus": [{"index": int(index), "address": address} for index, address in addresses.items()],
        "pci_devices": [{"address": address, "numa_node": 0} for address in addresses.values()],
    }
    found = gpu_distances({"name": name, "numa_node": 0}, "", gpu, {})
    assert found == {addresses[index]: distance for index, distance in links.items()}
    assert set(found.values()) <= set(DISTANCES)


SWITCH = "/sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0"


@pytest.mark.parametrize(
    ("first", "second", "same", "distance"),
    [
        (f"{SWITCH}/0000:18:00.0/0000:19:00.0", f"{SWITCH}/0000:18:04.0/0000:1a:00.0", True, "PIX"),
        (
            f"{SWITCH}/0000:18:00.0/0000:19:00.0/0000:1a:00.0/0000:1b:00.0",
            f"{SWITCH}/0000:18:04.0/0000:1f:00.0",
            True,
            "PXB",
        ),
        ("/sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0", "/sys/devices/pci0000:16/0000:16:03.0", True, "PHB"),
        ("/sys/devices/pci0000:16/0000:16:02.0", "/sys/devices/pci0000:64/0000:64:02.0", True, "NODE"),
        ("/sys/devices/pci0000:16/0000:16:02.0", "/sys/devices/pci0000:64/0000:64:02.0", False, "SYS"),
        ("/sys/devices/pci0000:16/0000:16:02.0", "/sys/devices/pci0000:64/0000:64:02.0", None, None),
        ("/sys/devices/virtual/net/rxe0", "/sys/devices/pci0000:64/0000:64:02.0", True, None),
        ("", "", True, None),
    ],
)
def test_pci_distance(first: str, second: str, same: bool | None, distance: str | None) -> None:
    assert pci_distance(first, second, same) == distance


def test_the_devices_of_the_nvswitches_are_known_by_their_vital_product_data() -> None:
    found = gathered(hgx_b200())["infiniband"]
    assert switch_management(found) == ["mlx5_8", "mlx5_9", "mlx5_10", "mlx5_11"]
    assert {one["name"]: one["switch_management"] for one in found}["mlx5_7"] is False
    assert switch_management(gathered(dgx_hdr())["infiniband"]) == []


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(max_size=64), st.binary(max_size=64), st.booleans())
def test_vital_product_data_may_hold_anything(before: bytes, after: bytes, switched: bool) -> None:
    vpd = before + (b"SW_MNG" if switched else b"") + after
    (found,) = parse_infiniband([device("mlx5_0", "", "", port("InfiniBand", "", up=False), vpd=vpd)])
    assert found["switch_management"] is (b"SW_MNG" in vpd)


BRIDGES = st.lists(st.sampled_from([f"0000:{number:02x}:00.0" for number in range(6)]), min_size=1, max_size=4)
PATHS = st.builds(lambda root, way: f"/sys/devices/pci0000:{root:02x}/{'/'.join(way)}", st.integers(0, 2), BRIDGES)


@settings(max_examples=examples(100), deadline=None)
@given(PATHS, PATHS, st.sampled_from([True, False, None]))
def test_a_distance_is_the_same_from_both_ends(first: str, second: str, same: bool | None) -> None:
    distance = pci_distance(first, second, same)
    assert distance == pci_distance(second, first, same)
    assert distance in (*DISTANCES, None)
    assert pci_address(first) == first.rpartition("/")[2]


def test_ports_that_say_nothing() -> None:
    """A device of the kernel's own (Soft-RoCE, say) and a port that is down, constructed."""
    raw = {
        "name": "rxe0",
        "interfaces": [],
        "numa_node": "-1",
        "pci_path": "/sys/devices/virtual/net/eth0",
        "vpd": b"",
        "ports": [
            {"port": "x", "state": "", "phys_state": "", "rate": "", "link_layer": "", "gids": []},
            {
                "port": "1",
                "state": "1: DOWN",
                "phys_state": "",
                "rate": "",
                "link_layer": "Ethernet",
                "gids": [{"index": "0", "gid": "garbage", "type": "", "interface": ""}],
            },
        ],
    }
    (found,) = parse_infiniband([raw])
    (only,) = found.pop("ports")
    assert found == {
        "name": "rxe0",
        "interfaces": [],
        "numa_node": None,
        "pci_address": None,
        "switch_management": False,
    }
    gid = {"index": 0, "gid": "garbage", "type": None, "interface": None, "address": None}
    assert only == {
        "port": 1,
        "state": "down",
        "physical_state": "",
        "rate_gbps": None,
        "link_layer": "ethernet",
        "gids": [gid],
    }
