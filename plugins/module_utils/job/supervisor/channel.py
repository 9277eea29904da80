# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How the supervisors of one job talk: one TCP connection from each follower (link.py) to the leader.

Part of the supervisor's archive: standard library, Python 3.8 or later. Nothing here waits or uses threads:
both ends are polled.

The port can be reached by anybody on the training network. Until a connection has proved that it knows the cluster's
secret (frames.py), a fixed number of its bytes is read within a limited time and none is parsed; whatever it does
costs that connection only. After that each message is authenticated, and its fields are checked (messages.py): one
that does not fit ends that channel, and its node connects again.

This gives integrity and authenticity. It gives no confidentiality: the content is log lines and beats, on the network
that carries the gradients in clear as well, and who is on the path reads it, and can cut the line. All nodes of a
cluster share the secret: it keeps strangers out, and does not keep one node from speaking for another.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

from . import frames
from .messages import from_follower
from .wire import BURST, Wire

BEAT = 2.0
"""Seconds between two beats."""
SILENCE = 10.0
"""Seconds without a word after which the other end counts as gone."""
HANDSHAKE = 5.0
"""Seconds in which a new connection must have proved itself."""
PENDING = 256
"""Connections that have not proved themselves yet; beyond that the address that holds most of them loses its oldest."""
RESERVED = 8
"""Such connections from the address of each node of the job, beside the others: who floods the port from many
addresses does not push these out."""
ACCEPTED = 256
"""New connections that are taken in one poll."""
SHARE = 4 << 20
"""Bytes that all followers together may have read in one poll, in equal parts."""
LEAST_SHARE = 64 << 10


def no_log(_subject: str, _text: str) -> None:
    """Where no one keeps a log."""


class _Pending(NamedTuple):
    """A connection that has not proved itself, and what it was asked."""

    wire: Wire
    nonce: bytes
    attempt: int
    address: str


class Hub:
    """The leader's end. ``nodes`` are the followers that belong to the job; others are turned away.

    ``addresses`` are theirs: connections from there have places of their own until they have proved themselves.
    ``attempt`` is the attempt of the job to which connections are bound that are made from now on. ``log`` gets a
    subject and a sentence for each connection that was closed here.
    """

    def __init__(
        self,
        secret: bytes,
        run: str,
        nodes: list[str],
        *,
        address: str = "",
        port: int = 0,
        clock: Callable[[], float] = time.monotonic,
        attempt: int = 1,
        addresses: Iterable[str] = (),
        log: Callable[[str, str], None] = no_log,
    ) -> None:
        self._secret, self._run, self._clock, self.attempt, self._log = secret, run, clock, attempt, log
        self.nodes = list(nodes)
        self._addresses = frozenset(addresses)
        self._names = {frames.digest(node): node for node in nodes}
        self._wires: dict[str, Wire] = {}
        self._pending: list[_Pending] = []
        self._left: dict[str, dict[str, Any]] = {}
        self._parting: list[Wire] = []
        self.last_seen: dict[str, float] = {}
        self._beat_at = clock()
        self._server = socket.create_server((address, port), backlog=ACCEPTED)
        self._server.setblocking(False)
        self.port = int(self._server.getsockname()[1])

    def leave_out(self, nodes: Iterable[str], farewell: dict[str, Any]) -> None:
        """Go on without these followers. Whichever of them comes back gets a refusal, and no more is read from it."""
        for node in nodes:
            self.nodes.remove(node)
            self.last_seen.pop(node, None)
            self._left[node] = farewell
            wire = self._wires.pop(node, None)
            if wire is not None:
                self._part_with(wire, farewell)

    def _part_with(self, wire: Wire, farewell: dict[str, Any]) -> None:
        # Not closed at once: with unread data on its way to us, the other end would lose what was sent.
        wire.send(farewell)
        wire.since = self._clock()
        self._parting.append(wire)
        if len(self._parting) > PENDING:
            self._parting.pop(0).close()

    def poll(self) -> list[tuple[str, dict[str, Any]]]:
        """What the followers have sent since the last call; sends beats."""
        now = self._clock()
        self._accept(now)
        for wire in self._parting:
            wire.discard()
            if now - wire.since > HANDSHAKE:
                wire.close()
        self._parting = [wire for wire in self._parting if wire.alive]
        self._pending = [item for item in self._pending if self._still_pending(item, now)]
        found = self._receive(now)
        if now - self._beat_at >= BEAT:
            self._beat_at = now
            self.broadcast({"t": "beat"})
        return found

    def _accept(self, now: float) -> None:
        for _number in range(ACCEPTED):
            try:
                sock, address = self._server.accept()
            except OSError:
                return
            self._make_room(str(address[0]))
            item = _Pending(Wire(sock, now), os.urandom(frames.NONCE), self.attempt, str(address[0]))
            self._pending.append(item)
            item.wire.write(frames.pack_challenge(item.nonce, item.attempt))

    def _make_room(self, address: str) -> None:
        """Whoever floods the port pushes out its own connections first, and none from the address of a node."""
        if address in self._addresses:
            rivals, most = [item for item in self._pending if item.address == address], RESERVED
        else:
            rivals, most = [item for item in self._pending if item.address not in self._addresses], PENDING
        if len(rivals) < most:
            return
        busiest = Counter(item.address for item in rivals).most_common(1)[0][0]
        oldest = next(item for item in rivals if item.address == busiest)
        self._pending.remove(oldest)
        self._turn_away(oldest, "too many connections at once")

    def _still_pending(self, item: _Pending, now: float) -> bool:
        hello = item.wire.take(frames.HELLO)
        if hello:
            self._greet(item, hello, now)
        elif not item.wire.alive:
            self._turn_away(item, "it was closed by the other end")
        elif now - item.wire.since > HANDSHAKE:
            self._turn_away(item, f"it took longer than {HANDSHAKE:.0f} s")
        else:
            return True
        return False

    def _turn_away(self, item: _Pending, why: str) -> None:
        item.wire.close()
        self._log(
            "strangers",
            f"A connection from {item.address} to port {self.port} ended before it had proved that it belongs to this "
            f"job: {why}. The job goes on. Remedy: find out what connects there, or let only the nodes of the job "
            "reach ports 29480 to 29499.",
        )

    def _greet(self, item: _Pending, hello: bytes, now: float) -> None:
        name, nonce, proof = frames.unpack_hello(hello)
        # A name that is not known gets keys as well: how long a refusal takes reveals nothing.
        node = self._names.get(name, "")
        keys = frames.derive(self._secret, item.nonce, nonce, run=self._run, attempt=item.attempt, node=node)
        if not frames.same(proof, keys.follower_proof) or not node:
            self._turn_away(item, "it does not know the secret, or is of another run")
            return
        wire = item.wire
        wire.write(keys.leader_proof)
        wire.secure(keys.to_follower, keys.to_leader, now)
        if node in self._left:
            self._part_with(wire, self._left[node])
            return
        old = self._wires.pop(node, None)
        if old is not None:
            old.close()
        self._wires[node] = wire
        self.last_seen[node] = now

    def _receive(self, now: float) -> list[tuple[str, dict[str, Any]]]:
        found: list[tuple[str, dict[str, Any]]] = []
        share = min(BURST, max(LEAST_SHARE, SHARE // max(1, len(self._wires))))
        for node, wire in list(self._wires.items()):
            messages = wire.receive(now, from_follower, share)
            found += [(node, message) for message in messages if message["t"] != "beat"]
            self.last_seen[node] = max(self.last_seen[node], wire.last_seen)
            if not wire.alive:
                del self._wires[node]
                if wire.problem:
                    self._log(
                        node,
                        f"The connection of {node} was closed: {wire.problem}. It may connect again, and must prove "
                        "itself again. Remedy: check that node's container, and who else is on the network.",
                    )
        return found

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
        return {node: now - at for node, at in self.last_seen.items() if now - at > silence}

    def close(self) -> None:
        for wire in [*self._wires.values(), *self._parting, *(item.wire for item in self._pending)]:
            wire.flush()
            wire.close()
        self._server.close()
