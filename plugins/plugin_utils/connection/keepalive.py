# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The ssh options that end a connection to a host that stopped responding, set beside the user's own."""

from __future__ import annotations

import re
import shlex

INTERVAL, COUNT = 5, 3
"""sshd must answer one of three requests, five seconds apart: a dead host is noticed within 20 s.

Ansible may open three more connections before it gives a task up, of ``timeout`` (10) seconds each: a minute in all.

sshd answers them itself, so that a host that is merely busy passes.
"""
WANTED = {"ServerAliveInterval": str(INTERVAL), "ServerAliveCountMax": str(COUNT), "TCPKeepAlive": "yes"}
"""ConnectTimeout is not among them: Ansible always gives its own (``timeout``), before these."""

_OPTION = re.compile(r"\s*([A-Za-z]+)\s*(?:=|\s)\s*(\S.*)")


def options(arguments: str) -> dict[str, str]:
    """Return the ssh options in a command line's part, by their names in lower case; the first of each counts."""
    try:
        words = shlex.split(arguments)
    except ValueError:  # ssh, or Ansible, says what is wrong with it
        return {}
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        text = words[place + 1] if word == "-o" and place + 1 < len(words) else word[2:] if word[:2] == "-o" else ""
        match = _OPTION.fullmatch(text)
        if match:
            found.setdefault(match.group(1).lower(), match.group(2))
    return found


def watched(*arguments: str) -> bool:
    """Whether connections with these arguments are ended when the host stops responding, whenever that is."""
    given = options(" ".join(arguments)).get("serveraliveinterval", "0")
    return given not in ("0", "none")


def with_keepalive(arguments: str) -> str:
    """Add the options to the user's arguments; of one that is given twice ssh takes the first, so the user's wins."""
    given = options(arguments)
    missing = [f"-o {name}={value}" for name, value in WANTED.items() if name.lower() not in given]
    return " ".join([*([arguments.strip()] if arguments.strip() else []), *missing])
