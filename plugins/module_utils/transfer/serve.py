# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads out a spool, also one that still grows: all that the key of a transfer may do on a node that gives.

A file of its own beside the spool, started by sshd, hence without imports. A request is one line, a name and an
offset; the answer is frames of a letter, a length and that many bytes: D data, W nothing new yet, E the end, X why not.
"""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Callable

HEADER = struct.Struct(">cI")
NAME = re.compile(r"[0-9a-f]{64}|config")
CHUNK = 1 << 18
"""Bytes of a frame. A node sends on what has arrived whole, so each node of a chain is later by one frame."""
BEAT = 1.0
"""Seconds between two signs of life while there is nothing to send."""
STILL = 30.0
"""Seconds after which a writer that shows no sign of life is taken for dead."""
STUCK = 60
"""Seconds after which a reader that takes nothing is given up: its network may be gone, which sshd does not notice."""
SILENT = 900
"""Seconds after which a reader that asks for nothing is given up; it may be loading what it has."""


class Refused(Exception):
    """What was requested cannot be had here (any more). The text says why."""


def frame(kind: bytes, data: bytes = b"") -> bytes:
    return HEADER.pack(kind, len(data)) + data


def writer_is_gone(spool: Path) -> str:
    """Return why nothing more will come into this spool, or an empty text."""
    try:
        pid = int(json.loads((spool / "lock").read_text(encoding="utf-8"))["pid"])
        os.kill(pid, 0)
        still = time.time() - (spool / "pulse").stat().st_mtime
    except PermissionError:
        return ""  # it runs, as somebody else
    except (OSError, ValueError, KeyError):
        return "its own transfer has ended"
    return f"its own transfer has stood still for {still:.0f} s" if still > STILL else ""


def find(spool: Path, name: str) -> BinaryIO | None:
    for path in (spool / "blobs" / name, spool / "blobs" / (name + ".part")):
        try:
            return path.open("rb", buffering=0)  # closed by the caller
        except FileNotFoundError:
            continue
    return None


def finished(spool: Path, name: str, file: BinaryIO) -> bool:
    """Whether this file is the whole blob. Raises ``Refused`` where the blob has been begun again in another file."""
    mine = os.fstat(file.fileno()).st_ino
    # The part may get its name, or back, between two of these looks.
    for end in (".part", "", ".part"):
        try:
            if (spool / "blobs" / (name + end)).stat().st_ino == mine:
                return not end
        except FileNotFoundError:
            continue
    raise Refused("it has restarted this part")


def serve_one(
    spool: Path,
    name: str,
    offset: int,
    send: Callable[[bytes], Any],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Send a blob from an offset on, as it grows."""
    file = None
    beaten = time.monotonic()
    try:
        while True:
            file = file or find(spool, name)
            if file is not None:
                whole = finished(spool, name, file)  # first: what is read after it is all there is
                file.seek(offset)
                data = file.read(CHUNK)
                if data:
                    offset += len(data)
                    send(frame(b"D", data))
                    beaten = time.monotonic()
                    continue
                if whole:
                    if offset > os.fstat(file.fileno()).st_size:
                        raise Refused("what it has is shorter")
                    send(frame(b"E"))
                    return
            if time.monotonic() - beaten >= BEAT:
                gone = writer_is_gone(spool)
                if gone:
                    raise Refused(gone)
                send(frame(b"W"))
                beaten = time.monotonic()
            sleep(0.02)
    except Refused as error:
        send(frame(b"X", str(error).encode()))
    finally:
        if file is not None:
            file.close()


def serve(spool: Path, ask: Callable[[], bytes], send: Callable[[bytes], Any]) -> None:
    """Answer until nothing more is asked."""
    while True:
        line = ask()
        if not line:
            return
        words = line.decode("ascii", "replace").split()
        if len(words) != 2 or not NAME.fullmatch(words[0]) or not words[1].isdigit():
            send(frame(b"X", b"it was asked for something that is not part of an image"))
            return
        serve_one(spool, words[0], int(words[1]), send)


def main() -> None:
    out = sys.stdout.buffer

    # The default action of an alarm is what is meant: an end.
    def ask() -> bytes:
        signal.alarm(SILENT)
        return sys.stdin.buffer.readline(200)

    def send(data: bytes) -> None:
        signal.alarm(STUCK)
        out.write(data)
        out.flush()

    try:
        serve(Path(__file__).resolve().parent, ask, send)
    except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        os._exit(0)


if __name__ == "__main__":
    main()
