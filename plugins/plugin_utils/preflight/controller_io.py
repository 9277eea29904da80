# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files and folders of the controller, as the checks of preflight read them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

COLLECTION = ("swarmspeed", "cluster")


def kind(path: str) -> str | None:
    """Return ``file``, ``directory``, or None for what is missing or cannot be read."""
    try:
        if Path(path).is_dir():
            return "directory"
        return "file" if Path(path).is_file() else None
    except (OSError, ValueError):
        return None


def text(path: str) -> str:
    """Return what is in a file, empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def writable(path: str) -> bool:
    """Whether this account can write into a folder of the controller, which may be still to be made."""
    folder = Path(path).expanduser().absolute()
    try:
        there = next(one for one in (folder, *folder.parents) if one.exists() or one.is_symlink())
        return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    except (OSError, ValueError):
        return False


def names(path: str) -> list[str]:
    """Return what is in a folder, in order; nothing where it cannot be read."""
    try:
        return sorted(one.name for one in Path(path).iterdir())
    except (OSError, ValueError):
        return []


def copies(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Return folder and version of each copy of this collection, the one that runs first; a checkout has no version."""
    own = Path(__file__).resolve().parents[3]
    found = [own]
    for path in paths:
        folder = Path(path, "ansible_collections", *COLLECTION).resolve()
        if folder not in found and kind(str(folder)):
            found.append(folder)
    return [(str(folder), _version(folder)) for folder in found]


def _version(folder: Path) -> str:
    try:
        return str(json.loads(text(str(folder / "MANIFEST.json")))["collection_info"]["version"])
    except (ValueError, KeyError, TypeError):
        return ""
