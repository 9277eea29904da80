# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Machines that were not at hand, **constructed**, not recorded.

What ``ip`` prints follows ip-link(8) and iproute2's JSON; sysfs follows the kernel's
Documentation/ABI/stable/sysfs-class-infiniband. The big machine is like NVIDIA's DGX, and simpler: eight HCAs for GPUs,
each with one GPU on one PCIe switch, and two for storage on bridges of their own. All addresses are invented.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult

ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"


@dataclass
class Machine:
    """A host as a ``FabricIO``, and in ``gpu`` what of it ``gpu_info`` would find."""

    links: list[dict[str, Any]] = field(default_factory=list)
    routes: list[dict[str, Any]] = field(default_factory=list)
    sysfs: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: list[dict[str, Any]] = field(default_factory=list)
    paths: dict[str, str] = field(default_factory=dict)
    gpu: dict[str, Any] = field(default_factory=dict)

    def ip(self, *arguments: str) -> CommandResult | None:
        return CommandResult(0, json.dumps(self.links if "address" in arguments else self.routes))

    def interface(self, name: str) -> dict[str, Any]:
        nothing = {"speed": "", "driver": "", "hardware": False, "numa_node": "", "pci_path": "", "offloads": None}
        return {**nothing, **self.sysfs.get(name, {})}

    def infiniband(self) -> list[dict[str, Any]]:
        return self.devices

    def pci_path(self, address: str) -> str:
        return self.paths.get(address, "")


def link(name: str, cidr: str = "", *, mtu: int = 1500, kind: str = "", **more: Any) -> dict[str, Any]:
    """Return an interface as ``ip -j -d address`` prints it."""
    address, dummy, prefix = cidr.partition("/")
    info = [{"family": "inet", "local": address, "prefixlen": int(prefix), "scope": "global"}] if cidr else []
    plain = {"ifname": name, "link_type": "ether", "operstate": "UP", "mtu": mtu, "addr_info": info}
    return {**plain, **({"linkinfo": {"info_kind": kind}} if kind else {}), **more}


def mapped(address: str) -> str:
    """Return the GID that holds an IPv4 address."""
    a, b, c, d = (int(part) for part in address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}"


def port(layer: str, rate: str, *, up: bool = True, gids: list[dict[str, str]] | None = None) -> dict[str, Any]:
    state = ("4: ACTIVE", "5: LinkUp") if up else ("1: DOWN", "2: Polling")
    return {
        "port": "1",
        "state": state[0],
        "phys_state": state[1],
        "rate": rate,
        "link_layer": layer,
        "gids": gids or [],
    }


def device(name: str, path: str, node: str, only: dict[str, Any], *interfaces: str, vpd: bytes = b"") -> dict[str, Any]:
    named = {"name": name, "interfaces": list(interfaces), "numa_node": node, "pci_path": path}
    return {**named, "vpd": vpd, "ports": [only]}


def roce_gids(address: str, interface: str, first: int = 0) -> list[dict[str, str]]:
    """Return the GID table of a RoCE port as mlx5 fills it: v1 and v2, link-local and then of the IPv4 address."""
    gids = ("fe80:0000:0000:0000:0e42:a1ff:fe00:0001", mapped(address))
    kinds = ("IB/RoCE v1", "RoCE v2")
    found = [(gid, kind) for gid in gids for kind in kinds]
    return [
        {"index": str(first + number), "gid": gid, "type": kind, "interface": interface}
        for number, (gid, kind) in enumerate(found)
    ]


HDR = "200 Gb/sec (4X HDR)"


def dgx_hdr(number: int = 1) -> Machine:
    """Eight GPUs; eight InfiniBand HDR ports, each on a switch with one GPU; two more for storage, IPoIB on one."""
    machine = Machine(
        links=[link("eno1", f"10.0.0.{number}/24"), link("ibs0", f"10.9.0.{number}/24", mtu=2044)],
        routes=[{"dst": "default", "gateway": "10.0.0.254", "dev": "eno1"}],
        sysfs={"eno1": {"speed": "1000", "driver": "igb", "hardware": True}},
    )
    machine.links[1]["link_type"] = "infiniband"
    gid = {"index": "0", "gid": "fe80:0000:0000:0000:b83f:d203:0010:0001", "type": "IB/RoCE v1", "interface": ""}
    for slot in range(8):
        node, root = slot // 4, f"pci0000:{slot:x}0"
        switch = f"/sys/devices/{root}/0000:{slot:x}0:01.0/0000:{slot:x}1:00.0"
        machine.paths[f"0000:{slot:x}3:00.0"] = f"{switch}/0000:{slot:x}2:00.0/0000:{slot:x}3:00.0"
        path = f"{switch}/0000:{slot:x}2:01.0/0000:{slot:x}4:00.0"
        machine.devices.append(device(f"mlx5_{slot}", path, str(node), port("InfiniBand", HDR, gids=[gid])))
    for slot in range(2):
        path = f"/sys/devices/pci0000:a{slot}/0000:a{slot}:01.0/0000:b{slot}:00.0"
        more = ("ibs0",) if slot == 0 else ()
        storage = device(f"mlx5_{8 + slot}", path, str(slot), port("InfiniBand", HDR, gids=[gid]), *more)
        machine.devices.append(storage)
    addresses = sorted(machine.paths)
    machine.gpu = {
        "pci_devices": [{"address": address, "numa_node": slot // 4} for slot, address in enumerate(addresses)],
        "gpus": [{"address": address, "index": slot} for slot, address in enumerate(addresses)],
        "topology": None,
    }
    return machine


NDR = "400 Gb/sec (4X NDR)"

SWITCH_VPD = b"\x82\x0f\x00NVLink bridge  \x90\x14\x00SN\x04AB01VA\x0bSMDL=SW_MNG\x78"
"""Vital Product Data of a device that manages NVSwitches; the field ``SMDL=SW_MNG`` is as lspci shows it."""


def hgx_b200(number: int = 1, hcas: int = 8) -> Machine:
    """Eight GPUs, each on one PCIe switch with an InfiniBand NDR port; after these, four devices of the NVSwitches.

    The order of names, the active ports and their link layer are as siderolabs/extensions#893 reports them.
    """
    machine = dgx_hdr(number)
    machine.devices = [
        {**one, "ports": [port("InfiniBand", NDR)], "vpd": b"\x82\x06\x00CX-7  \x78"} for one in machine.devices[:hcas]
    ]
    for slot in range(4):
        path = f"/sys/devices/pci0000:c0/0000:c0:01.0/0000:c1:00.{slot}"
        machine.devices.append(device(f"mlx5_{hcas + slot}", path, "1", port("InfiniBand", NDR), vpd=SWITCH_VPD))
    return machine


def roce_bond(number: int = 1, first: int = 0) -> Machine:
    """Two ports of one card in a bond (RoCE LAG: one RDMA device), the training subnet on a VLAN of it; four GPUs."""
    vlan = link("bond0.100", f"10.20.0.{number}/24", mtu=9000, kind="vlan", link="bond0")
    machine = Machine(
        links=[
            link("eno1", f"10.0.0.{number}/24"),
            link("ens1f0np0", mtu=9000, master="bond0"),
            link("ens1f1np1", mtu=9000, master="bond0"),
            link("bond0", mtu=9000, kind="bond"),
            vlan,
        ],
        routes=[{"dst": "default", "gateway": "10.0.0.254", "dev": "eno1"}],
        sysfs={
            "eno1": {"speed": "1000", "driver": "igb", "hardware": True},
            "ens1f0np0": {"speed": "100000", "driver": "mlx5_core", "hardware": True, "numa_node": "0"},
            "ens1f1np1": {"speed": "100000", "driver": "mlx5_core", "hardware": True, "numa_node": "0"},
            "bond0": {"speed": "200000"},
        },
    )
    path = "/sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0"
    gids = roce_gids(f"10.20.0.{number}", "bond0.100", first)
    machine.devices = [
        device("mlx5_bond_0", path, "0", port("Ethernet", "200 Gb/sec (4X HDR)", gids=gids), "ens1f0np0", "ens1f1np1")
    ]
    roots = {"0000:1a:00.0": "16", "0000:1b:00.0": "16", "0000:b1:00.0": "b0", "0000:b2:00.0": "b0"}
    machine.paths = {a: f"/sys/devices/pci0000:{root}/0000:{root}:04.0/{a}" for a, root in roots.items()}
    machine.gpu = {
        "pci_devices": [{"address": a, "numa_node": int(root == "b0")} for a, root in roots.items()],
        "gpus": [{"address": a, "index": index} for index, a in enumerate(roots)],
        "topology": None,
    }
    return machine


def cloud_vm(number: int = 1) -> Machine:
    """One virtio card that tells no speed, and no RDMA."""
    return Machine(
        links=[link("ens5", f"172.31.16.{number}/20", mtu=9001)],
        routes=[{"dst": "default", "gateway": "172.31.16.254", "dev": "ens5", "metric": 100}],
        sysfs={
            "ens5": {
                "speed": "-1",
                "driver": "virtio_net",
                "hardware": True,
                "pci_path": "/sys/devices/pci0000:00/0000:00:05.0/virtio2",
            }
        },
    )


def ipoib(number: int = 1) -> Machine:
    """InfiniBand that is used by IP over it: ib0 on a port, ib0.8001 on a partition of it; neither tells a speed."""
    infiniband = {"link_type": "infiniband"}
    machine = Machine(
        links=[
            link("eno1", f"10.0.0.{number}/24"),
            link("ib0", f"10.40.0.{number}/24", mtu=2044, **infiniband),
            link("ib0.8001", f"10.41.0.{number}/24", mtu=2044, kind="ipoib", link="ib0", **infiniband),
        ],
        routes=[{"dst": "default", "gateway": "10.0.0.254", "dev": "eno1"}],
        sysfs={"eno1": {"speed": "25000", "driver": "bnxt_en", "hardware": True}, "ib0": {"hardware": True}},
    )
    path = "/sys/devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0"
    machine.devices = [device("mlx5_0", path, "0", port("InfiniBand", "100 Gb/sec (4X EDR)"), "ib0")]
    return machine
