# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node has of models and data sets, for node_facts: by their records, sizes and times; no file is read."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...common.untrusted_folder import UntrustedFolder
from ..room import free_bytes, nearest
from .files import INCOMING, changed_paths, opened, read_record, recorded_names

MOUNTS = "/proc/self/mounts"


def asset_facts(requested: Mapping[str, Any]) -> dict[str, Any]:
    """Return room, file system, and of each asset that is asked for what is recorded and what differs from that.

    ``requested`` has the folder (``root``), and by name the digests that are wanted (``wanted``). An asset's files are
    listed only where another digest is recorded: one that is as wanted has the files that the asker knows.
    """
    if not requested.get("root"):
        return {}
    root = Path(str(requested["root"]))
    found = {name: _asset(root, name, digest) for name, digest in (requested.get("wanted") or {}).items()}
    return {
        "root": str(root),
        "free_bytes": free_bytes(root),
        "filesystem": filesystem(root),
        "incoming_bytes": incoming_bytes(root),
        "recorded": recorded_names(root),
        "found": found,
    }


def _asset(root: Path, name: str, wanted: str) -> dict[str, Any]:
    record, folder = read_record(root, name), opened(root)
    changed = changed_paths(root, name, record)
    listed = bool(record) and record["digest"] != wanted
    return {
        "recorded": bool(record),
        "there": _is_used(folder, name),
        "digest": record.get("digest", ""),
        "changed": changed,
        "missing": [path for path in changed if _is_missing(folder, f"{name}/{path}")],
        "files": {path: sha256 for path, (dummy, sha256, time) in record["files"].items()} if listed else {},
    }


def _is_used(folder: UntrustedFolder, name: str) -> bool:
    """Whether something lies where an asset's folder would be; what is not a folder, a link too, counts as used."""
    with contextlib.suppress(OSError):
        kind = folder.kind(name)
        return bool(folder.entries(name)) if kind == "a folder" else kind is not None
    return True


def _is_missing(folder: UntrustedFolder, path: str) -> bool:
    with contextlib.suppress(OSError):
        return folder.kind(path) is None
    return True


def incoming_bytes(root: Path) -> int:
    """Return how much an earlier transfer that failed has left, for the next to go on from."""
    with contextlib.suppress(OSError):
        folder = opened(root)
        kinds = folder.entries(INCOMING)
        found = (folder.status(f"{INCOMING}/{name}") for name, kind in kinds.items() if kind == "a plain file")
        return sum(status.st_size for status in found if status)
    return 0


def filesystem(root: Path) -> str:
    """Return the type of the file system that holds a folder, as the kernel names it; empty where it is not known."""
    place, best, kind = str(nearest(root).resolve()), "", ""
    with contextlib.suppress(OSError):
        for line in Path(MOUNTS).read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            words = line.split(" ")
            point = words[1].replace("\\040", " ") if len(words) > 2 else ""
            inside = place == point or place.startswith(point.rstrip("/") + "/")
            if point and inside and len(point) >= len(best):
                best, kind = point, words[2]
    return kind
