# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Strangers at the port of the supervisors' channel: whatever they send costs their connection, and the job goes on."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import frames
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.channel import (
    HANDSHAKE,
    PENDING,
    RESERVED,
    Hub,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.link import Link
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.wire import ChannelLog

from tests.adversary.channel import RUN, SECRET, Clock, Job


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    made.close()


def closed(sock: socket.socket) -> bool:
    """Whether the leader has closed a connection."""
    try:
        while sock.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


STRANGE = {
    "deep nesting": b"[" * 100_000 + b"\n",
    "deep mappings": b'{"a":' * 50_000 + b"\n",
    "a proof that is not ASCII": '{"t":"hello","node":"lab2","nonce":"00","proof":"é"}\n'.encode(),
    "a lone surrogate": b'{"t":"hello","node":"\\ud800","nonce":"\\ud800","proof":"00"}\n',
    "a number of a million digits": b'{"t":' + b"9" * 1_000_000 + b"}\n",
    "not a number": b'{"t":NaN}\n',
    "a list": b"[1]\n",
    "HTTP": b"GET / HTTP/1.1\r\nHost: lab1\r\n\r\n" * 10,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)),
    "zeros": bytes(4096),
    "noise": bytes(byte * 7919 % 251 for byte in range(5000)),
    "a frame of the largest length": b"\xff\xff\xff\xff" + bytes(200),
    "a sealed frame before any proof": frames.Sealer(b"k" * 32).seal(b'{"t":"stop","reason":"x"}') + bytes(96),
    "a hello with a proof of zeros": frames.pack_hello("lab2", bytes(32), bytes(32)),
    "a hello of a node that is not of the job": frames.pack_hello("lab9", bytes(32), bytes(32)),
    "an empty line": b"\n" * 100,
}


@pytest.mark.parametrize("data", STRANGE.values(), ids=STRANGE)
def test_what_a_stranger_sends_costs_that_connection_only(job: Job, data: bytes) -> None:
    job.together()
    stranger = job.stranger()
    sent = 0
    for _turn in range(200):
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            sent += stranger.send(data[sent:]) if sent < len(data) else 0
        job.turn()
    job.clock.now += HANDSHAKE + 1
    job.until(lambda: closed(stranger))
    assert [subject for subject, _text in job.noted] == ["strangers"]
    job.goes_on()


def test_a_stream_without_an_end_is_neither_read_nor_kept(job: Job) -> None:
    job.together()
    stranger = job.stranger()
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while sent < 32 << 20:  # as much as the kernel takes
            sent += stranger.send(b"[" * 65536)
    assert sent > 1 << 20
    tracemalloc.start()
    try:
        job.turn()
        assert tracemalloc.get_traced_memory()[1] < 256 << 10
    finally:
        tracemalloc.stop()
    job.until(lambda: closed(stranger))
    job.goes_on()


@pytest.mark.parametrize("data", [b"", b"x"], ids=["half open", "slow trickle"])
def test_a_connection_that_takes_its_time_is_closed(job: Job, data: bytes) -> None:
    job.together()
    stranger = job.stranger()
    for _second in range(int(HANDSHAKE) + 2):
        with contextlib.suppress(OSError):
            stranger.send(data)
        job.turns(2)
        job.clock.now += 1
    job.until(lambda: closed(stranger))
    job.goes_on()


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_connection_that_is_gone_at_once_harms_nothing(job: Job, how: str) -> None:
    job.together()
    stranger = job.stranger()
    if how == "reset":
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stranger.close()
    job.turns()
    job.goes_on()


def test_a_flood_of_connections_is_bounded_and_followers_still_get_in(job: Job) -> None:
    job.link.poll()  # on its way before the flood
    for _number in range(PENDING + 120):
        job.stranger()
        job.turn()
    assert sum(not closed(sock) for sock in job.sockets) <= PENDING
    began = time.monotonic()
    job.turn()
    assert time.monotonic() - began < 1
    job.goes_on()


def test_who_floods_pushes_out_its_own_connections(job: Job) -> None:
    early = job.stranger("127.0.0.2")
    job.turns(2)
    for _number in range(PENDING + 50):
        job.stranger()
        job.turn()
    assert not closed(early)


@pytest.mark.parametrize("sources", [2, 50, PENDING, 5000])
def test_a_flood_from_many_addresses_keeps_no_follower_out(sources: int) -> None:
    """Between two polls of the port nearly as many connections as may wait there, each time."""
    job = Job(addresses=["127.0.0.1"])
    number = 0

    def flooded() -> None:
        nonlocal number
        for _number in range(PENDING - 8):
            number += 1
            job.stranger(f"127.1.{number % sources // 250}.{number % sources % 250 + 1}")
        job._handle()
        for stranger in job.sockets[: -2 * PENDING]:
            stranger.close()
        del job.sockets[: -2 * PENDING]

    try:
        job.handle = flooded
        for _turn in range(20):
            job.turn()
            if job.link.welcome and job.beside.welcome:
                break
        assert job.link.welcome and job.beside.welcome
        job.handle = job._handle
        job.goes_on()
    finally:
        job.close()


def test_a_nodes_own_address_has_places_of_its_own_and_no_more() -> None:
    """A process on a node fills no memory either, and keeps out that node alone."""
    job = Job(addresses=["127.0.0.2", "127.0.0.3"])
    try:
        early = job.stranger("127.0.0.3")
        for _number in range(RESERVED + 50):
            job.stranger("127.0.0.2")
            job.turn()
        assert sum(not closed(sock) for sock in job.sockets) <= RESERVED + 1
        assert not closed(early)
        job.goes_on()
    finally:
        job.close()


def test_a_proof_is_good_for_one_connection(job: Job) -> None:
    reported: list[bytes] = []
    job.proxy.to_leader = lambda chunk: reported.append(chunk) or [chunk]  # type: ignore[func-returns-value]
    job.together()
    stranger = job.stranger()
    job.turns(2)
    stranger.sendall(b"".join(reported))
    job.clock.now += HANDSHAKE + 1
    job.until(lambda: closed(stranger))
    assert job.link.greeted == 1
    job.goes_on()


def test_a_leaders_challenge_sent_back_proves_nothing(job: Job) -> None:
    job.together()
    stranger = job.stranger()
    job.turns(2)
    challenge = stranger.recv(65536)
    stranger.sendall(challenge * 4)
    job.until(lambda: closed(stranger))
    job.goes_on()


def test_strangers_are_logged_once_and_then_seldom(tmp_path: Path) -> None:
    clock = Clock()
    log = ChannelLog(tmp_path / "supervisor.log", clock)
    hub = Hub(SECRET, RUN, ["lab2"], address="127.0.0.1", clock=clock, log=log)
    try:
        for _number in range(1200):
            with socket.create_connection(("127.0.0.1", hub.port)) as stranger:
                stranger.sendall(b"x" * 200)
                hub.poll()
                clock.now += 0.1
                hub.poll()
        reported = (tmp_path / "supervisor.log").read_text().splitlines()
    finally:
        hub.close()
    assert 2 <= len(reported) <= 3  # within two minutes
    assert "A connection from 127.0.0.1 to port" in reported[0]
    assert "Remedy: " in reported[0]
    assert "more since the line before." in reported[1]
    assert sum(map(len, reported)) < 2000


def test_a_false_leader_gets_nothing_from_a_follower_but_its_proof() -> None:
    clock = Clock()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        link = Link(SECRET, RUN, "lab2", address="127.0.0.1", port=server.getsockname()[1], clock=clock)
        try:
            for answer, problem in (
                (b"[" * 100_000, "what answers at the leader's port is not a supervisor"),
                (b"", "the leader did not prove itself within 5 s"),
                (
                    frames.pack_challenge(bytes(32), 1) + bytes(64),
                    "the leader does not know the cluster's secret, or leads another run",
                ),
            ):
                clock.now += 1
                false = None
                deadline = time.monotonic() + 10
                link.problem = ""
                received = b""
                while link.problem != problem:
                    assert time.monotonic() < deadline, link.problem
                    assert link.poll() == []
                    assert not link.welcome
                    if false is None:
                        with contextlib.suppress(BlockingIOError):
                            false, _address = server.accept()
                            false.setblocking(False)
                            with contextlib.suppress(OSError):
                                false.send(answer)
                    else:
                        with contextlib.suppress(OSError):
                            received += false.recv(65536)
                        clock.now += 0.05
                    time.sleep(0.001)
                assert len(received) in {0, frames.HELLO}
                assert false is not None
                false.close()
        finally:
            link.close()


def test_random_bytes_of_random_lengths_change_nothing(job: Job) -> None:
    job.together()
    for length in (1, 3, 4, 31, 32, 39, 40, 95, 96, 97, 200, 5000):
        stranger = job.stranger()
        job.turn()
        with contextlib.suppress(OSError):
            stranger.sendall(os.urandom(length))
        job.turns(3)
    assert job.to_leader == []
    job.goes_on()
