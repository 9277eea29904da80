# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What NCCL says with NCCL_DEBUG=INFO: which ranks it has connected, over which network, interfaces and HCAs.

Part of the supervisor's archive: standard library, Python 3.8 or later.

The formats are those of NCCL's sources, releases 2.10.3 to 2.30.7:
src/init.cc: ``comm 0x… rank 1 nranks 4 … - Init COMPLETE``, ``Using network Socket``;
src/init.cc until 2.21, then src/transport/generic.cc: ``Connected all rings``, since 2.24 ``…, use ring PXN 0 GDR 1``;
src/transport/net_socket.cc: ``NET/Socket : Using [0]eth0:10.0.1.3<0>``;
src/transport/net_ib.cc, later net_ib/init.cc: ``NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:…``, of
merged devices (2.20 to 2.23) ``[0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .base import read_environment
from .messages import LONGEST_SETTING, MOST_DEVICES

CONF_FILE = "/etc/nccl.conf"
"""Where NCCL reads its settings if NCCL_CONF_FILE names no other file."""
LONGEST = 4096
"""Characters of a line that are read: NCCL's own longest is 2048."""

_MARK = "NCCL INFO "
# Every repetition is bounded: a rank can print what it likes.
_COMPLETE = re.compile(r"\bcomm 0x[0-9a-fA-F]{1,16} rank (\d{1,7}) nranks (\d{1,7}) .{0,400}- Init COMPLETE")
_NETWORK = re.compile(r"NCCL INFO Using network ([A-Za-z][A-Za-z0-9 _.+-]{0,38})\s{0,4}$")
_NET = re.compile(r"NCCL INFO NET/([A-Za-z]{1,20}) {0,1}: Using {1,2}(\[.{1,2100})")
_DEVICE = re.compile(r"\[\d{1,4}\](?:=\{\[\d{1,4}\])? {0,1}([A-Za-z0-9_][A-Za-z0-9_.+~-]{0,63}):(\d{0,5})")
_SETTING = re.compile(r"[\w=^,:.+~-]+", re.ASCII)


class NcclLog:
    """The ranks of one node, in one attempt of a job of ``world_size`` ranks."""

    def __init__(self, world_size: int) -> None:
        self._most = world_size
        self._size = 0
        self._ranks: set[int] = set()
        self._rings = False
        self._network = ""
        self._devices: dict[str, list[str]] = {}

    def feed(self, line: str) -> None:
        """Read a line of a rank or launcher; most are none of NCCL's."""
        place = line.find(_MARK)
        if place < 0:
            return
        reported = line[place : place + LONGEST]
        complete = _COMPLETE.search(reported)
        if complete:
            self._connected(int(complete.group(1)), int(complete.group(2)))
        elif reported.startswith(_MARK + "Connected all rings"):
            self._rings = True
        elif reported.startswith(_MARK + "Using network"):
            network = _NETWORK.match(reported)
            self._network = network.group(1).rstrip() if network else self._network
        elif reported.startswith(_MARK + "NET/"):
            self._uses(reported)

    def _connected(self, rank: int, size: int) -> None:
        """The widest communicator counts: the others are of groups within the job."""
        if rank >= size or size > self._most:
            return
        if size > self._size:
            self._size, self._ranks = size, set()
        if size == self._size:
            self._ranks.add(rank)

    def _uses(self, reported: str) -> None:
        net = _NET.match(reported)
        if not net:
            return
        kind, devices = net.group(1), _DEVICE.findall(net.group(2).split(";")[0])
        known = self._devices.setdefault(kind, []) if len(self._devices) < 8 else []
        for name, port in devices:
            named = name if kind == "Socket" else f"{name}:{port}"
            if named not in known and len(known) < MOST_DEVICES:
                known.append(named)

    def found(self) -> dict[str, Any]:
        """What is known; empty while NCCL has connected nothing, or says nothing."""
        if not self._size:
            return {}
        network, devices = self.transport()
        return {
            "size": self._size,
            "ranks": sorted(self._ranks),
            "rings": self._rings,
            "network": network,
            "devices": devices,
        }

    def transport(self) -> tuple[str, list[str]]:
        """The network that NCCL took (``Socket``, ``IB`` or a plug-in's), and its interfaces or HCAs with port.

        Without HCAs NCCL 2.28 says that it uses IB with none, before it goes on to sockets.
        """
        network = self._network or next((kind for kind, devices in self._devices.items() if devices), "")
        return network, list(self._devices.get(network, []))


def chosen(environment: Mapping[str, str]) -> dict[str, str]:
    """What NCCL's settings of this node ask for, which the role nccl_env keeps: interface and HCAs, else empty.

    Not what variables say: those are how another interface gets in.
    """
    path = environment.get("NCCL_CONF_FILE") or CONF_FILE
    try:
        settings = read_environment(path) if Path(path).is_file() else {}
    except (OSError, ValueError):
        settings = {}
    rdma = settings.get("NCCL_IB_DISABLE", "0").strip() != "1"
    return {
        "interface": _setting(settings.get("NCCL_SOCKET_IFNAME")),
        "hcas": _setting(settings.get("NCCL_IB_HCA")) if rdma else "",
    }


def _setting(value: str | None) -> str:
    text = (value or "").strip()
    return text if len(text) <= LONGEST_SETTING and _SETTING.fullmatch(text) else ""


def merged(found: Mapping[str, Mapping[str, Any]], order: Sequence[str]) -> dict[str, Any]:
    """What all nodes of a job have reported, by node in this order: for state.json."""
    if not found:
        return {}
    size = max(one["size"] for one in found.values())
    ranks = {rank for one in found.values() if one["size"] == size for rank in one["ranks"]}
    return {
        "size": size,
        "connected": len(ranks),
        "rings": all(one["rings"] for one in found.values()),
        "nodes": {
            node: {key: found[node][key] for key in ("network", "devices", "interface", "hcas")}
            for node in order
            if node in found
        },
    }
