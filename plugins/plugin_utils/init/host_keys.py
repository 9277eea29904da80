# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The servers' host keys: which are known, which are new, and which forbid to go on. Pure.

The lines are those of known_hosts, as sshd(8) describes them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.problems import Problem, listing

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclass(frozen=True)
class HostKey:
    """A key and the line of known_hosts that pins it; ``name`` is what ssh searches there."""

    line: str

    @property
    def name(self) -> str:
        return self.line.split()[0]

    @property
    def kind(self) -> str:
        return self.line.split()[1]

    @property
    def blob(self) -> str:
        return self.line.split()[2]

    @property
    def fingerprint(self) -> str:
        """Return what ``ssh-keygen -l`` prints."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def parse_keys(text: str) -> list[HostKey]:
    """Return the keys in known_hosts, or in the output of ``ssh-keygen -F``; other lines are left out."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 3 or line.startswith(("#", "@")):
            continue
        try:
            base64.b64decode(words[2], validate=True)
        except (binascii.Error, ValueError):
            continue
        found.append(HostKey(" ".join(words[:3])))
    return found


def parse_fingerprints(given: str | Sequence[object]) -> tuple[set[str], list[Problem]]:
    """Return the fingerprints that a user gives, and what is none."""
    words = given.replace(",", " ").split() if isinstance(given, str) else [str(one).strip() for one in given]
    wrong = [word for word in words if not _FINGERPRINT.fullmatch(word)]
    remedy = "copy what 'ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub' prints on the server, from SHA256: on"
    return set(words) - set(wrong), [
        Problem("init_host_keys", f"'{word}' is not a fingerprint", remedy) for word in wrong
    ]


def is_known(shown: HostKey, known: Sequence[HostKey]) -> bool:
    return any((key.kind, key.blob) == (shown.kind, shown.blob) for key in known)


def changed(label: str, shown: HostKey, known: Mapping[str, Sequence[HostKey]]) -> Iterator[Problem]:
    """Yield where the server's key is not the one of that kind in a file; ``known`` has the server's keys by file."""
    for file, keys in known.items():
        if any(key.kind == shown.kind for key in keys) and not is_known(shown, keys):
            yield Problem(
                label,
                f"shows another host key ({shown.fingerprint}) than the one in {file}, so it is another machine, was "
                "reinstalled, or the connection is intercepted",
                "compare the fingerprint on the server's console; if it is right, remove the old one: "
                f"ssh-keygen -R '{shown.name}' -f {file}",
            )


def shared(keys: Mapping[str, HostKey]) -> Iterator[Problem]:
    """Yield where two addresses show one key; ``keys`` has that of each address, those pinned before among them."""
    holders: dict[tuple[str, str], list[str]] = {}
    for label, key in keys.items():
        holders.setdefault((key.kind, key.blob), []).append(label)
    for labels in holders.values():
        if len(labels) > 1:
            yield Problem(
                listing(labels),
                "show the same host key, so they are addresses of one machine, or copies of one image",
                "list each machine once; on copies, make new keys: rm /etc/ssh/ssh_host_* && ssh-keygen -A",
            )


def unconfirmed(keys: Mapping[str, HostKey], known: Sequence[str], accepted: set[str]) -> list[str]:
    """Return the labels whose key a user has yet to confirm; ``known`` are those whose key was pinned before."""
    return [label for label, key in keys.items() if label not in known and key.fingerprint not in accepted]


def table(keys: Mapping[str, HostKey], labels: Sequence[str]) -> list[str]:
    """Return one line a server with its fingerprint, as ``ssh-keygen -l`` has it."""
    width = max((len(label) for label in labels), default=0)
    return [f"{label:{width}}  {keys[label].fingerprint}  {_kind(keys[label].kind)}" for label in labels]


def _kind(kind: str) -> str:
    return kind.removeprefix("ssh-").removeprefix("sk-").partition("-sha2")[0].upper()
