# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads and writes the folder, and reads the parts of this collection that are copied into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from ansible.utils.collection_loader import AnsibleCollectionConfig

from ...module_utils.common.whole_file import whole_file
from .texts import CLUSTER, JOB, SCHEMA, SCRIPT, VAULT

ROOT = Path(__file__).parents[3]
"""Of the collection, as Ansible has found it."""
COLLECTIONS = ROOT.parents[2]
OTHERS = ("hosts.ini", "hosts", "hosts.yaml", "inventory")
"""Inventories by other names, which init neither writes nor reads."""
FOUND_ANYWAY = ("~/.ansible/collections", "/usr/share/ansible/collections")
_FILES = (
    "ansible.cfg",
    ".gitignore",
    "known_hosts",
    "hosts.yml",
    *OTHERS,
    SCHEMA,
    CLUSTER,
    JOB,
    SCRIPT,
    VAULT,
)


def installed(search: Sequence[str] | None = None) -> list[str]:
    """Return where this collection is installed, the place that is used first; links to one place count once."""
    found = {ROOT.resolve(): str(ROOT)}
    for path in AnsibleCollectionConfig.collection_paths if search is None else search:
        place = Path(path).expanduser() / "ansible_collections" / "swarmspeed" / "cluster"
        if (place / "plugins").is_dir():
            found.setdefault(place.resolve(), str(place))
    return list(found.values())


def collections() -> str:
    """Return the folder that ansible.cfg has to name for this collection to be found; empty where none is needed."""
    usual = [Path(path).expanduser().resolve() for path in FOUND_ANYWAY]
    return "" if COLLECTIONS.resolve() in usual or COLLECTIONS.name == "site-packages" else str(COLLECTIONS)


def short(path: str) -> str:
    """Return a path below the home folder with ``~``."""
    home = str(Path("~").expanduser())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def release() -> str:
    """Return this collection's version, from what is in a tarball or in a checkout."""
    manifest, galaxy = ROOT / "MANIFEST.json", ROOT / "galaxy.yml"
    if manifest.is_file():
        return str(yaml.safe_load(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    return str(yaml.safe_load(galaxy.read_text(encoding="utf-8"))["version"])


def part(path: str) -> str:
    """Return the text of a file of this collection."""
    return (ROOT / path).read_text(encoding="utf-8")


def read_folder(folder: Path) -> dict[str, str]:
    """Return the texts of those files that init writes, or has to know of."""
    return {
        name: (folder / name).read_text(encoding="utf-8", errors="replace")
        for name in _FILES
        if (folder / name).is_file()
    }


def write_folder(folder: Path, texts: Mapping[str, str]) -> None:
    """Write these files, each whole or not at all; the inventory at last, as it says that the folder is init's."""
    for name in sorted(texts, key=lambda name: name == "hosts.yml"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path, 0o600 if name == VAULT else 0o644) as file:
            file.write(texts[name].encode())
