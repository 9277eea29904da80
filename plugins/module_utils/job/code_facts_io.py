# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a node says of the code in its workspace: files that the source has lost, and code that no job needs."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from ..common.untrusted_folder import FolderError, UntrustedFolder
from .code_places import CODE, COPIED, DIGEST, start_folder
from .private import host_jobs_dir
from .record import JOB_NAME
from .resource import ACTIVE

YOUNG = 3600.0
"""Seconds for which code stays that no job has: a playbook that has just written it is about to start one."""
SILENT = 600.0
"""Seconds without a heartbeat after which a job no longer counts as running: its container may be restarting."""


def code_facts(
    workspace: str, wanted: Mapping[str, str], jobs_dir: str | None, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """Return what is known of the code below ``workspace``, whose ``wanted`` files are those of the source now.

    ``left`` and ``kept`` are files that an earlier source had, as they were copied and as somebody has changed them;
    ``recorded`` says whether the wanted ones are known as copied; ``unneeded`` is code by digest; ``readers`` are jobs
    that an earlier release has started in the workspace itself; ``running`` names for each other job that runs which
    files of its own code are not what it was started from.
    """
    folder = UntrustedFolder(workspace)
    own = {name: digest for name, digest in wanted.items() if not name.startswith(f"{CODE}/")}
    copied = _copied(folder)
    former = {name: digest for name, digest in copied.items() if name not in own}
    now = {name: _digest(folder, name) for name in former}
    jobs = list(_jobs(jobs_dir)) if jobs_dir else []
    needed = {name.split("/")[2] for name in wanted if name.startswith(f"{CODE}/")}
    needed |= {str(_options(request).get("code")) for _name, _state, request in jobs}
    running = {name: request for name, state, request in jobs if _runs(state, clock()) and _manifest(request)}
    return {
        "left": sorted(name for name, digest in former.items() if now[name] == digest),
        "kept": {name: digest for name, digest in former.items() if now[name] not in (None, digest)},
        "copied": {name: digest for name, digest in former.items() if now[name] == digest},
        "recorded": all(copied.get(name) == digest for name, digest in own.items()),
        "unneeded": sorted(_unneeded(folder, needed, clock())),
        "readers": sorted(name for name, request in running.items() if not _options(request).get("code")),
        "running": {
            name: _changed(folder, name, request) for name, request in running.items() if _options(request).get("code")
        },
    }


def _changed(folder: UntrustedFolder, job: str, request: Mapping[str, Any]) -> list[str]:
    """Files of a run's own copy that its specification has otherwise; a script may have written some of them."""
    members = request["spec"].get("members")
    first = members[0].get("name") if isinstance(members, list) and members and isinstance(members[0], dict) else ""
    own = start_folder(job, str(first or ""))
    return sorted(name for name, digest in _manifest(request).items() if _digest(folder, f"{own}/{name}") != digest)


def _options(request: Mapping[str, Any]) -> Mapping[str, Any]:
    found = request.get("options")
    return found if isinstance(found, dict) else {}


def _manifest(request: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = request.get("spec")
    fingerprint = spec.get("fingerprint") if isinstance(spec, dict) else None
    found = fingerprint.get("workspace") if isinstance(fingerprint, dict) else None
    return _entries(found) if isinstance(found, dict) else {}


def _entries(found: Mapping[str, Any]) -> dict[str, str]:
    """Paths with their SHA-256, of a file that containers can write."""
    return {
        name: digest
        for name, digest in found.items()
        if isinstance(digest, str) and DIGEST.fullmatch(digest) and name.isprintable() and 0 < len(name) <= 4096
    }


def _copied(folder: UntrustedFolder) -> dict[str, str]:
    """The record of role workspace. Containers can write it: at most it names files that they could remove as well."""
    try:
        found = folder.read_json(COPIED) or {}
    except (OSError, FolderError):
        return {}
    return _entries(found)


def _digest(folder: UntrustedFolder, name: str) -> str | None:
    try:
        return folder.digest(name)
    except (OSError, FolderError):
        return None


def _jobs(jobs_dir: str) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield name, state and request of each job of this node; one that cannot be read has neither."""
    for place in (jobs_dir, host_jobs_dir(jobs_dir)):
        jobs = UntrustedFolder(place)
        with contextlib.suppress(OSError, FolderError):
            for name, kind in jobs.entries().items():
                if kind == "a folder" and JOB_NAME.fullmatch(name):
                    yield name, _read(jobs, f"{name}/state.json"), _read(jobs, f"{name}/spec.json")


def _read(jobs: UntrustedFolder, name: str) -> dict[str, Any]:
    try:
        return jobs.read_json(name) or {}
    except (OSError, FolderError):
        return {}


def _runs(state: Mapping[str, Any], now: float) -> bool:
    beat = state.get("heartbeat")
    return state.get("state") in ACTIVE and isinstance(beat, (int, float)) and now - beat < SILENT


def _unneeded(folder: UntrustedFolder, needed: set[str], now: float) -> Iterator[str]:
    with contextlib.suppress(OSError, FolderError):
        for name in folder.entries(CODE):
            status: os.stat_result | None = folder.status(f"{CODE}/{name}")
            if DIGEST.fullmatch(name) and name not in needed and status and now - status.st_mtime > YOUNG:
                yield name
