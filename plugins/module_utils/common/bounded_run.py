# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads what a program prints that may be anybody's, as in a container: so many bytes, for so long, and then it ends.

Imports no other file: what outlives a module is started with this file as its program.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ENDED, LATE, FLOODED = "ended", "late", "flooded"
_CHUNK = 1 << 16
_TICK = 0.1
Take = Callable[[int, bytes], None]
"""Called with 1 or 2, for standard output and error, and with bytes."""


def start(command: Sequence[str], stdin: Any, **given: Any) -> subprocess.Popen[bytes]:
    """Start a program with both outputs to be read by ``follow``, in a session of its own, which is ended with it."""
    return subprocess.Popen(
        list(command), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **given
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End it, and what it has started in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def follow(process: subprocess.Popen[bytes], seconds: float, most: int, take: Take, data: bytes = b"") -> str:
    """Read until both outputs end, or until it is late, or more than ``most`` bytes came of one: then it is stopped.

    ``data`` is written to its standard input, as far as it reads it. Never more than ``most`` bytes are taken of each.
    """
    how = LATE
    try:
        how = _followed(process, time.monotonic() + seconds, {1: most, 2: most}, take, data)
    finally:
        if how != ENDED:  # what it has left running in good order stays
            stop(process)
        for one in (process.stdin, process.stdout, process.stderr):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.close()
    return how


def _followed(process: subprocess.Popen[bytes], until: float, left: dict[int, int], take: Take, data: bytes) -> str:
    with selectors.DefaultSelector() as waiting:
        for number, pipe in ((1, process.stdout), (2, process.stderr), (0, process.stdin)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                waiting.register(pipe, selectors.EVENT_READ if number else selectors.EVENT_WRITE, number)
        while waiting.get_map():
            if time.monotonic() > until:
                return LATE
            for key, _events in waiting.select(_TICK):
                number = key.data
                if number:
                    got = _got(key.fd, min(_CHUNK, left[number] + 1))
                    if got is None:
                        continue
                    take(number, got[: left[number]])
                    left[number] -= len(got)
                    if left[number] < 0:
                        return FLOODED
                    more = bool(got)
                else:
                    data = _written(key.fd, data)
                    more = bool(data)
                if not more:
                    waiting.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]  # a file, as it was registered
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return LATE
    return ENDED


def _got(handle: int, most: int) -> bytes | None:
    """What is there to be read, empty at the end; None where there is nothing yet."""
    try:
        return os.read(handle, most)
    except BlockingIOError:
        return None


def _written(handle: int, data: bytes) -> bytes:
    """Write what it takes now; return what is left, nothing where it takes no more."""
    try:
        return data[os.write(handle, data[:_CHUNK]) :]
    except BlockingIOError:
        return data
    except OSError:  # it ended, or closed it
        return b""


def relay(folder: str, seconds: float, most: int, command: Sequence[str]) -> None:
    """Run a program whose outputs become the files ``out`` and ``err`` of a folder, which goes when it ends."""
    place = Path(folder)
    files = {1: os.open(place / "out", os.O_WRONLY), 2: os.open(place / "err", os.O_WRONLY)}
    try:
        process = start(command, None, cwd="/")
    except OSError as error:
        os.write(files[2], f"{command[0]}: {error.strerror}\n".encode())
    else:
        if follow(process, seconds, most, lambda number, data: _append(files[number], data)) == FLOODED:
            os.write(files[2], f"it printed more than {most} bytes\n".encode())
    for left in place.iterdir():
        left.unlink()
    for gone in (place, place.parent, place.parent.parent):
        with contextlib.suppress(OSError):  # others are there
            gone.rmdir()


def _append(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


if __name__ == "__main__":
    relay(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
