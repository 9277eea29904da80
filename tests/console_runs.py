# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs that were recorded as Ansible's default callback shows them, as our console would have shown them.

What that output does not have is not there: tasks that every host skipped, and times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.console.events import (
    End,
    Event,
    Message,
    Outcome,
    Play,
    Result,
    Task,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.console.screen import Screen
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.roles import PLANNED

RECORDED = Path(__file__).parent / "unit" / "plugins" / "callback" / "recorded"
ROLES = ("preflight", *PLANNED)
_TASK = re.compile(r"TASK \[(?:swarmspeed\.cluster\.(\w+) : )?(.*)\] \*+")
_RESULT = re.compile(r"(ok|changed): \[(\w+)(?: -> \S+)?\](?: => ?(.*))?")
_RECAP = re.compile(r"(\w+) +: ok=\d+ +changed=\d+ ")


def recorded(name: str) -> Iterator[Event | str]:
    """Yield the events of a recorded run, and lines that are no callback's: warnings, and what actions print."""
    lines = (RECORDED / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    hosts = tuple(found[1] for line in lines if (found := _RECAP.match(line)))
    nodes, role, block, host = tuple(host for host in hosts if host != "localhost"), "", "", ""
    for line in [*lines, ""]:
        if line.startswith("    ") and host:
            block += line + "\n"
            continue
        if block:
            message = yaml.safe_load(block)["msg"]
            yield Message(host, "\n".join(message) if isinstance(message, list) else message)
            block = ""
        host = ""
        if found := re.fullmatch(r"PLAY \[(.*)\] \*+", line):
            role = ""
            yield Play(found[1], nodes, ROLES if found[1].startswith("Deploy") else ())
        elif found := _TASK.match(line):
            # Facts are gathered and planned again within a role.
            role = found[1] if found[1] and (found[1] != "preflight" or not role) else role
            yield Task(found[2], role)
        elif found := _RESULT.fullmatch(line):
            host = found[2] if found[3] == "" else ""
            yield Result(found[2], Outcome(found[1]))
        elif line and not line.startswith(("PLAY RECAP", "FAILED - RETRYING")) and not _RECAP.match(line):
            yield line
    yield End(hosts)


def shown(name: str, width: int = 0) -> list[str]:
    """Return the lines of a recorded run as the console shows them."""
    screen, lines = Screen(width), []
    for event in recorded(name):
        lines += [event] if isinstance(event, str) else [line.text for line in screen.feed(event, 0.0)]
    return lines


def rows(lines: list[str], columns: int) -> int:
    """Return how many rows of a terminal lines take."""
    return sum(max(1, -(-len(line) // columns)) for line in lines)
