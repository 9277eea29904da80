# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How the supervisors of one job talk: JSON lines over one TCP connection from each follower to the leader.

Copied into containers beside the supervisor: standard library, Python 3.8 or later. Nothing here waits or uses threads:
both ends are polled. Each end proves that it knows the cluster's secret before anything else is heard (HMAC-SHA256 over
the other end's nonce, the run and the node's name), so that nobody else on the training network can end a job or speak
for a node. What is said afterwards is not encrypted: it is log lines and beats, on the network that carries the
gradients in clear as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import selectors
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Callable

BEAT = 2.0
"""Seconds between two beats."""
SILENCE = 10.0
"""Seconds without a word after which the other end counts as gone."""
RETRY = 0.5
"""Seconds between two attempts of a follower to connect."""
LONGEST = 1 << 20
"""Bytes of one message; a longer one ends the connection."""
WAITING = 8 << 20
"""Bytes that may wait to be sent; log lines beyond that are dropped, as the node's own log has them."""
HANDSHAKE = 5.0
"""Seconds in which a new connection must have proved itself."""


def proof(secret: bytes, nonce: str, run: str, node: str, side: str) -> str:
    """What only an end that knows the secret can say. ``side`` keeps one end's answer from serving as the other's."""
    return hmac.new(secret, f"{side}|{nonce}|{run}|{node}".encode(), hashlib.sha256).hexdigest()


def read_secret(path: str) -> bytes:
    """A key made from a file that every node of the cluster has, and nobody else."""
    return hashlib.sha256(b"swarmspeed job channel" + Path(path).read_bytes()).digest()


class Wire:
    """One connection: whole messages in and out, never waiting."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.since, self.heard, self.alive = sock, now, now, True
        self._in = b""
        self._out = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        if not self.alive or (len(self._out) > WAITING and message.get("t") == "lines"):
            return
        self._out += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        while self._out and self.alive:
            try:
                sent = self.sock.send(self._out[:65536])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                return
            del self._out[:sent]

    def receive(self, now: float) -> Iterator[dict[str, Any]]:
        """The messages that have come. A connection that is closed or talks nonsense is closed here, too."""
        self.flush()
        while self.alive:
            try:
                data = self.sock.recv(65536)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                data = b""
            if not data:
                self.alive = False
                break
            self.heard = now
            self._in += data
        *lines, self._in = self._in.split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if not isinstance(message, dict):
                self.close()
                return
            yield message
        if len(self._in) > LONGEST:
            self.close()
        if not self.alive:
            self.close()

    def close(self) -> None:
        self.alive = False
        with contextlib.suppress(OSError):
            self.sock.close()


class Hub:
    """The leader's end. ``nodes`` are the followers that belong to the job; others are turned away."""

    def __init__(
        self,
        secret: bytes,
        run: str,
        nodes: list[str],
        *,
        address: str = "",
        port: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secret, self._run, self._clock = secret, run, clock
        self.nodes = list(nodes)
        self._wires: dict[str, Wire] = {}
        self._new: list[tuple[Wire, str]] = []
        self._left: dict[str, dict[str, Any]] = {}
        self._parting: list[Wire] = []
        self.heard: dict[str, float] = {}
        self._beat_at = clock()
        self._server = socket.create_server((address, port), backlog=256)
        self._server.setblocking(False)
        self.port = int(self._server.getsockname()[1])

    def leave_out(self, nodes: Iterable[str], farewell: dict[str, Any]) -> None:
        """Go on without these followers. Whichever of them comes back is told so, and heard no more."""
        for node in nodes:
            self.nodes.remove(node)
            self.heard.pop(node, None)
            self._left[node] = farewell
            wire = self._wires.pop(node, None)
            if wire is not None:
                self._part_with(wire, farewell)

    def _part_with(self, wire: Wire, farewell: dict[str, Any]) -> None:
        # Not closed at once: with unread data on its way to us, the other end would lose what it is told.
        wire.send(farewell)
        wire.since = self._clock()
        self._parting.append(wire)

    def poll(self) -> list[tuple[str, dict[str, Any]]]:
        """What the followers have said since the last call; sends beats."""
        now = self._clock()
        self._accept(now)
        for wire in list(self._parting):
            list(wire.receive(now))
            if not wire.alive or now - wire.since > HANDSHAKE:
                wire.close()
                self._parting.remove(wire)
        found: list[tuple[str, dict[str, Any]]] = []
        for wire, nonce in list(self._new):
            for message in wire.receive(now):
                self._new.remove((wire, nonce))
                self._greet(wire, nonce, message, now)
                break
            else:
                if not wire.alive or now - wire.since > HANDSHAKE:
                    wire.close()
                    self._new.remove((wire, nonce))
        for node, wire in list(self._wires.items()):
            for message in wire.receive(now):
                if message.get("t") != "beat":
                    found.append((node, message))
            self.heard[node] = max(self.heard[node], wire.heard)
            if not wire.alive:
                del self._wires[node]
        if now - self._beat_at >= BEAT:
            self._beat_at = now
            self.broadcast({"t": "beat"})
        return found

    def _accept(self, now: float) -> None:
        while True:
            try:
                sock, _address = self._server.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                return
            wire, nonce = Wire(sock, now), os.urandom(16).hex()
            self._new.append((wire, nonce))
            wire.send({"t": "nonce", "nonce": nonce})

    def _greet(self, wire: Wire, nonce: str, message: dict[str, Any], now: float) -> None:
        node, theirs = str(message.get("node")), str(message.get("nonce"))
        known = (node in self.nodes or node in self._left) and hmac.compare_digest(
            str(message.get("proof")), proof(self._secret, nonce, self._run, node, "follower")
        )
        if not known:
            wire.close()
            return
        wire.send({"t": "welcome", "proof": proof(self._secret, theirs, self._run, node, "leader")})
        if node in self._left:
            self._part_with(wire, self._left[node])
            return
        old = self._wires.pop(node, None)
        if old is not None:
            old.close()
        self._wires[node] = wire
        self.heard[node] = now

    def send(self, node: str, message: dict[str, Any]) -> None:
        wire = self._wires.get(node)
        if wire is not None:
            wire.send(message)

    def broadcast(self, message: dict[str, Any]) -> None:
        for node in list(self._wires):
            self.send(node, message)

    def connected(self) -> list[str]:
        return [node for node in self.nodes if node in self._wires]

    def gone(self, silence: float = SILENCE) -> dict[str, float]:
        """Followers that were here and have been silent for longer than ``silence`` seconds, and for how long."""
        now = self._clock()
        return {node: now - at for node, at in self.heard.items() if now - at > silence}

    def close(self) -> None:
        for wire in [*self._wires.values(), *self._parting, *(item[0] for item in self._new)]:
            wire.flush()
            wire.close()
        self._server.close()


class Link:
    """A follower's end: connects, proves itself, and connects again when the connection is lost."""

    def __init__(
        self,
        secret: bytes,
        run: str,
        node: str,
        *,
        address: str,
        port: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secret, self._run, self._node, self._clock = secret, run, node, clock
        self._target = (address, port)
        self._wire: Wire | None = None
        self._pending: socket.socket | None = None
        self._nonce = ""
        self.welcome = False
        self.greeted = 0
        """How often the leader has taken this follower in."""
        self.heard = clock()
        self._next = 0.0
        self._beat_at = 0.0
        self.problem = ""

    def poll(self) -> list[dict[str, Any]]:
        now = self._clock()
        if self._wire is None:
            self._connect(now)
            return []
        found = []
        wire = self._wire
        for message in wire.receive(now):
            if self.welcome:
                found.append(message)
            elif not self._answer(wire, message):
                wire.close()
                self.problem = "the leader does not know the cluster's secret, or leads another run"
                break
        if self.welcome:
            self.heard = max(self.heard, wire.heard)
            if now - self._beat_at >= BEAT:
                self._beat_at = now
                wire.send({"t": "beat"})
        if not wire.alive:
            self._wire, self.welcome = None, False
            self._next = now + RETRY
        return [message for message in found if message.get("t") != "beat"]

    def _connect(self, now: float) -> None:
        if self._pending is None:
            if now < self._next:
                return
            self._next = now + RETRY
            try:
                family, kind, protocol, _name, target = socket.getaddrinfo(*self._target, type=socket.SOCK_STREAM)[0]
                sock = socket.socket(family, kind, protocol)
                sock.setblocking(False)
                sock.connect_ex(target)
            except OSError as error:
                self.problem = str(error)
                return
            self._pending, self._since = sock, now
        with selectors.DefaultSelector() as selector:
            selector.register(self._pending, selectors.EVENT_WRITE)
            ready = bool(selector.select(0))
        if not ready and now - self._since < HANDSHAKE:
            return
        code = self._pending.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else 110
        if code:
            self.problem = os.strerror(code)
            self._pending.close()
        else:
            self._wire = Wire(self._pending, now)
            self._nonce = os.urandom(16).hex()
        self._pending = None

    def _answer(self, wire: Wire, message: dict[str, Any]) -> bool:
        if message.get("t") == "nonce":
            mine = proof(self._secret, str(message.get("nonce")), self._run, self._node, "follower")
            wire.send({"t": "hello", "node": self._node, "nonce": self._nonce, "proof": mine})
            return True
        expected = proof(self._secret, self._nonce, self._run, self._node, "leader")
        self.welcome = message.get("t") == "welcome" and hmac.compare_digest(str(message.get("proof")), expected)
        self.greeted += self.welcome
        return self.welcome

    def send(self, message: dict[str, Any]) -> None:
        if self._wire is not None and self.welcome:
            self._wire.send(message)

    def silent(self) -> float:
        """Seconds since the leader was last heard."""
        return self._clock() - self.heard

    def close(self) -> None:
        if self._wire is not None:
            self._wire.flush()
            self._wire.close()
        if self._pending is not None:
            self._pending.close()
