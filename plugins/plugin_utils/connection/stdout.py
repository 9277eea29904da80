# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who reads standard output, by the callback that the user chose: what we print ourselves must not disturb it."""

from __future__ import annotations

from ansible import constants as C

CONSOLE = "swarmspeed.cluster.console"
PROGRAMS = ("json", "jsonl")
"""Callbacks whose output a program parses; in ansible.posix, or by another collection's name."""


def aside() -> dict[str, bool]:
    """Return where ``Display.display`` prints lines for people: beside standard output where a program reads that."""
    return {"stderr": True} if str(C.DEFAULT_STDOUT_CALLBACK).rpartition(".")[2] in PROGRAMS else {}


def for_our_console() -> bool:
    """Return whether our own callback writes to standard output, which tells what was lost by itself."""
    return bool(C.DEFAULT_STDOUT_CALLBACK == CONSOLE)
