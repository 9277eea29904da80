# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What any transfer does to its host: connections over ssh, signs of life and files of the spool."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..common.command_io import find_program
from ..common.untrusted_text import on_one_line
from ..common.whole_file import write_whole
from .keys import ssh_command
from .receive import LinkLost
from .serve import HEADER, STILL

LENGTHS = {b"D": 1 << 20, b"W": 0, b"E": 0, b"X": 4096}
"""Most bytes of each kind of frame. Another node sends them, and it may send anything."""
LAST = 4096
"""Bytes of ssh's errors that are read."""
PIPE = 1 << 20
_SET_PIPE_SIZE = 1031
"""F_SETPIPE_SZ, which Python has a name for since 3.10."""


class SshLink:
    """A connection to the spool of another node."""

    def __init__(self, command: list[str], place: Path) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close()
        program = find_program(command[0]) or command[0]
        self._process = subprocess.Popen(
            [program, *command[1:]],
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
            env={**os.environ, "LC_ALL": "C"},
        )
        widen(self._process.stdout)

    def frames(self, name: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
        try:
            os.write(self._process.stdin.fileno(), f"{name} {offset}\n".encode())  # type: ignore[union-attr]  # a PIPE above
        except OSError as error:
            raise LinkLost(self._last_words()) from error
        kind = b""
        while kind not in (b"E", b"X"):
            kind, length = HEADER.unpack(self._read(HEADER.size))
            if kind not in LENGTHS or length > LENGTHS[kind]:
                raise LinkLost("what it sends is not of the form of a transfer")
            yield kind, self._read(length)

    def _read(self, size: int) -> bytes:
        out = self._process.stdout.fileno()  # type: ignore[union-attr]  # a PIPE above
        data = bytearray()
        while len(data) < size:
            if not select.select([out], [], [], STILL)[0]:
                raise LinkLost(f"nothing came for {STILL:.0f} s")
            piece = os.read(out, size - len(data))
            if not piece:
                raise LinkLost(self._last_words())
            data += piece
        return bytes(data)

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._words.seek(max(0, os.fstat(self._words.fileno()).st_size - LAST))
        lines = self._words.read(LAST).decode("utf-8", "replace").strip().splitlines()
        return on_one_line(lines[-1], 200) if lines else "the connection broke"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._words):
            if file is not None:
                file.close()


def widen(pipe: Any) -> None:
    """Make a pipe larger where that may be done."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(pipe.fileno(), _SET_PIPE_SIZE, PIPE)


class SpoolIO:
    """This host, with the spool ``place``."""

    def __init__(self, place: Path, run: str) -> None:
        self.folder = place / "blobs"
        self._place, self._run = place, run
        self._beaten = 0.0
        self.state: dict[str, Any] = {}

    def connect(self, source: Mapping[str, Any]) -> SshLink:
        return SshLink(ssh_command(source), self._place)

    def alive(self) -> None:
        if time.monotonic() - self._beaten >= 1.0:
            self._beaten = time.monotonic()
            (self._place / "pulse").touch()

    def say(self, **state: Any) -> None:
        self.state.update(state)
        write_json(self._place / "state", {**self.state, "run": self._run})


def write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value))


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
