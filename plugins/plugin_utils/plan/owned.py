# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Records of folders that are ours, as changes of a plan. The module ``owned_folders`` makes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...module_utils.owned.record import ABSENT, EMPTY, IN_USE, MADE, OURS, THEIRS, becomes_ours
from .changes import Changes
from .files import found_file
from .managed_file import ManagedFile

_OTHERS = (IN_USE, THEIRS)
_THIS = "this collection's"
_WORDS = {
    ABSENT: (_THIS, "it is made"),
    EMPTY: (_THIS, "it is empty"),
    MADE: (_THIS, "it holds only what it made"),
    IN_USE: ("not this collection's", "there are other files in it: teardown leaves it"),
}


def requested_folders(role_vars: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return what ``node_facts`` is requested about folders."""
    return {"cluster": str(role_vars["cluster_name"]), "root": str(role_vars["cluster_root"]), "paths": list(paths)}


def unrecorded(facts: Mapping[str, Any], paths: Iterable[str], *, there: bool = False) -> list[str]:
    """Return the folders of which nothing is recorded; with ``there``, only such as exist."""
    found = dict.fromkeys(path for path in paths if _state(facts, path) in _WORDS)
    return [path for path in found if not (there and _state(facts, path) == ABSENT)]


def ours_to_change(facts: Mapping[str, Any], folders: Iterable[ManagedFile]) -> list[ManagedFile]:
    """Leave out folders that somebody else made: their mode and owner stay."""
    return [item for item in folders if _state(facts, item.path) not in _OTHERS]


def owner_of_others(facts: Mapping[str, Any], path: str) -> int:
    """Return the numeric owner of a folder that somebody else made; 0 of all others."""
    owner = _of_others(facts, path).get("owner")
    return owner if isinstance(owner, int) else 0


def exposed(facts: Mapping[str, Any], paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield path and mode of folders that somebody else made and that not only their owner can write."""
    for path in paths:
        mode = str(_of_others(facts, path).get("mode") or "")
        if re.fullmatch("[0-7]{4}", mode) and int(mode, 8) & 0o022:
            yield path, mode


def add_records(changes: Changes, facts: Mapping[str, Any], paths: Iterable[str]) -> None:
    """Add the records that are made, of paths that ``unrecorded`` returned."""
    for path in paths:
        whose, why = _WORDS[_state(facts, path)]
        changes.add(f"record of folder {path}", None, whose, why)


def entries(paths: Iterable[str]) -> list[dict[str, str]]:
    """Return folders as ``owned_folders`` takes them."""
    return [{"path": path} for path in paths]


def recorded(facts: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return the facts of folders once these are recorded."""
    after = {
        path: {**_folder(facts, path), "state": OURS if becomes_ours(_state(facts, path)) else THEIRS} for path in paths
    }
    return {**_folders(facts), **after}


def real_paths(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return where links lead, by path."""
    return {path: str(_folder(facts, path).get("real") or path) for path in _folders(facts)}


def is_absent(facts: Mapping[str, Any], path: str) -> bool:
    """Whether it is known that the host has neither a folder nor anything else there."""
    return _state(facts, path) == ABSENT


def _folders(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    found = facts.get("folders")
    return found if isinstance(found, Mapping) else {}


def _folder(facts: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    found = _folders(facts).get(path)
    return found if isinstance(found, Mapping) else {}


def _state(facts: Mapping[str, Any], path: str) -> str:
    return str(_folder(facts, path).get("state") or "")


def _of_others(facts: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return what was found of a folder that somebody else made; nothing of all others."""
    files = facts.get("files")
    return found_file(files, path) if isinstance(files, Mapping) and _state(facts, path) in _OTHERS else {}
