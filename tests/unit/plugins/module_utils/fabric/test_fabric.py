# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""fabric_info's logic and its one place of input. ``fixtures/fabric`` is recorded; what is invented here says so."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric import host_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.interfaces import (
    default_interface,
    gather_fabric,
    interface_of,
    parse_interfaces,
    parse_routes,
    parse_speed,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.offloads_io import WANTED, Features
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.rdma import VPD_LONGEST
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

RECORDED = Path(__file__).parents[1] / "fixtures/fabric"
ADDRESS_CALL = ("-j", "-d", "address", "show")
ROUTE_CALL = ("-j", "-4", "route", "show", "table", "all")


class FakeFabricIO:
    """A host from texts; ``None`` for an answer is a host without ``ip``."""

    def __init__(
        self,
        address: CommandResult | str | None = "[]",
        route: CommandResult | str | None = "[]",
        sysfs: dict[str, dict[str, Any]] | None = None,
        infiniband: list[dict[str, Any]] | None = None,
    ) -> None:
        self._answers = {ADDRESS_CALL: address, ROUTE_CALL: route}
        self._sysfs, self._infiniband = sysfs or {}, infiniband or []
        self.calls: list[tuple[str, ...]] = []

    def ip(self, *arguments: str) -> CommandResult | None:
        self.calls.append(arguments)
        answer = self._answers[arguments]
        return CommandResult(0, answer) if isinstance(answer, str) else answer

    def interface(self, name: str) -> dict[str, Any]:
        return self._sysfs.get(name, {"speed": "", "driver": "", "hardware": False})

    def infiniband(self) -> list[dict[str, Any]]:
        return self._infiniband

    def pci_path(self, address: str) -> str:
        return ""


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


@pytest.fixture
def host() -> FakeFabricIO:
    """The recorded host, with the speeds that its sysfs had."""
    sysfs = {
        "eth0": {
            "speed": "10000",
            "driver": "veth",
            "hardware": False,
            "offloads": {"tx-udp_tnl-segmentation": True},
        }
    }
    return FakeFabricIO(recorded("lab_host_address.json"), recorded("lab_host_route.json"), sysfs)


def test_interfaces_of_a_recorded_host(host: FakeFabricIO) -> None:
    found = {interface["name"]: interface for interface in gather_fabric(host)["interfaces"]}
    assert list(found) == ["lo", "peer0", "eth0", "peer1", "eth1", "br-3f2a", "veth9c8d", "veth1a2b", "vx0"]
    mac = found["eth0"].pop("mac")
    assert len(mac.split(":")) == 6
    assert [entry["family"] for entry in found["eth0"]["addresses"]] == ["inet", "inet6"]
    assert found["eth0"].pop("addresses")[0] == {
        "address": "10.0.5.11",
        "prefix": 24,
        "subnet": "10.0.5.0/24",
        "family": "inet",
        "scope": "global",
    }
    assert found["eth0"] == {
        "name": "eth0",
        "mtu": 1500,
        "state": "up",
        "kind": "veth",
        "parent": None,
        "master": None,
        "members": [],
        "speed_mbps": 10000,
        "driver": "veth",
        "pci_address": None,
        "numa_node": None,
        "offloads": {"tx-udp_tnl-segmentation": True},
    }
    assert found["br-3f2a"]["members"] == ["veth1a2b"]
    assert (found["lo"]["kind"], found["lo"]["state"], found["lo"]["speed_mbps"]) == ("loopback", "unknown", None)
    assert (found["eth1"]["mtu"], found["eth1"]["addresses"][0]["subnet"]) == (9000, "172.20.0.0/16")
    assert (found["br-3f2a"]["kind"], found["veth1a2b"]["master"]) == ("bridge", "br-3f2a")
    assert (found["vx0"]["kind"], found["vx0"]["parent"], found["vx0"]["state"]) == ("vxlan", "eth1", "down")


def test_routes_of_a_recorded_host(host: FakeFabricIO) -> None:
    found = gather_fabric(host)
    assert found["routes"] == [
        {"dst": "10.70.0.0/16", "dev": "eth0", "gateway": "10.0.5.9", "metric": 0, "table": "100"},
        {"dst": "default", "dev": "eth1", "gateway": "172.20.0.1", "metric": 50, "table": "main"},
        {"dst": "default", "dev": "eth0", "gateway": "10.0.5.1", "metric": 100, "table": "main"},
        {"dst": "10.0.5.0/24", "dev": "eth0", "gateway": None, "metric": 0, "table": "main"},
        {"dst": "10.50.0.0/16", "dev": "eth0", "gateway": "10.0.5.2", "metric": 0, "table": "main"},
        {"dst": "10.60.1.1/32", "dev": "eth0", "gateway": "10.0.5.1", "metric": 0, "table": "main"},
        {"dst": "10.99.0.0/16", "dev": None, "gateway": None, "metric": 0, "table": "main"},
        {"dst": "172.18.0.0/16", "dev": "br-3f2a", "gateway": None, "metric": 0, "table": "main"},
        {"dst": "172.20.0.0/16", "dev": "eth1", "gateway": None, "metric": 0, "table": "main"},
    ]
    assert found["default_interface"] == "eth1"
    assert found["problems"] == []
    assert host.calls == [ADDRESS_CALL, ROUTE_CALL]


def test_a_bonded_vlan_on_a_big_server() -> None:
    """Invented after ip-link(8): the keys that iproute2 gives bonds, their members and VLANs."""
    links = [
        {"ifname": "ens1f0", "link_type": "ether", "operstate": "UP", "mtu": 9000, "master": "bond0"},
        {"ifname": "bond0", "link_type": "ether", "operstate": "UP", "mtu": 9000, "linkinfo": {"info_kind": "bond"}},
        {"ifname": "bond0.100", "link": "bond0", "operstate": "UP", "mtu": 9000, "linkinfo": {"info_kind": "vlan"}},
        {"ifname": "ib0", "link_type": "infiniband", "operstate": "UP", "mtu": 2044},
        {"ifname": "tun0", "link_type": "none", "operstate": "UNKNOWN", "mtu": 1420},
        {},
    ]
    sysfs = {
        "ens1f0": {"speed": "100000", "driver": "mlx5_core", "hardware": True},
        "bond0": {"speed": "200000", "driver": "", "hardware": False},
    }
    found = {interface["name"]: interface for interface in parse_interfaces(links, sysfs)}
    picked = {name: (entry["kind"], entry["parent"], entry["master"]) for name, entry in found.items()}
    assert picked == {
        "ens1f0": ("physical", None, "bond0"),
        "bond0": ("bond", None, None),
        "bond0.100": ("vlan", "bond0", None),
        "ib0": ("infiniband", None, None),
        "tun0": ("virtual", None, None),
    }
    assert (found["ens1f0"]["driver"], found["bond0"]["driver"]) == ("mlx5_core", None)
    assert (found["bond0"]["speed_mbps"], found["tun0"]["speed_mbps"]) == (200000, None)


@pytest.mark.parametrize(
    ("text", "speed"),
    [("100000", 100000), ("-1", None), ("0", None), ("4294967295", None), ("", None), ("fast", None)],
)
def test_parse_speed(text: str, speed: int | None) -> None:
    assert parse_speed(text) == speed


@pytest.mark.parametrize(
    ("routes", "expected"),
    [
        ([], None),
        ([{"dst": "10.0.0.0/8", "dev": "eth0"}], None),
        ([{"dst": "default", "dev": "eth1", "metric": 100}, {"dst": "default", "dev": "eth0"}], "eth0"),
        ([{"dst": "default", "dev": "eth1"}, {"dst": "default", "dev": "eth0"}], "eth1"),
        ([{"dst": "default", "dev": "wg0", "table": "51820"}, {"dst": "default", "dev": "eth0", "metric": 9}], "eth0"),
        ([{"type": "unreachable", "dst": "default", "metric": 4294967295}], None),
        ([{"dst": "default", "nexthops": [{"dev": "eth3", "gateway": "10.0.0.1"}, {"dev": "eth4"}]}], "eth3"),
    ],
)
def test_default_interface(routes: list[dict[str, Any]], expected: str | None) -> None:
    assert default_interface(parse_routes(routes)) == expected


@pytest.mark.parametrize(
    ("answer", "problem", "calls"),
    [
        (None, "The command ip is not installed, so addresses and routes are unknown. Install iproute2.", 1),
        (
            CommandResult(255, "", 'Option "-j" is unknown, try "ip -help".\n'),
            "'ip -j -d address show' ended with status 255 and printed: "
            'Option "-j" is unknown, try "ip -help". Run it on this host.',
            1,
        ),
        (
            "1: lo: <LOOPBACK,UP>",
            "'ip -j -d address show' did not answer in JSON but: 1: lo: <LOOPBACK,UP>. "
            "It needs iproute2 4.19 or later, not BusyBox's ip.",
            1,
        ),
        (
            '{"a": 1}',
            "'ip -j -d address show' did not answer in JSON but: {\"a\": 1}. "
            "It needs iproute2 4.19 or later, not BusyBox's ip.",
            1,
        ),
    ],
    ids=["no-ip", "old-ip", "no-json", "no-list"],
)
def test_what_cannot_be_read_is_a_problem_and_the_rest_is_still_there(
    answer: CommandResult | str | None, problem: str, calls: int
) -> None:
    device = {"name": "mlx5_0", "interfaces": [], "numa_node": "0", "pci_path": "", "vpd": b"", "ports": []}
    io = FakeFabricIO(answer, recorded("lab_host_route.json"), infiniband=[device])
    found = gather_fabric(io)
    assert found["problems"] == [problem]
    assert (found["interfaces"], found["routes"], found["default_interface"]) == ([], [], None)
    assert [entry["name"] for entry in found["infiniband"]] == ["mlx5_0"]
    assert len(io.calls) == calls


def test_routes_that_cannot_be_read_leave_the_interfaces() -> None:
    found = gather_fabric(FakeFabricIO(recorded("lab_host_address.json"), CommandResult(2, "", "Error: no table")))
    assert len(found["interfaces"]) == 9
    assert found["problems"] == [
        "'ip -j -4 route show table all' ended with status 2 and printed: Error: no table. Run it on this host."
    ]


def test_no_output_at_all_means_none() -> None:
    found = gather_fabric(FakeFabricIO("", "\n"))
    assert (found["interfaces"], found["routes"], found["problems"]) == ([], [], [])


@pytest.mark.parametrize(
    ("subnet", "name"),
    [
        ("10.0.5.0/24", "eth0"),
        ("10.0.0.0/8", "eth0"),
        ("172.20.1.0/24", "eth1"),
        ("172.16.0.0/12", "eth1"),
        ("10.0.6.0/24", None),
        ("::1/128", "lo"),
    ],
)
def test_interface_of(host: FakeFabricIO, subnet: str, name: str | None) -> None:
    assert interface_of(gather_fabric(host)["interfaces"], subnet) == name


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.ip_addresses(v=4), st.integers(0, 32)), max_size=5))
def test_an_interface_is_found_by_each_subnet_it_is_said_to_be_in(addresses: list[tuple[Any, int]]) -> None:
    info = [{"family": "inet", "local": str(address), "prefixlen": prefix} for address, prefix in addresses]
    interfaces = parse_interfaces([{"ifname": "eth0", "addr_info": info}], {})
    for (address, prefix), entry in zip(addresses, interfaces[0]["addresses"], strict=True):
        assert entry["subnet"] == str(ipaddress.ip_interface(f"{address}/{prefix}").network)
        assert interface_of(interfaces, entry["subnet"]) == "eth0"


def test_system_io_reads_a_tree(tmp_path: Path) -> None:
    pci = tmp_path / "devices/0000:17:00.0"
    port = pci / "infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    texts = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "100 Gb/sec (4X EDR)", "link_layer": "InfiniBand"}
    for name, text in texts.items():
        (port / name).write_text(f"{text}\n", encoding="utf-8")
    (pci / "numa_node").write_text("0\n", encoding="utf-8")
    (pci / "net/ib0").mkdir(parents=True)
    (pci / "driver").symlink_to("../../bus/pci/drivers/mlx5_core")
    (pci / "infiniband/mlx5_0/device").symlink_to(pci)
    net, infiniband = tmp_path / "sys/class/net", tmp_path / "sys/class/infiniband"
    (net / "eth0").mkdir(parents=True)
    (net / "eth0/speed").write_text("25000\n", encoding="utf-8")
    (net / "eth0/device").symlink_to(pci)
    infiniband.mkdir()
    (infiniband / "mlx5_0").symlink_to(pci / "infiniband/mlx5_0")

    gids = {
        0: ("fe80:0000:0000:0000:b83f:d203:0010:0001", "IB/RoCE v1", ""),
        2: ("0000:0000:0000:0000:0000:ffff:0a14:000b", "RoCE v2", "ib0"),
        10: ("0000:0000:0000:0000:0000:0000:0000:0000", "", ""),
    }
    for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (port / folder).mkdir(parents=True)
    for number, (gid, kind, device) in gids.items():
        (port / f"gids/{number}").write_text(f"{gid}\n", encoding="utf-8")
        if kind:
            (port / f"gid_attrs/types/{number}").write_text(f"{kind}\n", encoding="utf-8")
        if device:
            (port / f"gid_attrs/ndevs/{number}").write_text(f"{device}\n", encoding="utf-8")
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:17:00.0").symlink_to(pci)

    io = host_io.SystemFabricIO(str(tmp_path))
    found = io.interface("eth0")
    assert isinstance(found.pop("offloads"), (dict, type(None)))  # the running kernel's
    assert found == {
        "speed": "25000",
        "driver": "mlx5_core",
        "hardware": True,
        "numa_node": "0",
        "pci_path": str(pci),
    }
    assert {**io.interface("lo"), "offloads": None} == {
        "speed": "",
        "driver": "",
        "hardware": False,
        "numa_node": "",
        "pci_path": "",
        "offloads": None,
    }
    reported = [
        {"index": "0", "gid": gids[0][0], "type": "IB/RoCE v1", "interface": ""},
        {"index": "2", "gid": gids[2][0], "type": "RoCE v2", "interface": "ib0"},
    ]
    assert io.infiniband() == [
        {
            "name": "mlx5_0",
            "interfaces": ["ib0"],
            "numa_node": "0",
            "pci_path": str(pci),
            "vpd": b"",
            "ports": [{"port": "1", **texts, "gids": reported}],
        }
    ]
    (pci / "vpd").write_bytes(b"\xff" * VPD_LONGEST + b"SW_MNG")
    assert io.infiniband()[0]["vpd"] == b"\xff" * VPD_LONGEST
    (port / "link_layer").write_text("Ethernet\n", encoding="utf-8")
    assert io.infiniband()[0]["vpd"] == b""
    assert (io.pci_path("0000:17:00.0"), io.pci_path("0000:99:00.0")) == (str(pci), "")


def test_system_io_on_this_host() -> None:
    """The real ``ip``, where it is: whatever machine this is, it has a loopback."""
    answer = host_io.SystemFabricIO().ip(*ADDRESS_CALL)
    if answer is None:
        pytest.skip("no ip on this machine")
    assert answer.rc == 0
    assert "lo" in [entry.get("ifname") for entry in json.loads(answer.stdout)]


def test_system_io_without_ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_io, "find_program", lambda name: None)
    io = host_io.SystemFabricIO(str(tmp_path))
    assert (io.ip("-j", "address"), io.infiniband()) == (None, [])


def test_offloads_of_this_kernel() -> None:
    """The real kernel, whatever machine this is: it tells of the loopback, which segments TCP itself."""
    features = Features()
    found = features.of("lo")
    if found is None:
        pytest.skip("this kernel does not tell features (a sandbox's own network)")
    assert set(found) <= set(WANTED)
    assert found["tx-tcp-segmentation"] is True
    assert features.of("lo") == found
    assert features.of("nope0") is None
    assert features.of("a-name-that-is-too-long") is None
