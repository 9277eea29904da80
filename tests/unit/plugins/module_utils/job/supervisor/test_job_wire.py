# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One connection between supervisors: what waits is bounded, and a handshake is read in whole parts."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import wire as module
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.wire import Wire

KEY = b"k" * 32


@pytest.fixture
def pair() -> Iterator[tuple[Wire, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    yield Wire(ours, 0.0), theirs
    ours.close()
    theirs.close()


def test_a_part_of_the_handshake_is_taken_when_it_is_whole(pair: tuple[Wire, socket.socket]) -> None:
    wire, theirs = pair
    theirs.sendall(b"abc")
    assert wire.take(5) == b""
    theirs.sendall(b"defgh")
    assert (wire.take(5), wire.take(5)) == (b"abcde", b"")
    theirs.sendall(b"ij")
    assert wire.take(5) == b"fghij"


def test_an_end_that_reads_nothing_costs_its_connection_and_no_more_memory(
    pair: tuple[Wire, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, dummy = pair
    monkeypatch.setattr(module, "WAITING_MOST", 100_000)
    wire.secure(KEY, KEY, 0.0)
    for _number in range(1000):
        wire.send({"t": "list", "folder": "/" + "x" * 1000})
    assert not wire.alive and wire.problem == "more is to be sent than a channel carries"
    assert len(wire._out) < 110_000


def test_lines_that_wait_too_long_are_left_out_and_the_connection_stays(
    pair: tuple[Wire, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, dummy = pair
    monkeypatch.setattr(module, "WAITING", 50_000)
    wire.secure(KEY, KEY, 0.0)
    for _number in range(1000):
        wire.send({"t": "lines", "lines": [[0, "x" * 1000]]})
    assert wire.alive and len(wire._out) < 60_000
