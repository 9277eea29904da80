# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Who may read a spool: lines of an account's authorized_keys, and the command that reads one over ssh."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..common.untrusted_folder import FolderError, UntrustedFolder

MARK = "swarmspeed-transfer"
KEY, HOSTS = "key", "hosts"
"""Files of a spool: the private key of this node, and the host keys of those that give."""
LONGEST = 4 << 20
"""Bytes of a file authorized_keys that is read."""


def server_command(spool: str, python: str, account: str) -> str:
    """Return the one command that a key of a transfer may run."""
    sudo = [] if account == "root" else ["sudo", "-n"]
    return shlex.join([*sudo, python, "-B", f"{spool}/serve.py"])


def key_line(public_key: str, command: str, reader: str, run: str, until: float) -> str:
    """Return the line that lets a key run the command, and nothing else, for a while."""
    kind, key = public_key.split()[:2]
    quoted = _quoted(command)
    expiry = time.strftime("%Y%m%d%H%M", time.localtime(until))
    return f'restrict,expiry-time="{expiry}",command="{quoted}" {kind} {key} {MARK} {reader}.{run}'


def _quoted(command: str) -> str:
    """Return a command as sshd reads it between quotes, where a backslash stands for itself but before a quote."""
    return command.replace('"', '\\"')


def without_keys(text: str, spool: str) -> str:
    """Return the text of authorized_keys without the lines of this spool."""
    program = re.escape(_quoted(shlex.quote(f"{spool}/serve.py")))
    ours = re.compile(rf' -B {program}".* {MARK} [^ ]+$')
    return "".join(line for line in text.splitlines(keepends=True) if not ours.search(line.rstrip("\r\n")))


def with_keys(text: str, lines: list[str]) -> str:
    before = text if not text or text.endswith("\n") else text + "\n"
    return before + "".join(f"{line}\n" for line in lines)


def rewrite(path: Path, change: Callable[[str], str], owner: tuple[int, int]) -> None:
    """Change authorized_keys of an account in one step, mode and owner kept; make it, and its folder, where missing.

    Both are in a folder that the account can write, while this is root: they are opened without following links.
    Raises ``FolderError``.
    """
    if owner[0] == 0:
        path = path.resolve()  # root's own links
    folder, name = path.parent.name, f"{path.parent.name}/{path.name}"
    home = UntrustedFolder(
        path.parent.parent, remedy=f"Remedy: make {path} a plain file of the account's own.", writers="the account"
    )
    text, mode = "", 0o600
    file = home.open(name)
    if file is not None:
        with file:
            about = os.fstat(file.fileno())
            if about.st_nlink != 1 or about.st_uid not in {0, os.geteuid(), owner[0]}:
                raise FolderError(
                    f"{home.where(name)} has a second name, or belongs to another account. "
                    "Remedy: make it a plain file of the account's own."
                )
            data = file.read(LONGEST + 1)
            if len(data) > LONGEST:
                raise FolderError(f"{home.where(name)} is larger than {LONGEST} bytes. Remedy: shorten it.")
            mode, owner = about.st_mode & 0o777, (about.st_uid, about.st_gid)
            text = data.decode("utf-8", "surrogateescape")
    new = change(text)
    if new == text:
        return
    if home.kind(folder) is None:
        home.make_folder(folder, 0o700, owner=owner)
    home.write(name, new.encode("utf-8", "surrogateescape"), mode, owner=owner, durable=True)


def known_hosts(sources: list[Mapping[str, Any]]) -> str:
    return "".join(f"{source['name']} {' '.join(source['host_key'].split()[:2])}\n" for source in sources)


def ssh_command(source: Mapping[str, Any]) -> list[str]:
    """Return the words that connect to a node that gives; nothing of the host's own configuration of ssh counts.

    ssh runs in the spool, and its files are named from there: a path may hold what ssh would take for its own syntax.
    """
    options = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "HostKeyAlias": source["name"],
        "HostKeyAlgorithms": "ssh-ed25519",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": HOSTS,
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
    return ["ssh", "-T", "-F", "/dev/null", "-i", KEY, *where, *words, "--", source["address"], "read"]
