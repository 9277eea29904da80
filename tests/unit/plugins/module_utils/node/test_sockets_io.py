# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What listens on a node, over tables like the kernel's, and over sockets of this process."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.node import sockets_io

HEAD = "  sl local rem st\n"
LINE = "  0: 00000000:{port:04X} 00000000:0000 {state} 0:0 0:0 0 0 0 {inode}\n"


def test_listening_joins_both_families(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, port, state in (("tcp", 2222, "0A"), ("tcp6", 22, "0A"), ("udp", 4789, "07")):
        (tmp_path / name).write_text(HEAD + LINE.format(port=port, state=state, inode=port))
    tables = {name: (str(tmp_path / name), str(tmp_path / f"{name}6")) for name in ("tcp", "udp")}
    monkeypatch.setattr(sockets_io, "_TABLES", tables)
    assert sockets_io.listening_facts() == {"tcp": [22, 2222], "udp": [4789]}


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_ports_that_the_engine_has_kept(monkeypatch: pytest.MonkeyPatch, kind: socket.SocketKind) -> None:
    """This process stands in for the engine, with a port of its own for the swarm's."""
    monkeypatch.setattr(sockets_io, "ENGINE", Path("/proc/self/comm").read_text(encoding="utf-8").strip())
    with socket.socket(socket.AF_INET, kind) as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        if kind == socket.SOCK_STREAM:
            held.listen()
        monkeypatch.setattr(sockets_io, "SWARM_PORTS", (port,))
        assert sockets_io.stale_swarm_ports("inactive") == [port]
        assert sockets_io.stale_swarm_ports("active") == []  # they are the swarm's
        monkeypatch.setattr(sockets_io, "ENGINE", "another")
        assert sockets_io.stale_swarm_ports("inactive") == []  # somebody else's
    monkeypatch.setattr(sockets_io, "ENGINE", Path("/proc/self/comm").read_text(encoding="utf-8").strip())
    assert sockets_io.stale_swarm_ports("inactive") == []
