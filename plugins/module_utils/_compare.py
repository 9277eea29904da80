# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is, what is wanted, and what follows from it: the comparison that every role begins with."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One value that is not as wanted. ``path`` is dotted, such as ``swarm.state``."""

    path: str
    before: Any
    after: Any


def differences(found: Any, wanted: Any, path: str = "") -> list[Difference]:
    """Return where found differs from wanted. Keys that wanted does not name are the user's and do not count."""
    if isinstance(wanted, dict):
        below = found if isinstance(found, dict) else {}
        collected: list[Difference] = []
        for key in wanted:
            collected += differences(below.get(key), wanted[key], f"{path}.{key}" if path else str(key))
        return collected
    return [] if found == wanted and isinstance(found, bool) == isinstance(wanted, bool) else [Difference(path, found, wanted)]


def describe(found: list[Difference]) -> dict[str, str]:
    """Return Ansible's before/after texts of a list of differences."""

    def lines(side: str) -> str:
        return "".join(f"{item.path}: {_plain(getattr(item, side))}\n" for item in found)

    return {"before": lines("before"), "after": lines("after")}


def _plain(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


@dataclass(frozen=True)
class OwnedFile:
    """A file, directory or managed block that a role owns. ``content`` None means a directory; mode is octal text."""

    path: str
    content: str | None
    mode: str = "0644"
    owner: int = 0
    group: int = 0
    secret: bool = False
    block: str | None = None
    state: str = "present"


def file_is_right(item: OwnedFile, found: dict[str, Any] | None) -> bool | None:
    """Tell whether a file is as wanted, by what node_facts found; None when node_facts was not asked for it."""
    if found is None:
        return None
    if item.state == "absent":
        return not found.get("exists")
    if not found.get("exists"):
        return False
    if item.content is not None and found.get("sha256") != hashlib.sha256(item.content.encode()).hexdigest():
        return False
    if item.block is not None:
        return True  # the rest of the file, and its mode, belong to somebody else
    return (found.get("mode"), found.get("owner"), found.get("group")) == (item.mode, item.owner, item.group)


def file_diff(item: OwnedFile, found: dict[str, Any]) -> dict[str, str]:
    """Return Ansible's diff of one file; a secret's content is never part of it."""
    before, after = "", ""
    if item.content is None:
        before = f"{found.get('mode') or 'absent'}\n"
        after = f"{item.mode if item.state == 'present' else 'absent'}\n"
    elif item.secret:
        before = "(a secret)\n" if found.get("exists") else ""
        after = "(another secret)\n" if item.state == "present" else ""
    else:
        if found.get("exists"):
            before = found.get("content") or f"(SHA-256 {found.get('sha256')})\n"
        after = item.content if item.state == "present" else ""
        if before == after:
            before, after = f"mode {found.get('mode')}\n", f"mode {item.mode}\n"
    return {"before": before, "after": after, "before_header": item.path, "after_header": item.path}
