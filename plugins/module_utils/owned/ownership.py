# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Folders by their ownership: recorded and made at first use, removed at teardown if they are ours."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..common.untrusted_folder import UntrustedFolder
from .folders_io import Folders, OwnedError
from .names import ETC, files_of, is_job, is_of_root
from .record import ABSENT, EMPTY, IN_USE, MADE, OURS, THEIRS, Entry, Found, becomes_ours, state_of
from .system_folders import system_folder

SHOWN = 5
"""Names of what is left that a message lists."""


@dataclass(frozen=True)
class Removal:
    """What is to be removed of a folder: ``whole`` if it is ours; else, and of one that is not ours, its ``files`` (by
    patterns of paths below it), with ``known`` also those of names that this collection gives, and with ``jobs`` the
    folders of jobs. The folder itself only where nothing is left."""

    path: str
    whole: bool = False
    files: Sequence[str] = ()
    known: bool = False
    jobs: bool = False


@dataclass
class Outcome:
    """What was done, or would be in check mode. ``kept`` says of each folder that stays why."""

    changed: bool = False
    created: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    diff: list[dict[str, str]] = field(default_factory=list)


def states(folders: Folders, root: str, paths: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return of each folder its path without links and its state. What is not a folder is in use, by somebody else.

    Of an ``etc`` that is in use by somebody else also the files in it that would be ``replaced``.
    """
    record, known = folders.read(), dict[str, dict[str, Any]]()
    for path in paths:
        try:
            state = state_of(folders.find(path), record)
        except OwnedError:
            state = IN_USE
        known[path] = {"real": folders.real(path), "state": state}
    if any(one["state"] == IN_USE for one in known.values()):
        made = folders.made(root)
        for one in known.values():
            if one["state"] == IN_USE and one["real"] in made:
                one["state"] = MADE
    etc = known.get(f"{root}/{ETC}", {})
    if etc.get("state") == IN_USE:
        etc["replaced"] = folders.replaced(etc["real"])
    return known


def record_folders(folders: Folders, root: str, paths: Iterable[str], *, check_mode: bool = False) -> Outcome:
    """Record folders before anything is put into them, and make those that are missing.

    One after the other: what a run that is cut off leaves unrecorded is empty, and so ours when the next one sees it.
    """
    record, made, done = folders.read(), folders.made(root), Outcome()
    for path in paths:
        _refuse_system(path, folders.real(path))
        found = folders.find(path)
        state = state_of(found, record, found is not None and found.real in made)
        if state in (OURS, THEIRS):
            continue
        done.changed = True
        before = "absent\n" if found is None else "not recorded\n"
        after = "ours\n" if becomes_ours(state) else "used, not ours\n"
        done.diff.append({"before": before, "after": after, "before_header": path, "after_header": path})
        if state == ABSENT:
            done.created.append(path)
        if check_mode:
            continue
        found = found or folders.create(path)
        record[found.real] = Entry(found.identity, becomes_ours(state))
        folders.write(record)
    return done


def remove_folders(folders: Folders, root: str, removals: Sequence[Removal], *, check_mode: bool = False) -> Outcome:
    """Remove what is ours. Each folder is judged before the first is touched."""
    record, made, done = folders.read(), folders.made(root), Outcome()
    judged = [(removal, folders.find(removal.path)) for removal in removals]
    for removal in removals:
        _refuse_system(removal.path, folders.real(removal.path))
    removing = _Removing(folders, record, done, check_mode, folders.real(root))
    for removal, found in judged:
        if found is None:
            removing.forget(folders.real(removal.path))
        else:
            removing.of(removal, found, state_of(found, record, found.real in made))
    for real in folders.missing(record):
        removing.forget(real)
    if done.removed:
        removed = "".join(f"{path}\n" for path in done.removed)
        done.diff.append({"before": removed, "after": "", "before_header": root, "after_header": root})
    return done


@dataclass
class _Removing:
    folders: Folders
    record: dict[str, Entry]
    done: Outcome
    check_mode: bool
    root: str
    gone: set[str] = field(default_factory=set)
    """Folders that are removed, by their real paths: in check mode they are still there."""

    def forget(self, real: str) -> None:
        if self.record.pop(real, None):
            self.done.changed = True
            if not self.check_mode:
                self.folders.write(self.record)

    def of(self, removal: Removal, found: Found, state: str) -> None:
        whole = removal.whole and state in (OURS, MADE, EMPTY)
        left: list[str] = []
        if not whole:
            left = self._remove_known(removal, found)
        elif not self.check_mode:
            self.folders.empty(found)
        why = self._why(removal, found, state, left)
        if not left and not why and not (self.check_mode or self.folders.remove_empty(found)):
            why = "it is empty, but something is mounted there"
        if why:
            self.done.kept.append(f"{removal.path} is kept: {why}")
        elif not left:
            self.done.changed = True
            self.done.removed.append(removal.path)
            self.gone.add(found.real)
        # Its use has ended. The next one begins with what is in it then.
        if state == THEIRS or not (left or why):
            self.forget(found.real)

    def _remove_known(self, removal: Removal, found: Found) -> list[str]:
        """Remove our files, and jobs, from a folder; return what is left at its top."""
        folder = self.folders.contents(found.real)
        kinds = folder.entries()
        gone: list[str] = []
        if removal.jobs:
            gone += [name for name, kind in kinds.items() if kind == "a folder" and is_job(name, folder.entries(name))]
        gone += _matching(folder, [*removal.files, *(files_of(found.real, self.root) if removal.known else ())])
        self.done.changed |= bool(gone)
        self.done.removed += [f"{removal.path}/{name}" for name in gone]
        parents = _parents(gone)
        if self.check_mode:
            names = [name for name in kinds if f"{found.real}/{name}" not in self.gone]
            return [name for name in names if not _goes(folder, name, set(gone), set(parents))]
        for name in gone:
            folder.remove(name)
        for name in parents:
            folder.remove_if_empty(name)
        return list(folder.entries())

    def _why(self, removal: Removal, found: Found, state: str, left: Sequence[str]) -> str:
        """Return why a folder stays; empty where it goes, or where nothing but what is left on purpose is in it."""
        names = [name for name in left if not (found.real == self.root and is_of_root(name))]
        listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        if state == THEIRS:
            return f"it had files in it when it was first used here{f' (now: {listed})' if names else ''}"
        if not names:
            return ""
        if state == IN_USE and (removal.whole or removal.jobs):
            return f"there is no record that this collection created it, and it is not empty ({listed})"
        return f"it holds what this collection did not put there ({listed})"


def _matching(folder: UntrustedFolder, patterns: Iterable[str]) -> list[str]:
    """Return the files, no folders, that are named: the last part of a name may be a pattern."""
    found: dict[str, None] = {}
    for pattern in patterns:
        parent, slash, last = pattern.rpartition("/")
        if not any(sign in last for sign in "*?["):
            if folder.kind(pattern) not in (None, "a folder"):
                found[pattern] = None
        elif not parent or folder.kind(parent) == "a folder":
            kinds = folder.entries(parent)
            matching = (name for name, kind in kinds.items() if kind != "a folder" and fnmatch.fnmatchcase(name, last))
            found.update(dict.fromkeys(f"{parent}{slash}{name}" for name in matching))
    return list(found)


def _parents(names: Iterable[str]) -> list[str]:
    """Return the folders that names lie in, the innermost first."""
    found = {"/".join(parts[:end]) for parts in (name.split("/") for name in names) for end in range(1, len(parts))}
    return sorted(found, key=lambda name: (-name.count("/"), name))


def _goes(folder: UntrustedFolder, name: str, gone: set[str], parents: set[str]) -> bool:
    """Whether a name is gone once the files and their empty folders are."""
    if name not in parents:
        return name in gone
    return all(_goes(folder, f"{name}/{inner}", gone, parents) for inner in folder.entries(name))


def _refuse_system(path: str, real: str) -> None:
    system = system_folder(real)
    if system:
        leads = f", which leads to {real}," if real != path else ""
        raise OwnedError(f"{path}{leads} belongs to the operating system ({system}). Remedy: name another folder.")
