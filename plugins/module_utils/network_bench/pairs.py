# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Pairs of nodes of a network benchmark: latency and throughput over plain TCP, and what iperf3 says.

Runs inside the containers of the benchmark, mounted beside rank.py; standard library only, Python 3.8.
Both nodes of a pair know from the plan when they meet and who begins, so that no word is needed between them. A
throughput is what arrived, counted by the one who receives: what a sender could hand to its kernel says little.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Dict, Protocol, Tuple  # noqa: UP035  # Python 3.8 evaluates an alias

PIECE = 1 << 20
"""Bytes handed over at once."""
WARM = 0.05
"""Seconds after the first byte that do not count: TCP is still finding its speed."""
TRIPS = 200
TRIP_SECONDS = 0.1
"""Latency is the median of as many round trips, or of what fits into this many seconds; at least one."""
PATIENCE = 3.0
"""Seconds for a connection between two nodes that have both reported."""
IPERF_SECONDS = 1
"""The least that iperf3 accepts."""

Found = Dict[Tuple[int, int], Dict[str, Any]]  # noqa: UP006
"""By (from, to), numbers of nodes."""


class Trouble(Exception):
    """Why a measurement cannot go on; one sentence without its full stop."""


class Store(Protocol):
    """What is used of torch's TCPStore."""

    def set(self, key: str, value: str) -> None: ...

    def get(self, key: str) -> bytes: ...

    def add(self, key: str, amount: int) -> int: ...

    def wait(self, keys: list[str], timeout: timedelta) -> None: ...

    def check(self, keys: list[str]) -> bool: ...


def together(store: Store, what: str, me: int, names: Sequence[str], patience: float) -> None:
    """Wait until all nodes have come here. Raises Trouble that names those who have not."""
    store.set(f"{what}/{me}", "here")
    if store.add(what, 1) == len(names):
        store.set(f"{what}/go", "go")
    try:
        store.wait([f"{what}/go"], timedelta(seconds=patience))
    except RuntimeError:
        missing = [name for number, name in enumerate(names) if not store.check([f"{what}/{number}"])]
        raise Trouble(f"no sign of {', '.join(missing) or 'life'} at {what} within {patience:g} s") from None


def receive(sock: socket.socket, seconds: float) -> float:
    """Gbit/s of what arrives, until the sender ends or for at most this many seconds."""
    buffer = bytearray(PIECE)
    first = start = last = 0.0
    total = skipped = 0
    warm = False
    sock.settimeout(seconds)
    while not first or last - first < seconds:
        try:
            count = sock.recv_into(buffer)
        except OSError:  # silence, or the other end has gone: what came before still counts
            break
        if not count:
            break
        last = time.monotonic()
        total += count
        if not first:
            first, start, skipped = last, last, total
        elif not warm and last - first >= WARM:
            warm, start, skipped = True, last, total
    if last <= start:
        raise Trouble(f"only {total} bytes arrived")
    return (total - skipped) * 8 / (last - start) / 1e9


def send(sock: socket.socket, seconds: float, most: int) -> None:
    """Send for so long, at most so many bytes, and wait until the other end has done counting."""
    piece, sent, end = memoryview(bytes(PIECE)), 0, time.monotonic() + seconds
    sock.settimeout(seconds)
    with contextlib.suppress(OSError):  # a slow link: the receiver has counted enough and closed
        while sent < most and time.monotonic() < end:
            sent += sock.send(piece[: most - sent])
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(limit_of(seconds) + PATIENCE)
        sock.recv(1)


def limit_of(seconds: float) -> float:
    """Seconds for which a receiver counts: what lies in buffers needs a while on a slow link."""
    return 2 * seconds + 1


def ping(sock: socket.socket) -> float:
    """Milliseconds of a round trip of one byte, the median of many."""
    trips: list[float] = []
    end = time.monotonic() + TRIP_SECONDS
    while not trips or (len(trips) < TRIPS and time.monotonic() < end):
        begun = time.monotonic()
        sock.sendall(b"p")
        if not sock.recv(1):
            raise Trouble("the other end closed the connection")
        trips.append(time.monotonic() - begun)
    sock.sendall(b"e")
    return statistics.median(trips) * 1000


def pong(sock: socket.socket) -> None:
    """Answer ``ping`` until its end."""
    while sock.recv(1) == b"p":
        sock.sendall(b"p")


class Pairs:
    """This node's side of every pair. ``found`` grows: latency by who asked, throughput by who received."""

    def __init__(self, me: int, address: str, store: Store, *, seconds: float, most: int) -> None:
        self._me, self._address, self._store = me, address, store
        self._seconds, self._most = seconds, most
        self.found: Found = {}
        self.floor: Found = {}
        self._listener = socket.create_server((address, 0), backlog=16)
        store.set(f"pairs/{me}", json.dumps(self._listener.getsockname()[:2]))

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def meet(self, other: int, first: bool) -> None:
        """Try this pair in both directions; the one that is named first begins."""
        for calls in (first, not first):
            try:
                if calls:
                    self._call(other)
                else:
                    self._answer(other)
            except (OSError, Trouble) as error:
                pair = (self._me, other) if calls else (other, self._me)
                self._note(self.found, pair, error=_words(error))

    def meet_iperf(self, other: int, first: bool) -> None:
        """The same with iperf3: who calls sends, and notes what arrived."""
        for calls in (first, not first):
            turn = (self._me, other) if calls else (other, self._me)
            key = f"iperf/{turn[0]}/{turn[1]}"
            if not calls:
                self._serve_iperf(key)
                continue
            try:
                self._note(self.floor, turn, gigabits_per_second=self._call_iperf(other, key))
            except (OSError, Trouble) as error:
                self._note(self.floor, turn, error=_words(error))
            self._store.set(f"{key}/done", "done")

    @staticmethod
    def _note(where: Found, pair: tuple[int, int], **values: Any) -> None:
        where.setdefault(pair, {}).update(values)

    def _call(self, other: int) -> None:
        host, port = json.loads(self._store.get(f"pairs/{other}"))
        try:
            sock = socket.create_connection((host, port), PATIENCE, (self._address, 0))
        except OSError as error:
            raise Trouble(f"no connection to {host} port {port}: {_words(error)}") from error
        with sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(b"%05d" % self._me)
            self._note(self.found, (self._me, other), latency_ms=ping(sock))
            send(sock, self._seconds, self._most)

    def _answer(self, other: int) -> None:
        end = time.monotonic() + PATIENCE + TRIP_SECONDS
        while time.monotonic() < end:
            self._listener.settimeout(max(0.01, end - time.monotonic()))
            try:
                sock = self._listener.accept()[0]
            except socket.timeout:  # another class than TimeoutError before Python 3.10
                break
            with sock:
                sock.settimeout(PATIENCE)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if sock.recv(5, socket.MSG_WAITALL) != b"%05d" % other:
                    continue  # somebody who came late for an earlier round, or a stranger
                pong(sock)
                rate = receive(sock, limit_of(self._seconds))
                self._note(self.found, (other, self._me), gigabits_per_second=rate)
                return
        raise Trouble(f"no one connected to {self._address}")

    def _serve_iperf(self, key: str) -> None:
        program = shutil.which("iperf3")
        server: subprocess.Popen[bytes] | None = None
        port = 0
        if program:
            with socket.create_server((self._address, 0)) as free:
                port = free.getsockname()[1]
            command = [program, "--server", "--one-off", "--bind", self._address, "--port", str(port)]
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._store.set(key, str(port))
        with contextlib.suppress(RuntimeError):
            self._store.wait([f"{key}/done"], timedelta(seconds=IPERF_SECONDS + 3 * PATIENCE))
        if server:
            server.kill()
            server.wait()

    def _call_iperf(self, other: int, key: str) -> float:
        host, dummy = json.loads(self._store.get(f"pairs/{other}"))
        port, program = int(self._store.get(key)), shutil.which("iperf3")
        if not program or not port:
            raise Trouble("the image has no iperf3")
        command = [program, "--client", host, "--port", str(port), "--bind", self._address, "--json"]
        command += ["--time", str(IPERF_SECONDS), "--connect-timeout", str(int(PATIENCE * 1000))]
        reported = ""
        for dummy in range(10):  # its server takes a moment to listen
            try:
                done = subprocess.run(
                    command, capture_output=True, check=False, timeout=IPERF_SECONDS + 2 * PATIENCE, text=True
                )
            except subprocess.TimeoutExpired:
                raise Trouble(f"iperf3 did not end within {IPERF_SECONDS + 2 * PATIENCE:g} s") from None
            try:
                answer = json.loads(done.stdout)
                if "error" not in answer:
                    return float(answer["end"]["sum_received"]["bits_per_second"]) / 1e9
                reported = str(answer["error"])
            except (ValueError, KeyError, TypeError):
                reported = " ".join((done.stdout + done.stderr).split())[-200:]
            if "refused" not in reported:
                break
            time.sleep(0.2)
        raise Trouble(f"iperf3: {reported or 'no answer'}")


def _words(error: Exception) -> str:
    """What an error says, on one line."""
    if isinstance(error, OSError):
        return str(error.strerror or error or type(error).__name__)
    return str(error)


def first_line(error: BaseException) -> str:
    """What an error says, without the trace that torch puts below it."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def iperf_version() -> str:
    """``iperf 3.12``; empty where there is none."""
    program = shutil.which("iperf3")
    if not program:
        return ""
    done = subprocess.run([program, "--version"], capture_output=True, check=False, timeout=10, text=True)
    return " ".join(done.stdout.split()[:2])
