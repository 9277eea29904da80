# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that reads a host's driver packages and modules. Reads only."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from ..common.command_io import CommandResult, find_program, run_program

TIMEOUT = 30.0
"""Seconds for each command; the slowest, ``dkms status``, takes one."""

_DEVICE = re.compile(r"/dev/nvidia")


class SystemDriverIO:
    """This host."""

    def read(self, path: str) -> str:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def names(self, directory: str) -> list[str]:
        try:
            return sorted(path.name for path in Path(directory).iterdir())
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def free(self, path: str) -> int | None:
        try:
            return shutil.disk_usage(path).free
        except OSError:
            return None

    def filesystem(self, path: str) -> int | None:
        try:
            return Path(path).stat().st_dev
        except OSError:
            return None

    def users(self) -> list[str] | None:
        if os.geteuid() != 0:
            return None  # another account's open files cannot be seen
        return [
            f"{self.read(f'/proc/{number}/comm').strip()} ({number})"
            for number in self.names("/proc")
            if number.isdecimal() and self._uses_nvidia(f"/proc/{number}/fd")
        ]

    def _uses_nvidia(self, directory: str) -> bool:
        for descriptor in self.names(directory):
            try:
                if _DEVICE.match(str(Path(directory, descriptor).readlink())):
                    return True
            except OSError:  # closed meanwhile
                continue
        return False

    def run(self, *command: str) -> CommandResult | None:
        program = find_program(command[0])
        return run_program([program, *command[1:]], TIMEOUT) if program else None
