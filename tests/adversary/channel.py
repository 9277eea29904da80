# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A leader, its followers and an attacker, over real sockets on the loopback interface; time is a counter."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.channel import Hub
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.link import Link

SECRET = b"s" * 32
RUN = "digits/1/now"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lines(*texts: str) -> dict[str, Any]:
    """A message as followers send it."""
    return {"t": "lines", "lines": [[1, text] for text in texts]}


class Proxy:
    """Who is on the path between a follower and the leader. What goes by passes through ``to_leader`` and
    ``to_follower``: a chunk in, the chunks that go on out."""

    def __init__(self, port: int) -> None:
        self._leader = ("127.0.0.1", port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setblocking(False)
        self.port = int(self._server.getsockname()[1])
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.to_leader: Callable[[bytes], list[bytes]] = lambda chunk: [chunk]
        self.to_follower: Callable[[bytes], list[bytes]] = lambda chunk: [chunk]

    def pass_on(self, chunk: bytes) -> list[bytes]:
        return [chunk]

    def turn(self) -> None:
        with contextlib.suppress(BlockingIOError):
            near, _address = self._server.accept()
            far = socket.create_connection(self._leader)
            for end in (near, far):
                end.setblocking(False)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pairs.append((near, far))
        for near, far in list(self.pairs):
            if not (self._pump(near, far, self.to_leader) and self._pump(far, near, self.to_follower)):
                self.pairs.remove((near, far))
                near.close()
                far.close()

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket, change: Callable[[bytes], list[bytes]]) -> bool:
        try:
            chunk = source.recv(65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not chunk:
            return False
        try:
            for part in change(chunk):
                target.sendall(part)
        except OSError:
            return False
        return True

    def inject(self, to_leader: bytes = b"", to_follower: bytes = b"") -> None:
        """Send forged data on the newest connection."""
        near, far = self.pairs[-1]
        for end, data in ((far, to_leader), (near, to_follower)):
            if data:
                end.sendall(data)

    def cut(self) -> None:
        """End all connections."""
        for pair in self.pairs:
            for end in pair:
                end.close()
        self.pairs.clear()

    def close(self) -> None:
        self.cut()
        self._server.close()


class Job:
    """A leader with two followers, lab2 behind a proxy and lab3 beside it, polled in turn."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        self.clock = Clock()
        self.noted: list[tuple[str, str]] = []
        self.hub = Hub(
            SECRET,
            RUN,
            ["lab2", "lab3"],
            address="127.0.0.1",
            clock=self.clock,
            addresses=addresses,
            log=lambda subject, text: self.noted.append((subject, text)),
        )
        self.proxy = Proxy(self.hub.port)
        self.link = Link(SECRET, RUN, "lab2", address="127.0.0.1", port=self.proxy.port, clock=self.clock)
        self.beside = Link(SECRET, RUN, "lab3", address="127.0.0.1", port=self.hub.port, clock=self.clock)
        self.to_leader: list[tuple[str, dict[str, Any]]] = []
        self.to_follower: list[dict[str, Any]] = []
        self.sockets: list[socket.socket] = []
        self.handle: Callable[[], None] = self._handle
        """How the leader listens; a test may put a whole supervisor there."""

    def _handle(self) -> None:
        self.to_leader += self.hub.poll()

    def stranger(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection to the leader's port by somebody who knows nothing."""
        sock = socket.create_connection(("127.0.0.1", self.hub.port), source_address=(source, 0))
        sock.setblocking(False)
        self.sockets.append(sock)
        return sock

    def turn(self) -> None:
        self.to_follower += self.link.poll()
        self.beside.poll()
        self.proxy.turn()
        self.handle()

    def turns(self, count: int = 12) -> None:
        for _turn in range(count):
            self.turn()
            time.sleep(0.001)

    def until(self, what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not what():
            assert time.monotonic() < deadline, (self.to_leader[-3:], self.to_follower[-3:], self.noted)
            self.turn()
            time.sleep(0.001)

    def together(self) -> Job:
        self.until(lambda: self.link.welcome and self.beside.welcome)
        self.turns(4)
        return self

    def goes_on(self) -> None:
        """Both followers are, or come back, and are heard."""
        self.clock.now += 1
        self.until(lambda: self.hub.connected() == ["lab2", "lab3"] and self.link.welcome and self.beside.welcome)
        before = len(self.to_leader)
        self.link.send(lines("still here"))
        self.beside.send(lines("still here"))
        self.until(lambda: len(self.to_leader) == before + 2)

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()
        self.link.close()
        self.beside.close()
        self.proxy.close()
        self.hub.close()
