# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who may read a spool: lines of an account's authorized_keys, and the command that reads one over ssh."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MARK = "swarmspeed-transfer"


def server_command(spool: str, python: str, account: str) -> str:
    """Return the one command that a key of a transfer may run."""
    sudo = [] if account == "root" else ["sudo", "-n"]
    return shlex.join([*sudo, python, "-B", f"{spool}/serve.py"])


def key_line(public_key: str, command: str, reader: str, run: str, until: float) -> str:
    """Return the line that lets a key run the command, and nothing else, for a while."""
    kind, key = public_key.split()[:2]
    quoted = command.replace("\\", "\\\\").replace('"', '\\"')
    expiry = time.strftime("%Y%m%d%H%M", time.localtime(until))
    return f'restrict,expiry-time="{expiry}",command="{quoted}" {kind} {key} {MARK} {reader}.{run}'


def without_keys(text: str, spool: str) -> str:
    """Return the text of authorized_keys without the lines of this spool."""
    ours = re.compile(rf" -B [^ ]*{re.escape(spool)}/serve\.py.* {MARK} [^ ]+$")
    return "".join(line for line in text.splitlines(keepends=True) if not ours.search(line.rstrip("\r\n")))


def with_keys(text: str, lines: list[str]) -> str:
    before = text if not text or text.endswith("\n") else text + "\n"
    return before + "".join(f"{line}\n" for line in lines)


def rewrite(path: Path, change: Any, owner: tuple[int, int]) -> None:
    """Change a file in one step, its mode and owner kept; make it, and its folder, where there is none."""
    path = path.resolve()
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        mode = path.stat().st_mode & 0o777
        owner = (path.stat().st_uid, path.stat().st_gid)
    except FileNotFoundError:
        text, mode = "", 0o600
    new = change(text)
    if new == text:
        return
    if not path.parent.is_dir():
        path.parent.mkdir(mode=0o700)
        os.chown(path.parent, *owner)
    beside = path.with_name(f"{path.name}.{MARK}")
    with beside.open("w", encoding="utf-8", errors="surrogateescape") as file:
        os.fchmod(file.fileno(), mode)
        os.fchown(file.fileno(), *owner)
        file.write(new)
    beside.replace(path)


def known_hosts(sources: list[Mapping[str, Any]]) -> str:
    return "".join(f"{source['name']} {' '.join(source['host_key'].split()[:2])}\n" for source in sources)


def ssh_command(source: Mapping[str, Any], key: str, hosts: str) -> list[str]:
    """Return the words that connect to a node that gives; nothing of the host's own configuration of ssh counts."""
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "HostKeyAlias": source["name"],
        "HostKeyAlgorithms": "ssh-ed25519",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": hosts,
        "GlobalKnownHostsFile": "/dev/null",
        "ConnectTimeout": "10",
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        "Compression": "no",
        # Twice as fast as the default on processors that have AES, which is all servers.
        "Ciphers": "^aes128-gcm@openssh.com",
        "LogLevel": "ERROR",
    }
    words = [word for key_, value in options.items() for word in ("-o", f"{key_}={value}")]
    where = ["-l", source["account"], "-p", str(source["port"])]
    return ["ssh", "-T", "-F", "/dev/null", "-i", key, *where, *words, "--", source["address"], "read"]
