# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Files that a role owns, as changes of a plan: the comparison is that of ``managed_files``, which writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...module_utils.engine.daemon_config import same
from .changes import Changes, Sealed, sealed
from .managed_file import ManagedFile, file_is_right

ABSENT: dict[str, Any] = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}


def name_of(item: ManagedFile) -> str:
    """Return how a plan names it: where this collection keeps a block of it, the rest is somebody else's."""
    return item.path if item.block is None else f"the block '{item.block}' of {item.path}"


def found_file(known: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return what ``node_facts`` found of a file; one that it was not asked about counts as absent."""
    fact = known.get(path)
    return dict(fact) if isinstance(fact, Mapping) else dict(ABSENT)


def differs(item: ManagedFile, known: Mapping[str, Any], key: str) -> bool:
    """Whether ``managed_files`` would write or remove it. ``key`` is the one by which secrets were digested."""
    return not file_is_right(item, found_file(known, item.path), key)


def add_file(changes: Changes, item: ManagedFile, known: Mapping[str, Any], key: str, why: str = "") -> None:
    """Add the change of a file that differs: of its content, or else of its mode and owner."""
    found = found_file(known, item.path)
    exists = found.get("exists") is True
    if exists and item.wanted and item.same_text(found, key):
        changes.add(name_of(item), _attributes(found), _wanted(item), why)
        return
    before = _content(item, found) if exists else None
    after: Any = None
    if item.wanted:
        after = f"directory, {_wanted(item)}" if item.text is None else item.text or "(an empty file)"
        if item.secret:
            after = sealed(item.text or "", key)
    if same(before, after):  # no text that is known tells them apart
        before = f"SHA-256 {found.get('sha256')}"
    changes.add(name_of(item), before, after, why)


def entry_of(item: ManagedFile) -> dict[str, Any]:
    """Return a file as ``managed_files`` takes it; a directory has no content."""
    entry = {name: getattr(item, name) for name in ("path", "mode", "owner", "group", "secret", "state")}
    if item.block is not None:
        entry["block"] = item.block
    return entry if item.content is None else {**entry, "content": item.content}


def fact_after(item: ManagedFile, key: str) -> dict[str, Any]:
    """Return what ``node_facts`` would find once the file is as wanted."""
    if not item.wanted:
        return dict(ABSENT)
    fact: dict[str, Any] = {
        "exists": True,
        "sha256": item.sha256,
        "mode": item.mode,
        "owner": item.owner,
        "group": item.group,
    }
    if item.mark is not None:
        fact["marked"] = True
    if item.secret:
        fact.update(sha256=sealed(item.text or "", key).digest, keyed=True)
    return fact


def _content(item: ManagedFile, found: Mapping[str, Any]) -> Any:
    """What is there: its text where it was returned, else its digest. Nothing of a secret."""
    digest = str(found.get("sha256") or "")
    if item.secret or found.get("keyed"):
        return Sealed(digest)
    known = found.get("content")
    if known is not None:
        return str(known)
    return f"SHA-256 {digest}" if digest else f"directory, {_attributes(found)}"


def _wanted(item: ManagedFile) -> str:
    return _attributes({"mode": item.mode, "owner": item.owner, "group": item.group})


def _attributes(fact: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {fact.get(name)}" for name in ("mode", "owner", "group"))
