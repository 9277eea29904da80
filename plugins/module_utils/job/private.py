# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where the jobs of runtime ``host`` lie: what runs there as root, no one else may have written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .resource import JobError

NAME = "host_jobs"


def host_jobs_dir(jobs_dir: str) -> Path:
    """The folder beside JOBS_DIR: containers mount JOBS_DIR itself, and not what lies beside it."""
    return Path(os.path.normpath(jobs_dir)).parent / NAME


def make_private(folder: Path) -> None:
    """Make the folder where it is missing, and refuse one that somebody else could have written."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise JobError(
            f"{folder} cannot be made: {error.strerror}. Remedy: remove what lies there, or use become."
        ) from error
    check_private(folder)


def check_private(folder: Path) -> None:
    """The folder is ours alone, and so is the one it lies in, but for a place like /tmp where none renames it."""
    for path, shared in ((folder.parent, True), (folder, False)):
        try:
            found = path.stat() if shared else path.lstat()
        except OSError as error:
            raise JobError(f"{path} cannot be read: {error.strerror}. Remedy: use become.") from error
        mode = found.st_mode
        others = mode & (stat.S_IWGRP | stat.S_IWOTH) and not (shared and mode & stat.S_ISVTX)
        if not stat.S_ISDIR(mode) or found.st_uid not in {0, os.geteuid()} or others:
            raise JobError(
                f"{path} must be a folder of root that no one else can write: jobs that run on the host are started "
                f"from there. It is owned by {found.st_uid}, mode {stat.S_IMODE(mode):04o}. Remedy: find out who "
                f"changed it, then chown root {path} and chmod go-w {path}."
            )
