# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that asks this host's dpkg whether it was interrupted, and has it finish."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
from pathlib import Path

from ..common.command_io import NOT_STARTED, TIMED_OUT, CommandResult, find_program, run_program
from .dpkg_state import QUERY

TIMEOUT = 20.0
"""Seconds for a reading command."""

GRACE = 20.0
"""Seconds that a command has to end after SIGTERM."""

_FLOCK = "hhqqi4x"
"""``struct flock`` on 64-bit Linux: type, whence, start, length, process."""


class SystemDpkg:
    """This host. ``root`` is another folder in tests."""

    def __init__(self, root: str = "/var/lib/dpkg") -> None:
        self._root = Path(root)

    def query(self) -> CommandResult | None:
        program = find_program(QUERY[0])
        return run_program([program, *QUERY[1:]], TIMEOUT) if program else None

    def updates(self) -> list[str]:
        try:
            return sorted(path.name for path in (self._root / "updates").iterdir())
        except OSError:
            return []

    def locked(self) -> bool:
        return any(_held(self._root / name) for name in ("lock-frontend", "lock"))

    def change(self, command: tuple[str, ...], timeout: float) -> CommandResult:
        program = find_program(command[0])
        if program is None:
            return CommandResult(NOT_STARTED, stderr=f"{command[0]} is not installed")
        environment = {
            **os.environ,
            "LC_ALL": "C",
            "DEBIAN_FRONTEND": "noninteractive",
            "DEBCONF_NONINTERACTIVE_SEEN": "true",
            # Ubuntu's needrestart would restart services by itself.
            "NEEDRESTART_SUSPEND": "1",
        }
        with subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        ) as process:
            try:
                output = process.communicate(timeout=timeout)[0]
            except subprocess.TimeoutExpired:
                _end(process)
                return CommandResult(TIMED_OUT)
        return CommandResult(process.returncode, output.decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started: dpkg first in peace, as it then writes down how far it came."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.communicate(timeout=GRACE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _held(path: Path) -> bool:
    """Ask whether a process has locked a file. To try the lock would make an apt fail that starts at this moment."""
    requested = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with path.open("rb") as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, requested)
    except OSError:
        return False
    return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)
