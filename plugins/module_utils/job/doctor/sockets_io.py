# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Asks the kernel for TCP sockets, as the program ss does; where it does not answer, /proc/PID/net/tcp is read.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import sockets
from .processes import Proc

SECONDS = 2.0
MOST = 50000
"""Sockets that are read."""
SOCK_DIAG = 4


def sockets_by_inode(proc: Proc, pids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the TCP sockets of the network namespaces of processes."""
    own = proc.link("self", "ns", "net")
    spaces = {proc.link(pid, "ns", "net"): pid for pid in pids}
    found: dict[int, dict[str, Any]] = {}
    for space, pid in spaces.items():
        own_sockets = {}
        if space and space == own and proc.root == Path("/"):
            own_sockets = by_netlink()
        if not own_sockets:
            for name in ("tcp", "tcp6"):
                own_sockets.update(sockets.listed(proc.text(pid, "net", name)))
        found.update(own_sockets)
    return found


def by_netlink() -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    until = time.monotonic() + SECONDS
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as netlink:
                netlink.settimeout(SECONDS)
                netlink.send(sockets.request(family))
                ended = False
                while not ended and len(found) < MOST and time.monotonic() < until:
                    for kind, body in sockets.messages(netlink.recv(1 << 18)):
                        if kind != sockets.DUMP:
                            ended = True
                            break
                        one = sockets.socket_of(body)
                        if one is not None:
                            found[one[0]] = one[1]
        except OSError:  # no such family here, or it is forbidden
            continue
    return found
