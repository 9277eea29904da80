# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Unpacks extensions of VS Code on a node, lists them for its server, and removes those that are wanted no longer."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO

from ..common.digests import Hashed
from ..common.untrusted_folder import UntrustedFolder, kind_of
from .state import (
    FOLDER,
    LIST,
    OBSOLETE,
    RECORD,
    Record,
    read_list,
    read_record,
    unpacked,
    updated_list,
    updated_obsolete,
)
from .vsix import Extension, VsixError, read_extension, unpack_extension

INCOMING = "incoming"
"""Where an extension is unpacked before it takes its place; containers do not have this folder."""


@dataclass(frozen=True)
class _File:
    """A .vsix that stays open, so that what is unpacked is what was checked. ``extension`` None: it is unpacked."""

    path: str
    file: BinaryIO
    sha256: str
    extension: Extension | None


def apply(root: str, paths: Sequence[str], machine: str, check: bool) -> dict[str, Any]:
    """Have the extensions of these files unpacked, and no others of this collection. Return what the module returns."""
    folder = UntrustedFolder(root)
    record, listed, marked = read_record(folder), read_list(folder), folder.read_json(OBSOLETE) or {}
    known = unpacked(root)
    with ExitStack() as stack:
        files, wanted = _wanted([_open(stack, path, known, machine) for path in paths], known, record)
        new = [name for name, one in files.items() if one.extension]
        gone = [name for name in record if name not in wanted]
        wanted_list, left = updated_list(listed, wanted, gone), updated_obsolete(marked, wanted)
        changed = bool(new or gone or wanted_list != listed or left != marked)
        if changed and not check:
            folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.make_folder(FOLDER, 0o755)
            for name in new:
                _unpack(folder, name, files[name])
                record = {**record, name: wanted[name]}
                _write(folder, RECORD, record, 0o600)
            # Before a folder goes, VS Code's server must not find it listed.
            for path, before, after in ((LIST, listed, wanted_list), (OBSOLETE, marked, left)):
                if before != after:
                    _write(folder, path, after, 0o644)
            for name in gone:
                folder.remove(f"{FOLDER}/{name}")
            _write(folder, RECORD, wanted, 0o600)
    before = [one["folder"] for one in known.values() if one["intact"]]
    diff = {"before": _lines(before), "after": _lines(wanted), "before_header": root, "after_header": root}
    return {"changed": changed, "unpacked": new, "removed": gone, "extensions": sorted(wanted), "diff": diff}


def remove(root: str, check: bool) -> dict[str, Any]:
    """Remove what this collection has unpacked, and folders that are empty then."""
    folder = UntrustedFolder(root)
    empty = any(folder.kind(place) is not None and not folder.entries(place) for place in (FOLDER, ""))
    result = apply(root, [], "", check)
    for place in () if check else (folder.root / FOLDER, folder.root):
        with contextlib.suppress(OSError):
            place.rmdir()
    return {**result, "changed": result["changed"] or empty}


def _open(stack: ExitStack, path: str, known: Mapping[str, Any], machine: str) -> _File:
    """Open and check a file; what is unpacked already was checked then."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise VsixError(
            f"{path}: it cannot be opened: {error.strerror}. Remedy: name a file that is on this node; "
            "site.yml --tags assets brings those of assets_sources."
        ) from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise VsixError(f"{path}: it is {kind_of(mode)}, not a plain file. Remedy: name a .vsix.")
    file = stack.enter_context(os.fdopen(handle, "rb"))
    sha256 = Hashed(file).read_all().sha256
    there = known.get(sha256, {}).get("intact")
    return _File(path, file, sha256, None if there else read_extension(file, path, machine))


def _wanted(files: Iterable[_File], known: Mapping[str, Any], record: Record) -> tuple[dict[str, _File], Record]:
    """Return the files by the folders that they are unpacked to, and what is recorded of them then."""
    found: dict[str, _File] = {}
    wanted: Record = {}
    for one in files:
        made = one.extension
        name = made.folder if made else known[one.sha256]["folder"]
        entry = made.entry(one.sha256) if made else record[name]
        for other, recorded in wanted.items():
            if recorded["id"] == entry["id"]:
                raise VsixError(
                    f"{one.path}: it is {entry['id']}, and {found[other].path} is that, too. Remedy: list one of them."
                )
        found[name], wanted[name] = one, entry
    return found, wanted


def _unpack(folder: UntrustedFolder, name: str, one: _File) -> None:
    """Unpack beside what containers have, and put the whole in place in one step."""
    if one.extension is None:
        return
    target = folder.root / INCOMING
    folder.remove(INCOMING)
    try:
        target.mkdir()
        target.chmod(0o755)
        unpack_extension(one.file, one.path, one.extension, target)
        folder.remove(f"{FOLDER}/{name}")
        folder.rename(INCOMING, f"{FOLDER}/{name}")
    finally:
        folder.remove(INCOMING)


def _write(folder: UntrustedFolder, path: str, content: Any, mode: int) -> None:
    if content:
        folder.write(path, json.dumps(content, separators=(",", ":")).encode(), mode)
    else:
        folder.remove(path)


def _lines(names: Iterable[str]) -> str:
    return "".join(f"{name}\n" for name in sorted(names))
