# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs one reading command with a time limit. What it answers, or that it did not, is a value, never an exception."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TIMED_OUT = 124
"""Exit status reported for a command that did not end in time (as timeout(1) has it)."""

NOT_STARTED = 126
"""Exit status reported for a command that could not be started (as the shell has it)."""

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


def find_program(name: str) -> str | None:
    """Return a program's path or None. An unprivileged account's PATH often lacks the sbin directories."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), _ADMINISTRATOR_PATH)))


def run_program(command: Sequence[str], timeout: float, data: str | None = None) -> CommandResult:
    """Run a command for at most ``timeout`` seconds, in the C locale so that its output can be parsed.

    ``data`` is its standard input.
    """
    given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if data is None else {"input": data.encode()}
    try:
        done = subprocess.run(
            list(command),
            **given,
            capture_output=True,
            check=False,
            timeout=timeout,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return CommandResult(TIMED_OUT, stderr=f"no answer within {timeout:g} seconds")
    except OSError as error:
        return CommandResult(NOT_STARTED, stderr=str(error))
    return CommandResult(
        done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )
