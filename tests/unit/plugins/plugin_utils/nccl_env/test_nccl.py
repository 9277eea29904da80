# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How NCCL is configured, on machines that are constructed (``fabric_machines``). NCCL itself is not run here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.interfaces import gather_fabric
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.underlay import common_underlay
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.ranges import (
    NcclError,
    complaint,
    parse_release,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nccl_env.settings import (
    LONGEST_WAIT,
    choose_ports,
    common_rdma,
    ib_timeout,
    nccl_plan,
    ports_of,
    socket_retries,
    unknown_interfaces,
    uses_rdma,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.nccl import check_interfaces, check_settings
from ansible_collections.swarmspeed.cluster.tests.unit.plugins.module_utils.fabric.fabric_machines import (
    Machine,
    cloud_vm,
    device,
    dgx_hdr,
    hgx_b200,
    ipoib,
    port,
    roce_bond,
    roce_gids,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

OVERLAY_REASON = (
    "# an overlay is a network namespace of its own, where RoCE's GIDs are not, and VXLAN carries no RDMA; "
    "cluster_network_mode: host would use it"
)


def fabric(machine: Machine) -> dict[str, Any]:
    return gather_fabric(machine, machine.gpu)


def plan(machine: Machine, *others: Machine, **changes: Any) -> dict[str, Any]:
    """Return what is set on a node of a cluster of these machines, in host mode unless changed."""
    fabrics = {f"n{number}": fabric(one) for number, one in enumerate([machine, *others])}
    requested = {
        "network_mode": "host",
        "interface": "@IFNAME@",
        "subnet": "10.20.0.0/24",
        "rdma": common_rdma(fabrics),
        "settings": {},
        "environment": {},
        "timeout": 0,
        "debug": "",
        **changes,
        "release": parse_release(changes.get("release", "2.28.9")),
    }
    result = nccl_plan(requested, fabrics["n0"])
    assert [line for line in result["lines"] if not line.startswith("#")] == [
        f"{name}={value}" for name, value in result["settings"].items()
    ]
    assert [line for line in result["lines"] if line.startswith("#")] == result["lines"][::2]
    return result


def test_a_cloud_machine_gets_its_interface_and_no_more() -> None:
    found = plan(cloud_vm(), cloud_vm(2))
    assert found["settings"] == {"NCCL_SOCKET_IFNAME": "=@IFNAME@"}
    assert found["lines"][0] == (
        "# the interface in 10.20.0.0/24; = asks for that very name, without it eth1 would also be eth10"
    )


def test_in_an_overlay_rdma_is_off_and_the_reason_stands_above_it() -> None:
    found = plan(dgx_hdr(), dgx_hdr(2), network_mode="overlay")
    assert found["settings"] == {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "=@IFNAME@"}
    assert found["lines"][0] == OVERLAY_REASON


def test_a_big_machine_trains_over_the_hcas_of_its_gpus_and_not_over_storages() -> None:
    found = plan(dgx_hdr(), dgx_hdr(2))
    assert found["settings"]["NCCL_IB_HCA"] == "=" + ",".join(f"mlx5_{slot}:1" for slot in range(8))
    assert "NCCL_IB_GID_INDEX" not in found["settings"]
    assert found["lines"][0] == (
        "# every node has active InfiniBand ports; these are active, fast and near a GPU; left out: mlx5_8:1 is "
        "nearest to no GPU; mlx5_9:1 is nearest to no GPU"
    )


def test_an_hca_that_is_down_is_left_out() -> None:
    machine = dgx_hdr()
    machine.devices[2]["ports"] = [port("InfiniBand", "10 Gb/sec (4X SDR)", up=False)]
    hca = plan(machine, dgx_hdr(2))["settings"]["NCCL_IB_HCA"]
    assert "mlx5_2:1" not in hca
    assert hca.startswith("=mlx5_0:1,mlx5_1:1,mlx5_3:1")


def test_slow_ports_are_left_out_before_distance_counts() -> None:
    machine = dgx_hdr()
    near = f"{machine.paths['0000:03:00.0'].rpartition('/')[0]}/0000:05:00.0"
    machine.devices.append(device("mlx5_10", near, "0", port("InfiniBand", "40 Gb/sec (4X QDR)")))
    ports, left = choose_ports(ports_of(fabric(machine), "infiniband"))
    assert [one.device for one in ports] == [f"mlx5_{slot}" for slot in range(8)]
    assert left.startswith("mlx5_10:1 is slower; ")


def test_without_gpus_all_fast_ports_stay() -> None:
    machine = dgx_hdr()
    machine.gpu = {}
    ports, left = choose_ports(ports_of(fabric(machine), "infiniband"))
    assert (len(ports), left) == (10, "")


@pytest.mark.parametrize(
    ("release", "index"),
    [("2.20.5", "3"), ("2.18.1+cuda12.1", "3"), ("2.21.0", None), ("2.21.5", None), ("2.30.7", None), ("", None)],
)
def test_the_gid_index_is_set_for_releases_that_do_not_find_it(release: str, index: str | None) -> None:
    found = plan(roce_bond(), roce_bond(2), release=release)
    assert found["settings"].get("NCCL_IB_GID_INDEX") == index
    assert found["settings"]["NCCL_IB_HCA"] == "=mlx5_bond_0:1"


def test_the_gid_index_is_that_of_the_underlays_subnet_and_the_users_wins() -> None:
    machine = roce_bond(first=4)
    machine.devices[0]["ports"][0]["gids"] = [
        *roce_gids("192.168.9.1", "bond0.9"),
        *machine.devices[0]["ports"][0]["gids"],
    ]
    found = plan(machine, roce_bond(2), release="2.20.5")
    assert found["settings"]["NCCL_IB_GID_INDEX"] == "7"
    assert found["lines"][0] == "# RoCE v2 with an IPv4 address; NCCL 2.20.5 does not find it, 2.21 does"
    found = plan(machine, roce_bond(2), release="2.20.5", settings={"NCCL_IB_GID_INDEX": 5})
    assert found["settings"]["NCCL_IB_GID_INDEX"] == "5"


def test_ports_without_a_gid_index_in_common_are_an_error_for_old_releases() -> None:
    machine = roce_bond()
    machine.gpu = {}
    second = port("Ethernet", "200 Gb/sec (4X HDR)", gids=roce_gids("10.20.0.9", "ens2", first=8))
    machine.devices.append(device("mlx5_2", "/sys/devices/pci0000:b0/0000:b0:02.0", "1", second))
    with pytest.raises(NcclError) as error:
        plan(machine, roce_bond(2), release="2.20.5")
    assert str(error.value) == (
        "the RoCE ports have no GID index in common (mlx5_bond_0:1: 3, mlx5_2:1: 11), and NCCL before 2.21 takes "
        "one for all. Remedy: use an image with NCCL 2.21 or later, or name ports with one index in NCCL_IB_HCA and "
        "the index in NCCL_IB_GID_INDEX, both in nccl_env_settings"
    )
    assert plan(machine, roce_bond(2))["settings"]["NCCL_IB_HCA"] == "=mlx5_bond_0:1,mlx5_2:1"


def test_a_roce_port_without_an_ipv4_address_is_not_used() -> None:
    machine = roce_bond()
    del machine.devices[0]["ports"][0]["gids"][2:]
    assert ports_of(fabric(machine), "ethernet") == []
    machine.devices[0]["ports"][0]["gids"] = []  # a table that cannot be read rules nothing out
    assert len(ports_of(fabric(machine), "ethernet")) == 1


def test_what_one_node_lacks_none_uses() -> None:
    found = plan(dgx_hdr(), cloud_vm())
    assert found["settings"]["NCCL_IB_DISABLE"] == "1"
    assert "NCCL_IB_HCA" not in found["settings"]
    assert found["lines"][0] == (
        "# NCCL does not mix RDMA and sockets, and not every node has an active RDMA port: none on n1"
    )
    assert plan(cloud_vm(), dgx_hdr())["settings"] == {"NCCL_SOCKET_IFNAME": "=@IFNAME@"}


@pytest.mark.parametrize(
    ("machines", "layer", "reason"),
    [
        ([dgx_hdr(), ipoib()], "infiniband", "every node has active InfiniBand ports"),
        ([roce_bond(), roce_bond(2)], "ethernet", "every node has active RoCE ports"),
        ([cloud_vm(), cloud_vm(2)], None, "no node has an active RDMA port"),
        ([ipoib(), roce_bond()], None, "some nodes have InfiniBand alone and others RoCE alone"),
        (
            [ipoib(), *[cloud_vm(n) for n in range(7)]],
            None,
            "not every node has an active RDMA port: none on n1, n2, n3, n4, n5 and 2 more",
        ),
    ],
)
def test_common_rdma(machines: list[Machine], layer: str | None, reason: str) -> None:
    fabrics = {f"n{number}": fabric(machine) for number, machine in enumerate(machines)}
    assert common_rdma(fabrics) == {"link_layer": layer, "reason": reason}


MANAGEMENT = "mlx5_8, mlx5_9, mlx5_10, mlx5_11 manage the NVSwitches"


def test_the_ports_that_manage_nvswitches_are_none_for_training() -> None:
    found = plan(hgx_b200(), hgx_b200(2))
    assert found["settings"]["NCCL_IB_HCA"] == "=" + ",".join(f"mlx5_{slot}:1" for slot in range(8))
    assert found["lines"][0].endswith(f"; left out: {MANAGEMENT}")
    # Without distances nothing else would leave them out.
    machine = hgx_b200()
    machine.gpu = {}
    assert len(ports_of(fabric(machine), "infiniband")) == 8


def test_a_machine_whose_only_infiniband_manages_nvswitches_trains_over_sockets() -> None:
    reason = "no node has an active RDMA port (mlx5_0, mlx5_1, mlx5_2, mlx5_3 manage the NVSwitches, and lead to no "
    bare = hgx_b200(hcas=0), hgx_b200(2, hcas=0)
    found = plan(*bare)
    assert found["settings"] == {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "=@IFNAME@"}
    assert found["lines"][0] == f"# {reason}other node)"
    mixed = plan(bare[0], dgx_hdr())
    assert mixed["settings"]["NCCL_IB_DISABLE"] == "1"
    assert mixed["lines"][0].startswith("# not every node has an active RDMA port: none on n0 (mlx5_0, mlx5_1, ")
    # A user who knows better is not overruled.
    own = plan(*bare, settings={"NCCL_IB_HCA": "=mlx5_0:1"})["settings"]
    assert own == {"NCCL_IB_HCA": "=mlx5_0:1", "NCCL_SOCKET_IFNAME": "=@IFNAME@"}


@pytest.mark.parametrize(
    ("release", "off"),
    [("2.25.1", 0), ("2.26.2", 1), ("2.26.5", 1), ("2.27.3", 1), ("2.27.7", 1), ("2.28.3", 0), ("2.29.7", 0), ("", 0)],
)
def test_nccls_ras_is_off_in_the_releases_in_which_it_crashes(release: str, off: int) -> None:
    found = plan(cloud_vm(), release=release)
    assert found["settings"].get("NCCL_RAS_ENABLE") == ("0" if off else None)
    if off:
        assert found["lines"][0] == (
            f"# NCCL {release} can crash in its RAS service (NVIDIA/nccl#1996, #1669), which no job needs"
        )
    assert plan(cloud_vm(), release=release, settings={"NCCL_RAS_ENABLE": ""})["settings"] == {
        "NCCL_SOCKET_IFNAME": "=@IFNAME@"
    }
    own = plan(cloud_vm(), release="2.27.5", settings={"NCCL_RAS_ENABLE": 1})
    assert own["settings"]["NCCL_RAS_ENABLE"] == "1"


@pytest.mark.parametrize(
    ("changes", "named", "rdma"),
    [
        ({}, {"NCCL_IB_HCA"}, True),
        ({"settings": {"NCCL_IB_DISABLE": 1}}, {"NCCL_IB_DISABLE"}, False),
        ({"environment": {"NCCL_IB_DISABLE": 1}}, {"NCCL_IB_DISABLE"}, False),
        ({"environment": {"NCCL_IB_DISABLE": "0"}}, {"NCCL_IB_HCA"}, True),
        ({"environment": {"NCCL_NET": "Socket"}}, {"NCCL_IB_DISABLE"}, False),
        ({"settings": {"NCCL_NET": "Socket"}}, {"NCCL_NET"}, False),
        ({"settings": {"NCCL_NET": "IB"}}, {"NCCL_NET", "NCCL_IB_HCA"}, True),
        ({"settings": {"NCCL_IB_HCA": "=mlx5_3"}}, {"NCCL_IB_HCA"}, True),
        ({"settings": {"NCCL_IB_HCA": ""}}, set(), False),
        ({"network_mode": "overlay"}, {"NCCL_IB_DISABLE"}, False),
    ],
)
def test_who_wants_sockets_gets_no_hcas(changes: dict[str, Any], named: set[str], rdma: bool) -> None:
    found = plan(dgx_hdr(), dgx_hdr(2), **changes)["settings"]
    assert set(found) == {"NCCL_SOCKET_IFNAME", *named}
    assert uses_rdma(found) is rdma


def test_of_two_layers_that_all_have_the_faster_is_used() -> None:
    machines = []
    for number in (1, 2):
        machine = roce_bond(number)
        path = "/sys/devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0"
        machine.devices.append(device("mlx5_9", path, "0", port("InfiniBand", "400 Gb/sec (4X NDR)")))
        machines.append(machine)
    found = plan(*machines)
    assert found["settings"]["NCCL_IB_HCA"] == "=mlx5_9:1"
    assert found["lines"][0].startswith("# every node has active InfiniBand ports, the faster of two kinds; ")


def test_the_underlay_of_constructed_machines() -> None:
    hosts = {f"n{number}": fabric(roce_bond(number)) for number in (1, 2)}
    found = common_underlay(hosts, ssh={"n1": "10.0.0.1", "n2": "10.0.0.2"})
    assert (found.subnet, found.interfaces["n1"], found.mtu) == ("10.20.0.0/24", "bond0.100", 9000)
    assert found.reason == "the fastest of 2 subnets that all hosts share (200 Gbit/s; 10.0.0.0/24 has 1 Gbit/s)"
    # IPoIB and its partition are equally fast, and nothing says which is meant.
    hosts = {f"n{number}": fabric(ipoib(number)) for number in (1, 2)}
    with pytest.raises(Exception, match=r"10\.40\.0\.0/24 \(ib0: 100 Gbit/s\) and 10\.41\.0\.0/24 \(ib0\.8001: 100"):
        common_underlay(hosts)
    hosts = {f"n{number}": fabric(cloud_vm(number)) for number in (1, 2)}
    assert common_underlay(hosts).reason == "the only subnet that all hosts share"


def test_time_outs_and_debug() -> None:
    found = plan(dgx_hdr(), dgx_hdr(2), timeout=120, debug="INFO")["settings"]
    assert (found["NCCL_IB_TIMEOUT"], found["NCCL_SOCKET_RETRY_CNT"], found["NCCL_DEBUG"]) == ("22", "49", "INFO")
    found = plan(cloud_vm(), timeout=120, release="2.23.4")["settings"]
    assert set(found) == {"NCCL_SOCKET_IFNAME"}  # no RDMA, and a release that does not know the retries
    assert "NCCL_SOCKET_RETRY_CNT" in plan(cloud_vm(), timeout=120, release="")["settings"]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, LONGEST_WAIT))
def test_a_time_out_is_long_enough_and_no_longer_than_need_be(seconds: int) -> None:
    timeout, retries = ib_timeout(seconds), socket_retries(seconds)
    assert 1 <= timeout <= 31
    assert 7 * 4.096e-6 * 2**timeout >= seconds
    assert timeout == 1 or 7 * 4.096e-6 * 2 ** (timeout - 1) < seconds
    assert retries * (retries + 1) / 2 * 0.1 >= seconds
    assert retries == 1 or (retries - 1) * retries / 2 * 0.1 < seconds


def test_the_users_settings_win_key_by_key_and_an_empty_one_takes_ours_out() -> None:
    given_ones = {"NCCL_IB_HCA": "", "NCCL_SOCKET_IFNAME": "=bond0", "NCCL_IB_TC": 106, "NCCL_OFI_X": "y"}
    found = plan(dgx_hdr(), dgx_hdr(2), settings=given_ones)["settings"]
    assert found == {"NCCL_SOCKET_IFNAME": "=bond0", "NCCL_IB_TC": "106", "NCCL_OFI_X": "y"}
    assert (
        plan(dgx_hdr(), network_mode="overlay", settings={"NCCL_IB_DISABLE": 0})["settings"]["NCCL_IB_DISABLE"] == "0"
    )
    assert plan(dgx_hdr(), settings={"NCCL_IB_DISABLE": "1"})["settings"] == {
        "NCCL_IB_DISABLE": "1",
        "NCCL_SOCKET_IFNAME": "=@IFNAME@",
    }


@pytest.mark.parametrize(
    ("given_ones", "release", "text"),
    [
        (
            {"NCCL_IB_DISABLE": True},
            "",
            "NCCL_IB_DISABLE 'true' is not a number, and NCCL would read it as 0; it must be a whole number from 0 to "
            "1: write 1. Remedy: correct it in nccl_env_settings",
        ),
        (
            {"NCCL_RAS_ENABLE": 0, "NCCL_IB_RETRY_CNT": 8},
            "2.21.5",
            "NCCL_RAS_ENABLE is supported by NCCL from 2.24 on, but the image has 2.21.5; NCCL_IB_RETRY_CNT '8' is "
            "not a whole number from 0 to 7. Remedy: correct it in nccl_env_settings",
        ),
    ],
)
def test_bad_settings_are_refused_by_the_release_of_the_image(
    given_ones: dict[str, Any], release: str, text: str
) -> None:
    with pytest.raises(NcclError) as error:
        plan(cloud_vm(), settings=given_ones, release=release)
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("value", "exact", "missing"),
    [
        ("=bond9", False, ["bond9"]),
        ("bond", False, []),
        ("=bond", False, ["bond"]),
        ("=bond0,eth9", False, ["eth9"]),
        ("^docker,lo", False, []),
        ("bond0", True, []),
        ("bond", True, ["bond"]),
        ("=@IFNAME@", False, []),
        ("", False, []),
    ],
)
def test_unknown_interfaces(value: str, exact: bool, missing: list[str]) -> None:
    assert unknown_interfaces(value, ["lo", "bond0"], exact=exact) == missing


def test_the_page_says_what_is_reported() -> None:
    page = (Path(__file__).parents[5] / "docs/fabric.md").read_text(encoding="utf-8")
    fast = fabric(roce_bond()), fabric(roce_bond(2))
    assert common_underlay(dict(zip("ab", fast))).reason in page
    assert common_rdma(dict(zip("ab", fast)))["reason"] in page
    names = ["lo", "eno1", "bond0"]
    known = {"interfaces": [{"name": name} for name in names]}
    reported = [
        complaint("NCCL_IB_DISABLE", True),
        complaint("NCCL_RAS_ENABLE", 1, (2, 21, 5)),
        *(problem.text for problem in check_interfaces({"a": known}, {"NCCL_SOCKET_IFNAME": {"a": "=bond9"}})),
        *(
            problem.text
            for problem in check_settings({"nccl_env_settings": {"NCCL_SOCKET_IFNAME": "bond0"}}, "overlay")
        ),
        *(problem.text for problem in check_settings({"nccl_env_settings": {"NCCL_IB_TIMOUT": "1"}}, "overlay")),
        *(problem.text for problem in check_settings({"nccl_env_environment": {"NCCL_NET": "IB"}}, "overlay")),
    ]
    assert len(reported) == 6
    assert [text for text in reported if f"`{text}`" not in page] == []
    assert "`'32' is not a whole number from 0 to 31`" in page
    assert str(complaint("NCCL_IB_TIMEOUT", 32)).startswith("'32' is not a whole number from 0 to 31")
    assert f"gives {ib_timeout(120)} |" in page
    settings_named = set(re.findall(r"^\| `(NCCL_[A-Z_]+)` \|", page, re.MULTILINE))
    everything = plan(roce_bond(), roce_bond(2), release="2.20.5", timeout=9, debug="INFO")["settings"]
    later = plan(cloud_vm(), timeout=9)["settings"]
    overlay = plan(cloud_vm(), network_mode="overlay")["settings"]
    crashing = plan(cloud_vm(), release="2.27.5")["settings"]
    assert settings_named == {*everything, *later, *overlay, *crashing}
