# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The record of folders on a host: which of them are this collection's, and what follows from it. Pure.

A folder is ours if this collection created it, or if it was empty when it was first used. One that had content is used,
and stays its user's. The record says both, so that a folder that becomes empty later does not change hands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1
ABSENT, EMPTY, IN_USE, MADE, OURS, THEIRS = "absent", "empty", "in_use", "made", "ours", "theirs"
STATES = (ABSENT, EMPTY, IN_USE, MADE, OURS, THEIRS)
"""``ours`` and ``theirs`` are recorded; of the others, ``in_use`` has content, and ``made`` such as proves that it is
this collection's: it was made before there was a record."""


@dataclass(frozen=True)
class Identity:
    """Which folder has a path. ``born``: when it was created, as the file system says; empty where it does not."""

    device: int
    inode: int
    born: str = ""

    def is_same(self, other: Identity) -> bool:
        """Inodes are given to new folders again, and devices get other numbers when a host starts."""
        if self.born and other.born:
            return (self.inode, self.born) == (other.inode, other.born)
        return (self.device, self.inode) == (other.device, other.inode)


@dataclass(frozen=True)
class Entry:
    """What is recorded of a folder."""

    identity: Identity
    ours: bool


@dataclass(frozen=True)
class Found:
    """A folder as it is: ``real`` is its path without links."""

    real: str
    identity: Identity
    is_empty: bool


def parse(text: str) -> dict[str, Entry]:
    """Return the record by real path. Empty where it is damaged: then each folder is judged again by what it holds."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            return {}
        return {str(path): _entry(entry) for path, entry in document["folders"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def _entry(entry: Mapping[str, Any]) -> Entry:
    if not isinstance(entry["ours"], bool):
        raise ValueError("ours")
    return Entry(Identity(int(entry["device"]), int(entry["inode"]), str(entry["born"])), entry["ours"])


def render(record: Mapping[str, Entry]) -> str:
    folders = {
        path: {
            "ours": entry.ours,
            "device": entry.identity.device,
            "inode": entry.identity.inode,
            "born": entry.identity.born,
        }
        for path, entry in sorted(record.items())
    }
    return json.dumps({"version": VERSION, "folders": folders}, indent=2) + "\n"


def state_of(found: Found | None, record: Mapping[str, Entry], is_made: bool = False) -> str:
    """Return the state of a folder; ``is_made``: what it holds proves that this collection made it."""
    if found is None:
        return ABSENT
    entry = record.get(found.real)
    if entry and entry.identity.is_same(found.identity):
        return OURS if entry.ours else THEIRS
    if found.is_empty:
        return EMPTY
    return MADE if is_made else IN_USE


def becomes_ours(state: str) -> bool:
    """Whether a folder in this state is ours once it is recorded."""
    return state not in (IN_USE, THEIRS)


def was_made_after(found: Found, other: Found) -> bool:
    """Whether the file system says that a folder was created after another one, or with it."""
    try:
        return float(found.identity.born) >= float(other.identity.born)
    except ValueError:
        return False
