# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A follower's end of the channel between supervisors (channel.py).

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import time
from functools import partial
from typing import Any, Callable

from . import frames
from .channel import BEAT, HANDSHAKE, no_log
from .messages import from_leader
from .wire import Wire

RETRY = 0.5
"""Seconds between two attempts to connect."""


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
        log: Callable[[str, str], None] = no_log,
    ) -> None:
        self._secret, self._run, self._node, self._clock, self._log = secret, run, node, clock, log
        self._target = (address, port)
        self._wire: Wire | None = None
        self._connecting: socket.socket | None = None
        self._keys: frames.Keys | None = None
        self._check = partial(from_leader, node=node)
        self.welcome = False
        self.greeted = 0
        """How often the leader has taken this follower in."""
        self.last_seen = clock()
        self._next = 0.0
        self._beat_at = 0.0
        self.problem = ""

    def poll(self) -> list[dict[str, Any]]:
        now = self._clock()
        if self._wire is None:
            self._connect(now)
            return []
        wire, found = self._wire, []
        if not self.welcome:
            self._prove(wire, now)
        if self.welcome:
            found = wire.receive(now, self._check)
            self.last_seen = max(self.last_seen, wire.last_seen)
            if now - self._beat_at >= BEAT:
                self._beat_at = now
                wire.send({"t": "beat"})
        if not wire.alive:
            if self.welcome and wire.problem:
                self.problem = wire.problem
                self._log("leader", f"The connection to the leader was closed: {wire.problem}. It is made once more.")
            self._wire, self._keys, self.welcome = None, None, False
            self._next = now + RETRY
        return [message for message in found if message["t"] != "beat"]

    def _connect(self, now: float) -> None:
        if self._connecting is None:
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
            self._connecting, self._since = sock, now
        with selectors.DefaultSelector() as selector:
            selector.register(self._connecting, selectors.EVENT_WRITE)
            ready = bool(selector.select(0))
        if not ready and now - self._since < HANDSHAKE:
            return
        code = self._connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else errno.ETIMEDOUT
        if code:
            self.problem = os.strerror(code)
            self._connecting.close()
        else:
            self._wire = Wire(self._connecting, now)
        self._connecting = None

    def _prove(self, wire: Wire, now: float) -> None:
        """Answer the leader's challenge, and believe it only when it has proved itself as well."""
        if self._keys is None:
            challenge = wire.take(frames.CHALLENGE)
            requested = frames.unpack_challenge(challenge)
            if requested is not None:
                mine = os.urandom(frames.NONCE)
                self._keys = frames.derive(
                    self._secret, requested[0], mine, run=self._run, attempt=requested[1], node=self._node
                )
                wire.write(frames.pack_hello(self._node, mine, self._keys.follower_proof))
            elif challenge:
                self._give_up(wire, "what answers at the leader's port is not a supervisor")
        proof = wire.take(frames.MAC) if self._keys is not None else b""
        if proof and self._keys is not None:
            if frames.same(proof, self._keys.leader_proof):
                wire.secure(self._keys.to_leader, self._keys.to_follower, now)
                self.welcome, self.problem = True, ""
                self.greeted += 1
            else:
                self._give_up(wire, "the leader does not know the cluster's secret, or leads another run")
        elif not wire.alive and not self.problem:
            self.problem = "the leader closed the connection before this node had proved itself"
        elif now - wire.since > HANDSHAKE:
            self._give_up(wire, f"the leader did not prove itself within {HANDSHAKE:.0f} s")

    def _give_up(self, wire: Wire, problem: str) -> None:
        wire.close()
        self.problem = problem

    def send(self, message: dict[str, Any]) -> None:
        if self._wire is not None and self.welcome:
            self._wire.send(message)

    def silent(self) -> float:
        """Seconds since the leader's last message."""
        return self._clock() - self.last_seen

    def close(self) -> None:
        if self._wire is not None:
            self._wire.flush()
            self._wire.close()
        if self._connecting is not None:
            self._connecting.close()
