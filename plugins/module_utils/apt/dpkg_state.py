# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether dpkg was interrupted on a host, and how it is repaired: parsers and the order of steps, no commands.

Formats: dpkg-query(1), ``db:Status-Abbrev``; the journal is what apt checks before it refuses to work (debSystem in
apt-pkg/deb/debsystem.cc: a file in ``/var/lib/dpkg/updates`` whose name has digits only).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable, Protocol

from ..common.command_io import TIMED_OUT, CommandResult

QUERY = ("dpkg-query", "-W", "-f", "${Package}\t${db:Status-Abbrev}\n")
CONFIGURE = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
FIX_BROKEN = (
    *("apt-get", "--yes", "--no-remove", "--fix-broken"),
    *("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"),
    *("-o", "DPkg::Lock::Timeout=60", "install"),
)
"""For packages that were cut off while they were unpacked, which ``--configure`` leaves alone. Removes nothing."""

POLL = 1.0
"""Seconds between two checks of the lock."""

_STATES = {
    "H": "half-installed",
    "U": "unpacked",
    "F": "half-configured",
    "W": "triggers-awaited",
    "t": "triggers-pending",
}


class DpkgError(Exception):
    """What is wrong with dpkg on this host, and what to do."""


@dataclass(frozen=True)
class DpkgState:
    """``unfinished``: packages with their state, such as ``rsync (half-configured)``; ``busy``: one is at work now."""

    unfinished: tuple[str, ...] = ()
    journal: bool = False
    busy: bool = False

    @property
    def interrupted(self) -> bool:
        return bool(self.unfinished or self.journal)

    def words(self) -> str:
        return ", ".join([*self.unfinished, *(["the journal in /var/lib/dpkg/updates"] if self.journal else [])])

    def facts(self) -> dict[str, Any]:
        return {"unfinished": list(self.unfinished), "journal": self.journal, "busy": self.busy}


class DpkgIO(Protocol):
    """What is read from a host, and done on it; tests hand in a fake."""

    def query(self) -> CommandResult | None:
        """Run QUERY, or return None where there is no dpkg."""

    def updates(self) -> list[str]:
        """Return the names in /var/lib/dpkg/updates."""

    def locked(self) -> bool:
        """Return whether a process holds one of dpkg's locks, without taking them."""

    def change(self, command: tuple[str, ...], timeout: float) -> CommandResult:
        """Run a command that changes packages, without questions."""


def parse_unfinished(text: str) -> tuple[str, ...]:
    """Read lines ``name<TAB>status``: the packages that dpkg has begun with and not finished."""
    found = []
    for line in text.splitlines():
        name, dummy, status = line.partition("\t")
        flags = f"{status}   "
        state = _STATES.get(flags[1])
        if flags[2] == "R" and flags[1] not in "nc":
            state = f"{state or 'installed'}, to be reinstalled"
        if name and state:
            found.append(f"{name} ({state})")
    return tuple(sorted(set(found)))


def pending(names: Iterable[str]) -> bool:
    """Return whether these files of the journal make apt refuse to work."""
    return any(name.isdecimal() for name in names)


def read_state(io: DpkgIO) -> DpkgState:
    """Read dpkg's state. What a running dpkg leaves is not an interruption, so the lock is checked twice."""
    busy = io.locked()
    answer = io.query()
    if answer is None:
        return DpkgState()
    if answer.rc != 0:
        raise DpkgError(
            f"dpkg-query ended with status {answer.rc}: {answer.text}. Remedy: run dpkg --audit on this host"
        )
    journal = pending(io.updates())
    return DpkgState(parse_unfinished(answer.stdout), journal, busy or io.locked())


@dataclass(frozen=True)
class Limits:
    """Seconds to wait for another dpkg, and for each command."""

    lock: float
    command: float


def repair(
    io: DpkgIO, limits: Limits, *, check: bool, sleep: Callable[[float], None], clock: Callable[[], float]
) -> tuple[DpkgState, list[str]]:
    """Finish what was interrupted; return what was found and the commands that were needed (in check mode: the first).

    Another dpkg or apt that is at work is waited for: mostly it finishes its packages itself.
    """
    found = _idle(io, limits.lock, sleep, clock)
    if not found.interrupted:
        return found, []
    if check:
        return found, [" ".join(CONFIGURE)]
    done, reported, now = [], "", found
    for command in (CONFIGURE, FIX_BROKEN):
        answer = io.change(command, limits.command)
        done.append(" ".join(command))
        late = f"no end within {limits.command:g} s" if answer.rc == TIMED_OUT else ""
        reported = late or " ".join(answer.text.split())[-400:] or f"status {answer.rc}"
        now = _idle(io, limits.lock, sleep, clock)
        if not now.interrupted:
            return found, done
    raise DpkgError(
        f"dpkg was interrupted and cannot be repaired: {now.words()}. It printed: {reported.rstrip('.')}. "
        "Remedy: run dpkg --audit on this host, correct what it names, and run again"
    )


def _idle(io: DpkgIO, limit: float, sleep: Callable[[float], None], clock: Callable[[], float]) -> DpkgState:
    end = clock() + limit
    while True:
        state = read_state(io)
        if not state.busy:
            return state
        if clock() >= end:
            raise DpkgError(
                f"another dpkg or apt has been at work for {limit:g} s. Remedy: wait until it ends "
                "(ps -C dpkg,apt,apt-get,unattended-upgr on this host names it), and run again"
            )
        sleep(POLL)
