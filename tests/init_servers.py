# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Invented servers as init sees them: their facts, host keys and a folder's texts."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.host_keys import HostKey, parse_keys
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.servers import Server
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.texts import Setup
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.init.writing import Given

ROOT = Path(__file__).parents[1]
H100 = "NVIDIA H100 80GB HBM3"


def interface(name: str, address: str, speed: int | None, prefix: int = 24) -> dict[str, Any]:
    octets = address.split(".")
    subnet = f"{'.'.join(octets[:3])}.0/{prefix}" if prefix < 32 else f"{address}/32"
    entry = {"address": address, "prefix": prefix, "subnet": subnet, "family": "inet", "scope": "global"}
    return {"name": name, "mtu": 1500, "state": "up", "kind": "physical", "speed_mbps": speed, "addresses": [entry]}


def infiniband() -> dict[str, Any]:
    port = {"port": 1, "state": "active", "physical_state": "linkup", "rate_gbps": 200.0, "link_layer": "infiniband"}
    return {
        "name": "mlx5_0",
        "switch_management": False,
        "interfaces": [],
        "gpu_distances": {},
        "numa_node": 0,
        "ports": [{**port, "gids": []}],
    }


def facts(
    number: int,
    *,
    speed: int | None = None,
    address: str = "",
    fast: int | None = None,
    rdma: bool = False,
    gpus: int = 0,
    hostname: str = "",
    machine: str = "",
    environment: str = "",
    mounts: str = "",
    firewall: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the facts of server ``number``: ``fast`` is the speed of a second interface in 10.9.0.0/24."""
    interfaces = [interface("eth0", address or f"10.0.0.{number}", speed)]
    if fast:
        interfaces.append(interface("eth1", f"10.9.0.{number}", fast))
    texts = {"/etc/machine-id": machine or f"{number:032x}", "/etc/environment": environment, "/proc/mounts": mounts}
    return {
        "system": {"hostname": hostname or f"srv{number}"},
        "gpu": {"gpus": [{"name": H100} for dummy in range(gpus)], "pci_devices": []},
        "fabric": {
            "interfaces": interfaces,
            "routes": [],
            "default_interface": "eth0",
            "infiniband": [infiniband()] if rdma else [],
        },
        "firewall": {"active": list(firewall)},
        "files": {path: {"exists": True, "content": text} for path, text in texts.items()},
    }


def server(number: int, **more: Any) -> Server:
    return Server(f"10.0.0.{number}", **{"user": "ubuntu", **more})


def host_key(name: str, seed: str = "") -> HostKey:
    """Return a key of the right form, of ``seed`` or else of the name."""
    raw = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + (seed or name).encode().ljust(32, b".")[:32]
    (key,) = parse_keys(f"{name} ssh-ed25519 {base64.b64encode(raw).decode()}")
    return key


def given(*servers: Server, of: dict[int, dict[str, Any]] | None = None, **more: Any) -> Given:
    """Return what init knows of these servers; ``of`` has facts by the last number of the address."""
    numbers = {one.label: int(one.address.rpartition(".")[2]) for one in servers}
    return Given(
        servers=servers,
        facts={label: (of or {}).get(number) or facts(number) for label, number in numbers.items()},
        keys=[host_key(one.address) for one in servers],
        setup=more.pop("setup", Setup()),
        release="1.0.0",
        schema="{}\n",
        job=(ROOT / "examples/digits/vars.yml").read_text(encoding="utf-8"),
        script="print('train')\n",
        **more,
    )
