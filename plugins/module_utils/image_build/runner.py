# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs one build of an image in the background: it outlives a broken connection, and its log can be read meanwhile.

In its folder: ``lock`` (held by the build, names the image), ``log``, and ``rc`` (exit status, once it has ended).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..common.private_folder import make_private

PIECE = 256 << 10
"""Bytes of the log that one look returns at most."""


class BuildError(Exception):
    """The build cannot be started; the text says why and what to do."""


def start(folder: Path, image: str, command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Start the build; False where the same one is running already. Raises ``BuildError`` where another one is."""
    make_private(folder)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(lock, 1024, 0).decode("utf-8", "replace").strip()
            if other == image:
                return False
            raise BuildError(
                f"another build ({other or 'of an unknown image'}) is running there. "
                "Remedy: wait until it has ended, and run again."
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{image}\n".encode(), 0)
        (folder / "rc").unlink(missing_ok=True)
        with (folder / "log").open("wb") as log:
            # The shell inherits the lock and keeps it for as long as it runs.
            subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    'rc=$1; shift; "$@"; echo $? >"$rc.new"; mv "$rc.new" "$rc"',
                    "sh",
                    str(folder / "rc"),
                    *command,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
                pass_fds=[lock],
                cwd="/",
            )
        return True
    finally:
        os.close(lock)


def gather(folder: Path, offset: int) -> dict[str, Any]:
    """Return the next piece of the log, where it ends, whether the build still runs, and its exit status."""
    running = _running(folder)
    rc = _exit_status(folder)
    with (folder / "log").open("rb") as log:
        log.seek(offset)
        piece = log.read(PIECE)
        size = os.fstat(log.fileno()).st_size
    return {
        "text": piece.decode("utf-8", "replace"),
        "offset": offset + len(piece),
        "size": size,
        "running": running,
        # A build that was killed has left none.
        "rc": rc if rc is not None or running else 137,
    }


def _running(folder: Path) -> bool:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _exit_status(folder: Path) -> int | None:
    try:
        return int((folder / "rc").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
