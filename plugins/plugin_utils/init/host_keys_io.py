# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads the servers' host keys with ssh itself, which knows ~/.ssh/config and jump hosts; ssh-keyscan does not."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...module_utils.common.command_io import run_program
from ...module_utils.common.untrusted_text import on_one_line
from ..core.problems import Problem
from .host_keys import HostKey, parse_keys
from .servers import Server, ssh_options

SECONDS = 15
"""Within which a server answers; ssh gives up a connection after two thirds of it."""
AT_ONCE = 16

# No login: the key is shown before anyone logs in, and the connection ends there.
_KEY_ONLY = {
    "BatchMode": "yes",
    "PreferredAuthentications": "none",
    "StrictHostKeyChecking": "accept-new",
    "GlobalKnownHostsFile": "/dev/null",
    "HashKnownHosts": "no",
    "UpdateHostKeys": "no",
    "ControlPath": "none",
    "ConnectTimeout": str(SECONDS * 2 // 3),
    "LogLevel": "ERROR",
}


def read_keys(servers: Sequence[Server], folder: Path, key: str) -> tuple[dict[str, HostKey], list[Problem]]:
    """Return the host key of each server and jump host by label, and which showed none. ``folder`` is temporary."""
    keys: dict[str, HostKey] = {}
    problems: list[Problem] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        files = [folder / str(number) for number in range(len(servers))]
        for server, (found, error) in zip(servers, pool.map(lambda one, file: _read(one, file, key), servers, files)):
            if found is not None:
                keys[server.label] = found
            else:
                problems.append(_silent(server, error))
    return keys, problems


def _read(server: Server, file: Path, key: str) -> tuple[HostKey | None, str]:
    # A file of its own for each, as ssh appends to it; with a jump host, that one's key gets there first.
    options = [word for name, value in _KEY_ONLY.items() for word in ("-o", f"{name}={value}")]
    accept = "-o StrictHostKeyChecking=accept-new -o HashKnownHosts=no"
    way = ssh_options(server, str(file), key, accept)
    login = ["-p", str(server.port)] * bool(server.port) + ["-l", server.user] * bool(server.user)
    answer = run_program(["ssh", *options, *way, *login, server.address, "true"], SECONDS * (2 if server.jump else 1))
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    keys = parse_keys(text)
    if server.jump and len(keys) < 2:
        return None, answer.final_line
    return (keys[-1], "") if keys else (None, answer.final_line)


def _silent(server: Server, error: str) -> Problem:
    return Problem(
        server.label,
        f"does not answer ssh ({on_one_line(error)})",
        "correct address, port or jump host, or start sshd there; 'ssh -v' to it shows more",
    )


def known_keys(name: str, file: Path) -> list[HostKey]:
    """Return the keys that a file has for a name, hashed ones too."""
    if not file.is_file():
        return []
    return parse_keys(run_program(["ssh-keygen", "-F", name, "-f", str(file)], SECONDS).stdout)
