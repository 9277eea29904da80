# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What apt would do for a driver, simulated before anything is changed.

apt is run over the host's own sources and one more, in a directory that is removed again; then it simulates. So a
repository that cannot be reached, a key that does not match, a branch that is gone and a package that would have to
go are known in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..common.command_io import CommandResult
from .apt_failures import (
    UNREACHABLE,
    Goal,
    Trouble,
    explain_update,
    missing,
    no_manager,
    no_version,
    too_old,
    too_old_for_kernel,
    transitional,
    unsolvable,
)
from .host import is_driver_package
from .packages import DKMS, PINNED, SIGNED, Choice

PRIORITY = 1001
"""Above 1000, so that a newer version which is installed gives way too: apt_preferences(5)."""

_ACTION = re.compile(r"^(?P<verb>Inst|Remv|Purg) (?P<name>\S+)(?: \[(?P<old>[^\]]+)\])?(?: \((?P<new>\S+))?")
_NUMBERED = re.compile(r"(?:lib)?(?:nvidia|cuda)[a-z0-9-]*?-(?P<branch>[3-9][0-9]{2})(?:-|$)")


class AptIO(Protocol):
    """A trial of apt; tests hand in a fake."""

    def update(self) -> CommandResult:
        """Fetch the indices."""

    def policy(self, names: Sequence[str]) -> str:
        """Return ``apt-cache policy`` of these packages."""

    def pin(self, text: str) -> None:
        """Put a text into the preferences of the trial."""

    def simulate(self, names: Sequence[str]) -> CommandResult:
        """Simulate the installation of these packages."""

    def held(self) -> list[str]:
        """Return the packages that are on hold."""


@dataclass(frozen=True)
class Preview:
    """What an installation would do: versions by package name. ``version`` is the driver's."""

    kind: str | None = None
    version: str | None = None
    packages: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    preferences: str = ""
    installs: Mapping[str, str] = field(default_factory=dict)
    replaces: Mapping[str, str] = field(default_factory=dict)
    removes: Mapping[str, str] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    notes: tuple[str, ...] = ()


def parse_policy(text: str) -> dict[str, list[str]]:
    """Return the versions of each package in ``apt-cache policy``'s output that a source offers, the newest first."""
    found: dict[str, list[str]] = {}
    versions: list[str] = []
    pending = ""
    for line in text.splitlines():
        if line and not line.startswith(" "):
            versions = found.setdefault(line.rstrip().rstrip(":"), [])
            pending = ""
        elif re.match(r"^ (\*\*\*|   ) \S", line):
            pending = line[5:].split()[0]
        elif (
            pending
            and pending not in versions
            and re.match(r"^ {8,}-?\d+ ", line)
            and "/var/lib/dpkg/status" not in line
        ):
            versions.append(pending)
    return {name: versions for name, versions in found.items() if versions}


def upstream(version: str) -> str:
    """Return the driver's own version in a package's: no epoch, no revision of the distribution."""
    return version.rpartition(":")[2].split("-", maxsplit=1)[0].split("+", maxsplit=1)[0]


def numeric(version: str) -> tuple[int, ...]:
    """Return a version for comparison."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def in_branch(version: str, branch: int) -> bool:
    """Return whether a driver's version is of a branch."""
    return version.split(".", maxsplit=1)[0] == str(branch)


def common_version(versions: Mapping[str, Sequence[str]], names: Iterable[str], branch: int) -> str | None:
    """Return the highest version of the driver that all of these packages have in this branch, or None."""
    common: set[str] | None = None
    for name in names:
        offered = {upstream(version) for version in versions.get(name, ()) if in_branch(upstream(version), branch)}
        common = offered if common is None else common & offered
    return max(common or (), key=numeric, default=None)


def preferences(version: str) -> str:
    """Return apt's preferences that keep every package of the driver at one version."""
    return (
        "Explanation: Kept by swarmspeed.cluster (nvidia_driver). Kernel module and libraries are of one version.\n"
        f"Package: {PINNED}\nPin: version {version}-*\nPin-Priority: {PRIORITY}\n"
    )


def pinned_version(text: str) -> str | None:
    """Return the version in preferences that ``preferences`` wrote, or None."""
    match = re.search(r"^Pin: version (\d[\d.]*)-\*$", text, re.MULTILINE)
    return match[1] if match and preferences(match[1]) == text else None


def parse_simulation(text: str) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return what ``apt-get --simulate`` newly installs, what it replaces (new versions), and what it removes (old)."""
    installs: dict[str, str] = {}
    replaces: dict[str, str] = {}
    removes: dict[str, str] = {}
    for line in text.splitlines():
        match = _ACTION.match(line)
        if match is None:
            continue
        name = match["name"]
        if match["verb"] != "Inst":
            removes[name] = match["old"] or ""
        elif match["old"]:
            replaces[name] = match["new"] or ""
        else:
            installs[name] = match["new"] or ""
    return installs, replaces, removes


def gather(io: AptIO, goal: Goal, address: str) -> Preview:
    """Try the choices in their order; return the first that apt can carry out, or why none can be.

    ``address`` is of the repository that is new, empty for none.
    """
    trouble = explain_update(io.update(), address)
    if trouble is not None:
        return Preview(troubles=(trouble,))
    names = dict.fromkeys(name for choice in goal.choices for name in (*choice.packages, *choice.optional))
    names.update(dict.fromkeys(goal.fabric))
    versions = parse_policy(io.policy(list(names)))
    troubles: list[Trouble] = []
    for choice in goal.choices:
        found = _try(io, choice, goal, versions)
        if not found.troubles:
            return replace(found, notes=(*map(_instead, troubles), *found.notes))
        troubles += found.troubles
    return Preview(troubles=tuple(troubles))


def _decide(choice: Choice, goal: Goal, versions: Mapping[str, Sequence[str]]) -> tuple[str, list[str], Trouble | None]:
    """Return the version to install and the packages locked to it, or what rules out the choice."""
    locked = list(choice.locked)
    unknown = [name for name in choice.packages if name not in versions]
    if unknown:
        return "", locked, missing(unknown, goal.branch)
    version = goal.exact or common_version(versions, locked, goal.branch)
    if version is None:
        return "", locked, no_version(locked, versions, goal.branch)
    if goal.fabric:
        managers = {name: _with_manager(versions, locked, name, goal) for name in goal.fabric}
        manager = next((name for name in goal.fabric if managers[name]), None)
        if manager is None:
            return "", locked, no_manager(goal, versions)
        locked.append(manager)
        version = managers[manager] or version
    if choice.kind == DKMS and goal.builds_from and numeric(version) < numeric(goal.builds_from):
        return version, locked, too_old_for_kernel(version, goal)
    below = goal.minimum and numeric(version) < numeric(goal.minimum)
    return version, locked, too_old(version, goal) if below else None


def _try(io: AptIO, choice: Choice, goal: Goal, versions: Mapping[str, Sequence[str]]) -> Preview:
    version, locked, trouble = _decide(choice, goal, versions)
    if trouble:
        return Preview(troubles=(trouble,))
    text = preferences(version)
    io.pin(text)
    packages = tuple(dict.fromkeys([*choice.packages, *locked]))
    leave = tuple(f"{name}-" for name in choice.rivals)  # apt's way to say that a package is to go
    answer = io.simulate((*packages, *leave))
    if answer.rc != 0:
        return Preview(troubles=(unsolvable(answer),))
    # Each kernel that follows needs its headers or modules too; one that would bring another kernel now is left out.
    notes = []
    for name in choice.optional:
        more = io.simulate((*packages, name, *leave)) if name in versions else None
        if more is None or more.rc != 0:
            notes.append(f"{name}, with which the next kernel comes with its module, cannot be installed")
        elif any(new.startswith("linux-image-") for new in parse_simulation(more.stdout)[0]):
            notes.append(f"{name}, with which the next kernel comes with its module, would install another kernel now")
        else:
            packages, answer = (*packages, name), more
    installs, replaces, removes = parse_simulation(answer.stdout)
    touched = {*installs, *replaces, *removes}
    others = _other_branches({*installs, *replaces}, goal.branch)
    if others:
        return Preview(troubles=(transitional(goal.branch, others),))
    held = tuple(name for name in io.held() if name in touched)
    return Preview(
        choice.kind,
        version,
        packages,
        tuple(locked),
        choice.rivals,
        text,
        installs,
        replaces,
        removes,
        held,
        notes=tuple(f"{note}. {_LEFT_OUT[choice.kind]}" for note in notes if choice.kind in _LEFT_OUT),
    )


_LEFT_OUT = {
    DKMS: "Install the headers of a new kernel before it boots.",
    SIGNED: "It is left out, and with nvidia_driver_hold the package that brings new kernels is put on hold. To follow "
    "new kernels again, install it and that package with apt-get install --allow-change-held-packages, reboot and run "
    "again.",
}
"""What follows from a package that is left out, by the kind of module."""


def _instead(trouble: Trouble) -> str:
    """Return why DKMS builds the module on the host."""
    return f"DKMS builds the module on this host, with a compiler, as {trouble.text.partition('. Remedy: ')[0]}."


def _with_manager(versions: Mapping[str, Sequence[str]], locked: Sequence[str], manager: str, goal: Goal) -> str | None:
    """Return the version that this fabric manager has in common with the driver, or None."""
    if goal.exact is None:
        return common_version(versions, [*locked, manager], goal.branch)
    return goal.exact if goal.exact in map(upstream, versions.get(manager, ())) else None


def _other_branches(names: Iterable[str], branch: int) -> list[str]:
    numbered = [_NUMBERED.match(name) for name in names]
    return sorted({match["branch"] for match in numbered if match} - {str(branch)})


def removal_problems(removes: Mapping[str, str], *, purge: bool) -> list[str]:
    """Return why what apt would remove may not go: never what is no part of the driver, the rest only by consent."""
    problems = []
    foreign = sorted(name for name in removes if not is_driver_package(name))
    ours = sorted(name for name in removes if is_driver_package(name))
    if foreign:
        problems.append(
            f"the installation would remove {', '.join(foreign)}, which is no part of the driver. Remedy: remove it "
            "yourself if it may go, or choose another nvidia_driver_branch or nvidia_driver_source"
        )
    if ours and not purge:
        problems.append(
            f"other packages of the driver are in the way: {', '.join(ours)}. Remedy: set "
            "nvidia_driver_allow_purge_conflicting: true to have them purged, or ask for the driver that they hold"
        )
    return problems


def as_dict(preview: Preview, *, purge: bool, holds: Sequence[str]) -> dict[str, Any]:
    """The form that the module returns. ``holds`` are those of this collection; only they are lifted."""
    foreign = [name for name in preview.held if name not in holds]
    problems = [trouble.text for trouble in preview.troubles]
    if foreign:
        problems.append(
            f"{', '.join(foreign)} is on hold, and would have to change. Remedy: apt-mark unhold "
            f"{' '.join(foreign)} if that may be, or set nvidia_driver_source: keep"
        )
    problems += removal_problems(preview.removes, purge=purge)
    changing = {**preview.installs, **preview.replaces}
    return {
        "kind": preview.kind,
        "version": preview.version,
        "packages": [f"{name}={changing[name]}" if name in changing else name for name in preview.packages],
        "locked": list(preview.locked),
        "rivals": list(preview.rivals),
        "new": sorted(name for name in preview.installs if is_driver_package(name)),
        "preferences": preview.preferences,
        "installs": dict(preview.installs),
        "replaces": dict(preview.replaces),
        "removes": dict(preview.removes),
        "notes": list(preview.notes),
        "cannot_fetch": any(trouble.kind == UNREACHABLE for trouble in preview.troubles),
        "problems": [f"{problem}." for problem in problems],
    }
