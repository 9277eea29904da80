# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that asks a host's firewall. Reads only."""

from __future__ import annotations

from pathlib import Path

from ..common.command_io import CommandResult, find_program, run_program

TIMEOUT = 20.0
"""Seconds."""


class SystemFirewallIO:
    """This host."""

    def read(self, path: str) -> str:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def run(self, *command: str) -> CommandResult | None:
        program = find_program(command[0])
        return run_program([program, *command[1:]], TIMEOUT) if program else None

    def iptables(self, program: str = "iptables") -> bool:
        found = find_program(program)
        if found is None:
            return False
        legacy = "legacy" in Path(found).resolve().name
        return not legacy or "filter" in self.read(f"/proc/net/{program.replace('tables', '_tables')}_names").split()
