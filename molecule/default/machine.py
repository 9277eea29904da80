"""Prints as JSON what the lab must know about the machine it is made on; changes nothing.

mtu: bytes, of the interface that carries the default route (1500 where there is none).
capabilities: names of those that a container can be given here. `--privileged` asks for all there are and fails where
  the machine's own root lacks one.
nameservers: addresses that a node can use, so none of 127.0.0.0/8.
subnet: a /24 that collides with no route of this machine and with no Docker network; null where all are taken.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import docker

POOL = ipaddress.IPv4Network("10.231.0.0/16")
# linux/capability.h, in the order of their bits, up to the last that every engine in use knows the name of.
CAPABILITIES = """
CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ
"""


def capabilities(status: str) -> list[str]:
    """The CAPABILITIES in the bounding set of a `/proc/<pid>/status`; all of them where it names no such set."""
    found = re.search(r"^CapBnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    bounding = int(found.group(1), 16) if found else -1
    return [name for bit, name in enumerate(CAPABILITIES.split()) if bounding >> bit & 1]


def routes(table: str) -> list[tuple[str, ipaddress.IPv4Network]]:
    """(interface, destination) of each line of a `/proc/net/route`, whose numbers are little-endian hexadecimal."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return [(row[0], ipaddress.IPv4Network(f"{_dotted(row[1])}/{_dotted(row[7])}")) for row in rows if len(row) > 7]


def _dotted(number: str) -> str:
    return socket.inet_ntoa(struct.pack("<I", int(number, 16)))


def nameservers(*resolv_confs: str) -> list[str]:
    """The name servers of the first text that names any outside this machine's loopback."""
    for text in resolv_confs:
        servers = [
            server for server in re.findall(r"^nameserver\s+([0-9.]+)", text, re.MULTILINE) if server[:4] != "127."
        ]
        if servers:
            return servers
    return []


def free_subnet(taken: Iterable[ipaddress.IPv4Network]) -> ipaddress.IPv4Network | None:
    """The first /24 of POOL that overlaps none of `taken`."""
    networks = list(taken)
    candidates = POOL.subnets(new_prefix=24)
    return next((subnet for subnet in candidates if not any(subnet.overlaps(network) for network in networks)), None)


def docker_subnets(networks: Iterable[dict[str, Any]]) -> list[ipaddress.IPv4Network]:
    """The IPv4 subnets in the engine's list of networks."""
    configs = [config for network in networks for config in network["IPAM"]["Config"] or []]
    subnets = [str(config["Subnet"]) for config in configs if config.get("Subnet")]
    return [ipaddress.IPv4Network(subnet) for subnet in subnets if ":" not in subnet]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def main() -> None:
    """Look and print."""
    found = routes(_read("/proc/net/route"))
    networks = docker_subnets(docker.from_env(version="auto").api.networks())
    subnet = free_subnet([network for _interface, network in found if network.prefixlen] + networks)
    uplink = next((interface for interface, network in found if network.prefixlen == 0), "none")
    print(
        json.dumps(
            {
                "mtu": int(_read(f"/sys/class/net/{uplink}/mtu") or 1500),
                "capabilities": capabilities(_read("/proc/self/status")),
                "nameservers": nameservers(_read("/etc/resolv.conf"), _read("/run/systemd/resolve/resolv.conf")),
                "subnet": str(subnet) if subnet else None,
            }
        )
    )


if __name__ == "__main__":
    main()
