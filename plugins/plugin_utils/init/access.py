# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Why a server cannot be used: what ssh, sudo or Python reported there, and which two are one machine. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...module_utils.common.untrusted_text import on_one_line
from ..core.problems import Problem, listing

_ASK_SUDO = "run init again with --ask-become-pass and --ask-vault-pass: the password is kept in the folder's vault"
_REASONS = (
    (
        r"Missing sudo password|sudo: a password is required|sudo: a terminal is required",
        "asks for a password for sudo",
        _ASK_SUDO,
    ),
    (
        r"Incorrect sudo password|Sorry, try again",
        "refuses the password for sudo",
        "run init again with --ask-become-pass, and give the password that this account has there",
    ),
    (
        r"not in the sudoers file|not allowed to (?:execute|run)|may not run sudo",
        "does not let this account use sudo",
        "log in with an account that is root or may use sudo, as user@address in init_servers",
    ),
    (
        r"sudo: (?:command )?not found|sudo: No such file",
        "has no sudo",
        "install it there (apt install sudo), or log in as root: root@address in init_servers",
    ),
    (
        r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED",
        "presents another host key than a moment ago",
        "run init again, and compare the fingerprint on the server's console",
    ),
    (
        r"Permission denied",
        "asks for a password, or does not accept your key",
        "copy your key there (ssh-copy-id), and name the account in init_servers: user@address",
    ),
    (
        r"interpreter .*not found|python3?: (?:command )?not found|No python interpreters found",
        "has no Python",
        "install it there: apt install python3",
    ),
)


def access_problem(label: str, error: str, output: str = "") -> Problem:
    """Return what an error of a connection, of sudo or of the module on the server means, with what was printed."""
    for pattern, text, remedy in _REASONS:
        if re.search(pattern, f"{error} {output}", re.IGNORECASE):
            return Problem(label, text, remedy)
    # That of a module has a remedy of its own, for an inventory that is there.
    reason = on_one_line(error).partition(". Remedy: ")[0].rstrip(".") or "no reason was given"
    return Problem(label, f"cannot be read ({reason})", "correct that there, and run init again")


def same_machines(ids: Mapping[str, str]) -> Iterator[Problem]:
    """Yield which servers have one machine ID; ``ids`` has each server's /etc/machine-id."""
    holders: dict[str, list[str]] = {}
    for label, identity in ids.items():
        if identity:
            holders.setdefault(identity, []).append(label)
    for labels in holders.values():
        if len(labels) > 1:
            yield Problem(
                listing(labels),
                "have the same machine ID, so they are addresses of one machine, or copies of one image",
                "list each machine once; on copies: rm /etc/machine-id && systemd-machine-id-setup, then reboot",
            )


def facts_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (result.get("ansible_facts") or {}).get("swarmspeed") or {}
    return found
