# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The lock of a spool. The process that holds it is the transfer on this node, and has written into it who it is."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from .spool_io import read_json


def take(place: Path) -> int:
    """Return the open lock, held from now on. Raises ``BlockingIOError`` where another process holds it."""
    lock = os.open(place / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise
    return lock


def write(lock: int, reported: dict[str, Any]) -> None:
    """Write who holds it. In place: another file would be another lock."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(reported).encode(), 0)


def holder(place: Path) -> dict[str, Any]:
    """Return what the transfer that holds the lock has written into it."""
    return read_json(place / "lock") or {"pid": "?"}


def held_by(place: Path) -> dict[str, Any]:
    """Return the same, and nothing where no process holds the lock."""
    try:
        lock = os.open(place / "lock", os.O_RDWR)
    except FileNotFoundError:
        return {}
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return holder(place)
    finally:
        os.close(lock)
    return {}
