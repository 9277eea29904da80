# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ports a node listens on, and which of them its Docker engine itself holds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .parsers import parse_sockets

ENGINE = "dockerd"
SWARM_PORTS = (2377, 7946)
"""What an engine listens on as a manager, and for the gossip among all nodes (moby, ``libnetwork/networkdb``)."""
_TABLES = {"tcp": ("/proc/net/tcp", "/proc/net/tcp6"), "udp": ("/proc/net/udp", "/proc/net/udp6")}


def listening_facts() -> dict[str, list[int]]:
    """Return the ports on which something listens."""
    return {protocol: sorted(set(_sockets(protocol).values())) for protocol in _TABLES}


def stale_swarm_ports(swarm_state: str) -> list[int]:
    """Return the swarm's ports on which an engine listens that belongs to no swarm.

    An engine that leaves a swarm tells the others for one second. Where that does not end in time it keeps the sockets
    until it is restarted ("Could not close DB: timeout waiting for leave broadcast" in its log), and cannot use the
    ports for another swarm either. Seen with 26.1.5 under load.
    """
    if swarm_state != "inactive":
        return []
    sockets = {inode: port for table in _TABLES for inode, port in _sockets(table).items() if port in SWARM_PORTS}
    if not sockets:
        return []
    held = {f"socket:[{inode}]": port for inode, port in sockets.items()}
    return sorted({held[link] for link in _links(ENGINE) if link in held})


def _sockets(protocol: str) -> dict[str, int]:
    """Return the ports of all sockets of this protocol that listen, by inode."""
    found: dict[str, int] = {}
    for table in _TABLES[protocol]:
        try:
            found.update(parse_sockets(Path(table).read_text(encoding="ascii", errors="replace"), protocol))
        except OSError:  # no IPv6
            continue
    return found


def _links(program: str) -> Iterable[str]:
    """Return what the open files of all processes of this program are. Processes may end meanwhile."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "comm").read_text(encoding="utf-8", errors="replace").strip() != program:
                continue
            handles = list((process / "fd").iterdir())
        except OSError:
            continue
        for handle in handles:
            try:
                yield str(handle.readlink())
            except OSError:
                continue
