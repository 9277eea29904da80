# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Digests of files on the controller. Every worker that gathers facts imports it, so it imports no other file."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

_OWN = ".swarmspeed"
"""Of a workspace: what role workspace and the jobs keep there is no source (module_utils/job/code_places.py)."""


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_manifest(root: str, exclude: list[str]) -> dict[str, str]:
    """Return relative path and SHA-256 of every regular file below root.

    ``exclude`` are names (not paths) of files and directories to leave out. A link to a file counts as that file, a
    link to a directory is not followed.
    """
    manifest: dict[str, str] = {}
    for folder, folders, files in os.walk(root):
        own = _OWN if folder == root else ""
        folders[:] = sorted(name for name in folders if name not in exclude and name != own)
        for name in sorted(files):
            path = Path(folder, name)
            if name not in exclude and path.is_file():
                manifest[str(path.relative_to(root))] = file_sha256(path)
    return manifest


def code_digest(manifest: dict[str, str], root: str) -> str:
    """Return one digest of a source: names, contents, and which files can be executed. Runs start from it by that."""
    files = [[name, digest, os.access(Path(root, name), os.X_OK)] for name, digest in sorted(manifest.items())]
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()
