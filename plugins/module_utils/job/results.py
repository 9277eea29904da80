# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Results that a job left in the workspace: found below some paths, and packed without following links."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

from ..common.digests import Hashed
from ..common.reported import UnfitError, relative_path
from ..common.untrusted_folder import FolderError, UntrustedFolder

ARCHIVE = "results.tar"
MOST_FILES = 10_000
DEEPEST = 32


class ResultsError(Exception):
    """The results cannot be brought. The text says why, and what to do."""


def check_paths(paths: list[str]) -> None:
    """Each is a path below the workspace. Raises ``ResultsError``."""
    for path in paths:
        if not _fits(path):
            raise ResultsError(
                f"deepspeed_launch_results: {path!r} is not a path below the workspace. Remedy: write it relative to "
                "the workspace, as in checkpoints/model."
            )


def found(folder: UntrustedFolder, paths: list[str]) -> tuple[list[str], list[str]]:
    """Return the plain files at and below the paths, and what is missing or left out, in sentences."""
    files: dict[str, None] = {}
    problems: list[str] = []
    waiting = [(path, folder.kind(path)) for path in reversed(paths)]
    while waiting:
        path, kind = waiting.pop()
        if kind == "a plain file":
            files[path] = None
        elif kind is None:
            problems.append(f"{folder.where(path)} is not there.")
        elif kind != "a folder" or path.count("/") >= DEEPEST:
            why = "is too deep" if kind == "a folder" else f"is {kind}"
            problems.append(f"{folder.where(path)} {why}, and left out.")
        else:
            for name, inner in reversed(folder.entries(path).items()):
                below = f"{path}/{name}"
                if _fits(below):
                    waiting.append((below, inner))
                else:
                    problems.append(f"{folder.where(below)} has a name that is not brought, and is left out.")
        if len(files) > MOST_FILES or len(problems) > MOST_FILES:
            raise ResultsError(
                f"{folder.where('')}: the results are more than {MOST_FILES} files. Remedy: name fewer in "
                "deepspeed_launch_results, or have the job pack them."
            )
    return list(files), problems


def _fits(path: str) -> bool:
    try:
        relative_path(path)
    except UnfitError:
        return False
    return True


def pack(folder: UntrustedFolder, files: list[str], archive: Path, most: int) -> dict[str, dict[str, Any]]:
    """Write the files into an archive; return size and SHA-256 of each. Raises ``ResultsError``."""
    packed: dict[str, dict[str, Any]] = {}
    total = 0
    archive.unlink(missing_ok=True)  # the account that logs in can write there: what has the name is not followed
    with tarfile.open(archive, "x") as tar:
        for path in files:
            try:
                file = folder.open(path)
            except FolderError as error:
                raise ResultsError(str(error)) from None
            if file is None:  # gone since
                continue
            with file:
                member = tarfile.TarInfo(path)
                member.size = file.seek(0, 2)
                file.seek(0)
                total += member.size
                if total > most:
                    raise ResultsError(
                        f"{folder.where('')}: the results have more than {most >> 30} GiB. Remedy: name fewer in "
                        "deepspeed_launch_results, or raise deepspeed_launch_results_gib."
                    )
                hashed = Hashed(file)
                tar.addfile(member, hashed)
                packed[path] = {"size": member.size, "sha256": hashed.sha256}
    return packed
