# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The extensions of VS Code that this collection has unpacked on a node, and the list that VS Code's server keeps.

``root`` holds a record for root only, and the folder ``extensions``, which the training container has as that of VS
Code's server. As the server installs others there and rewrites its list, containers can write in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..common.untrusted_folder import JSON_BYTES, FolderError, UntrustedFolder
from ..common.untrusted_text import on_one_line, parse_json

FOLDER, RECORD = "extensions", "unpacked.json"
LIST = f"{FOLDER}/extensions.json"
OBSOLETE = f"{FOLDER}/.obsolete"
"""What VS Code's server is to remove at its next start: it writes there what a user uninstalls."""
SERVER = "/root/.vscode-server/extensions"
"""The same folder, in the container."""

Record = dict[str, dict[str, Any]]
"""By folder the SHA-256 of the .vsix, and id, version, platform and size of the extension."""
_KEYS = {"sha256": str, "id": str, "version": str, "platform": str, "size": int}


def read_record(folder: UntrustedFolder) -> Record:
    """Return what this collection has unpacked. Raises ``FolderError`` where the record is damaged."""
    return {
        name: one
        for name, one in (folder.read_json(RECORD) or {}).items()
        if isinstance(one, dict) and all(isinstance(one.get(key), kind) for key, kind in _KEYS.items())
    }


def read_list(folder: UntrustedFolder) -> list[Any]:
    """Return the list of VS Code's server. Raises ``FolderError`` where it is none."""
    text = folder.read(LIST, JSON_BYTES)
    try:
        found = parse_json(text) if text and text.strip() else []
    except ValueError as error:
        raise FolderError(f"{folder.where(LIST)} cannot be read: {on_one_line(str(error))}. {_REMEDY}") from error
    if not isinstance(found, list):
        raise FolderError(f"{folder.where(LIST)} holds no list. {_REMEDY}")
    return found


_REMEDY = "Remedy: remove it on this node, and run again; VS Code's server makes another one."


def unpacked(root: str) -> dict[str, dict[str, Any]]:
    """Return by SHA-256 which folder a .vsix was unpacked to, and whether it is still there and listed."""
    folder = UntrustedFolder(root)
    try:
        record = read_record(folder)
    except FolderError:
        return {}
    try:
        listed = {identity(one): one.get("relativeLocation") for one in read_list(folder) if identity(one)}
    except FolderError:
        listed = {}
    return {
        one["sha256"]: {"folder": name, "intact": listed.get(one["id"]) == name and _is_there(folder, name)}
        for name, one in record.items()
    }


def _is_there(folder: UntrustedFolder, name: str) -> bool:
    try:
        return folder.kind(f"{FOLDER}/{name}/package.json") == "a plain file"
    except FolderError:  # changed meanwhile
        return False


def identity(entry: Any) -> str:
    """Return the id of an entry of the list in small letters; empty where it has none."""
    found = entry.get("identifier") if isinstance(entry, dict) else None
    name = found.get("id") if isinstance(found, dict) else None
    return name.lower() if isinstance(name, str) else ""


def updated_list(listed: Iterable[Any], wanted: Record, removed: Iterable[str]) -> list[Any]:
    """Return the list with an entry for each wanted extension, and without those of the folders ``removed``.

    Entries of others stay. One of a wanted extension stays as well where it names the folder: VS Code adds to it.
    """
    folders, gone = {one["id"]: name for name, one in wanted.items()}, list(removed)
    kept, seen = [], set()
    for entry in listed:
        location, name = entry.get("relativeLocation") if isinstance(entry, dict) else None, identity(entry)
        if (location == folders[name] and name not in seen) if name in folders else location not in gone:
            kept.append(entry)
            seen.add(name)
    return kept + [_entry(name, one) for name, one in wanted.items() if one["id"] not in seen]


def _entry(name: str, one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what VS Code writes of an extension from a .vsix. One that is pinned it does not update by itself."""
    return {
        "identifier": {"id": one["id"]},
        "version": one["version"],
        "location": {"$mid": 1, "path": f"{SERVER}/{name}", "scheme": "file"},
        "relativeLocation": name,
        "metadata": {
            "source": "vsix",
            "pinned": True,
            "targetPlatform": one["platform"] or "undefined",
            "size": one["size"],
        },
    }


def updated_obsolete(marked: Mapping[str, Any], wanted: Record) -> dict[str, Any]:
    """Return what is to be removed without what is wanted; VS Code's names of it may end with a platform."""
    names = [f"{one['id']}-{one['version']}" for one in wanted.values()]
    return {
        key: value
        for key, value in marked.items()
        if not any(key == name or key.startswith(f"{name}-") for name in names)
    }
