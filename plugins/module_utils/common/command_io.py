# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs one reading command with a time limit. What it answers, or that it did not, is a value, never an exception."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from . import bounded_run
from .untrusted_text import on_one_line

TIMED_OUT = 124
"""Exit status reported for a command that did not end in time (as timeout(1) has it)."""

FLOODED = 125
"""Exit status reported for a command that printed more than it may."""

NOT_STARTED = 126
"""Exit status reported for a command that could not be started (as the shell has it)."""

MOST = 32 << 20
"""Bytes that a program of the host may print, where nothing else is said."""

_ADMINISTRATOR_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class CommandResult:
    """What a command left behind."""

    rc: int
    stdout: str = ""
    stderr: str = ""

    @property
    def text(self) -> str:
        """Both outputs, stripped: some tools write their errors to standard output."""
        return "\n".join(part for part in (self.stdout.strip(), self.stderr.strip()) if part)

    @property
    def final_line(self) -> str:
        """The last line that it printed, as a part of a sentence; anything may have printed it."""
        return on_one_line(self.text.rpartition("\n")[2][-1000:]) or f"exit status {self.rc}"


def find_program(name: str) -> str | None:
    """Return a program's path or None. An unprivileged account's PATH often lacks the sbin directories."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), _ADMINISTRATOR_PATH)))


def run_program(command: Sequence[str], timeout: float, data: str | None = None, most: int = MOST) -> CommandResult:
    """Run a command for at most ``timeout`` seconds, in the C locale so that its output can be parsed.

    ``data`` is its standard input. One that prints more than ``most`` bytes is ended, with all that it has started.
    """
    outputs: dict[int, list[bytes]] = {1: [], 2: []}
    try:
        process = bounded_run.start(
            command, subprocess.DEVNULL if data is None else subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}
        )
    except OSError as error:
        return CommandResult(NOT_STARTED, stderr=str(error))
    how = bounded_run.follow(
        process, timeout, most, lambda number, part: outputs[number].append(part), (data or "").encode()
    )
    if how == bounded_run.LATE:
        return CommandResult(TIMED_OUT, stderr=f"no answer within {timeout:g} seconds")
    if how == bounded_run.FLOODED:
        return CommandResult(FLOODED, stderr=f"it printed more than {most} bytes, and was ended")
    stdout, stderr = (b"".join(outputs[number]).decode("utf-8", "replace") for number in (1, 2))
    return CommandResult(process.returncode, stdout, stderr)
