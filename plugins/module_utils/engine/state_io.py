# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The one place that reads the engine's files, holds of packages and the state of the clock. Reads only."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ..common.command_io import find_program, run_program
from .state import unit_text

TIMEOUT = 20.0
"""Seconds."""

_SYNCHRONIZED_BELOW = 16_000_000
"""Microseconds of the kernel's largest error below which systemd calls a clock synchronised (``ntp_synced``)."""


class SystemEngineFilesIO:
    """This host."""

    def read(self, path: str) -> bytes | None:
        try:
            return Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def unit(self, service: str) -> str:
        program = find_program("systemctl")
        return unit_text(run_program([program, "cat", service], TIMEOUT)) if program else ""


def held_facts(names: list[str]) -> list[str]:
    """Return which of these packages are on hold, sorted."""
    program = find_program("dpkg-query")
    if not names or program is None:
        return []
    answer = run_program([program, "-W", "-f", "${Package}\t${db:Status-Abbrev}\n", *names], TIMEOUT)
    return parse_holds(answer.stdout)


def parse_holds(text: str) -> list[str]:
    """Read lines ``name<TAB>status``: the first letter of the status is what is wanted of the package."""
    return sorted({line.partition("\t")[0] for line in text.splitlines() if line.partition("\t")[2].startswith("h")})


class _Timex(ctypes.Structure):
    """The beginning of ``struct timex`` (adjtimex(2)), with room for the rest of it."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("frequency", ctypes.c_long),
        ("largest_error", ctypes.c_long),
        ("rest", ctypes.c_byte * 1024),
    )


def clock_synchronized() -> bool | None:
    """Return what ``timedatectl`` calls "System clock synchronized", or None where the kernel does not say.

    Asked of the kernel, as timedatectl itself does: starting its service would cost a tenth of a second in each look.
    """
    timex = _Timex()
    try:
        status = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return None
    return timex.largest_error < _SYNCHRONIZED_BELOW if status >= 0 else None
