# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One connection of a channel between supervisors, and the log of what went wrong with connections.

Part of the supervisor's archive: standard library, Python 3.8 or later. Nothing here waits, and every
buffer is bounded, whatever the other end sends or does not read.
"""

from __future__ import annotations

import contextlib
import socket
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

from .frames import LONGEST, FrameError, Opener, Sealer
from .messages import MessageError, encode

BURST = 1 << 20
"""Bytes that are read from one connection before the others have their turn."""
WAITING = 8 << 20
"""Bytes that may wait to be sent; log lines beyond that are dropped, as the node's own log has them."""
WAITING_MOST = 4 * WAITING
"""Bytes that wait to be sent to an end that reads nothing, after which its connection is closed."""
FRAME_TIME = 5.0
"""Seconds in which a message that has begun must have come whole."""


class Wire:
    """One connection: bytes of a fixed number during the handshake, whole messages after ``secure``."""

    def __init__(self, sock: socket.socket, now: float) -> None:
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.since, self.alive = sock, now, True
        self.last_seen = now
        """When the last message came that was authentic."""
        self.problem = ""
        """Why this end has closed the connection; empty where the other end did, or the network."""
        self._plain = b""
        self._out = bytearray()
        self._sealer: Sealer | None = None
        self._opener: Opener | None = None
        self._begun: float | None = None

    def secure(self, send_key: bytes, receive_key: bytes, now: float) -> None:
        """The other end has proved itself: from now on there are only authenticated frames."""
        self._sealer, self._opener, self.last_seen = Sealer(send_key), Opener(receive_key), now

    def write(self, data: bytes) -> None:
        """A part of the handshake."""
        self._out += data
        self.flush()

    def send(self, message: dict[str, Any]) -> None:
        if not self.alive or self._sealer is None:
            return
        if len(self._out) > WAITING and message.get("t") in {"lines", "steps"}:
            return
        payload = encode(message)
        if len(payload) > LONGEST or len(self._out) > WAITING_MOST:
            self.close("more is to be sent than a channel carries")
            return
        self._out += self._sealer.seal(payload)
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

    def _read(self, size: int) -> bytes | None:
        """At most so many bytes, empty where none have come; ``None`` at the end of the connection."""
        try:
            return self.sock.recv(size) or None
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError:
            return None

    def take(self, size: int) -> bytes:
        """Exactly so many bytes of the handshake; empty until they are there. No more is read, or kept."""
        self.flush()
        while self.alive and len(self._plain) < size:
            data = self._read(size - len(self._plain))
            if data is None:
                self.close()
            elif not data:
                break
            else:
                self._plain += data
        if len(self._plain) < size:
            return b""
        found, self._plain = self._plain, b""
        return found

    def receive(self, now: float, check: Callable[[bytes], dict[str, Any]], most: int = BURST) -> list[dict[str, Any]]:
        """The messages that have come, each authentic and well formed. Anything else closes the connection."""
        self.flush()
        opener = self._opener
        if opener is None or not self.alive:
            return []
        ended, left = False, most
        while left > 0:
            data = self._read(min(left, 65536))
            if not data:
                ended = data is None
                break
            opener.feed(data)
            left -= len(data)
        found: list[dict[str, Any]] = []
        try:
            while True:
                payload = opener.next()
                if payload is None:
                    break
                found.append(check(payload))
                self.last_seen, self._begun = now, None
        except (FrameError, MessageError) as error:
            self.close(str(error))
        if ended:
            self.close()
        elif not opener.begun:
            self._begun = None
        elif self._begun is None or left <= 0:  # where more is there than was read, this end is the slow one
            self._begun = now
        elif now - self._begun > FRAME_TIME:
            self.close(f"a message did not come whole within {FRAME_TIME:.0f} s")
        return found

    def discard(self) -> None:
        """Read what comes and forget it, until the other end closes."""
        self.flush()
        left = BURST
        while self.alive and left > 0:
            data = self._read(65536)
            if data is None:
                self.close()
            elif not data:
                break
            else:
                left -= len(data)

    def close(self, problem: str = "") -> None:
        self.problem = self.problem or problem
        self.alive = False
        with contextlib.suppress(OSError):
            self.sock.close()


class ChannelLog:
    """Lines of supervisor.log about connections; of one subject the first at once, then more and more seldom."""

    FIRST, MOST = 60.0, 3600.0
    """Seconds between the first two lines of a subject, and at most; they double."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._next: dict[str, tuple[float, float, int]] = {}

    def __call__(self, subject: str, text: str) -> None:
        """``subject``: a node, or one word for all strangers: its values must be few."""
        now = self._clock()
        due, pause, skipped = self._next.get(subject, (now, self.FIRST, 0))
        if now < due:
            self._next[subject] = (due, pause, skipped + 1)
            return
        self._next[subject] = (now + pause, min(2 * pause, self.MOST), 0)
        more = f" {skipped} more since the line before." if skipped else ""
        at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as log:
            log.write(f"{at} {text}{more}\n")
