# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What planners read of the controller beside texts of files: names in folders, digests. All of it as text, by name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..cluster.trees import file_sha256, tree_manifest
from ..launch.script_files import nearest_file, script_files

NAMES = "names:"
"""Begins the name of a folder: the names of its files, hidden ones left out, one a line."""
TEXT = "text:"
"""Begins the name of a file whose relative path starts where the playbook is run, as all of these do."""
DIGEST = "digest:"
"""Begins the name of a file of which the SHA-256 is read."""
REAL = "real:"
"""Begins a path that is to be read itself: absolute, and without links."""
SCRIPT = "script:"
"""Begins the folder of a source and, after ``::``, a Python script in it: its text and that of its modules, as JSON."""
BESIDE = "beside:"
"""Begins the folder of a source and, after ``::``, a file in it, or else in the nearest folder above: as JSON."""
TREE = "tree:"
"""Begins the name of a folder: SHA-256 by relative path of all files below it but git's own, as JSON."""


def here(path: str) -> Path:
    """Return a path of the controller; a relative one starts where the playbook is run."""
    return Path(os.environ.get("PWD", ""), Path(path).expanduser())


def source_of(role_vars: Mapping[str, Any]) -> tuple[str, str]:
    """Return the folder of the workspace's source on the controller, and what messages call it."""
    own = str(role_vars["workspace_source"] or "")
    fetched = role_vars.get("swarmspeed_source")
    if not isinstance(fetched, Mapping):
        return str(here(own)) if own else "", own
    return str(fetched.get("folder") or ""), str(fetched.get("name") or own)


def split_kind(name: str) -> tuple[str, str]:
    """Return how a name says that it is read, and the path; without a kind it is a file as Ansible finds it."""
    kind = next((kind for kind in _READERS if name.startswith(kind)), "")
    return kind, name[len(kind) :]


def read(kind: str, path: str) -> str:
    """Return what is there. Raises ``OSError`` or ``UnicodeDecodeError``."""
    return _READERS[kind](here(path))


def _names(folder: Path) -> str:
    files = [path.name for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]
    return "\n".join(sorted(files))


def _tree(folder: Path) -> str:
    if not folder.is_dir():
        raise NotADirectoryError(folder)
    return json.dumps(tree_manifest(str(folder), [".git"]))


_READERS: dict[str, Callable[[Path], str]] = {
    NAMES: _names,
    TEXT: lambda path: path.read_bytes().decode("utf-8"),
    REAL: lambda path: str(path.resolve(strict=True)),
    DIGEST: file_sha256,
    SCRIPT: lambda path: script_files(str(path)),
    BESIDE: lambda path: nearest_file(str(path)),
    TREE: _tree,
}
