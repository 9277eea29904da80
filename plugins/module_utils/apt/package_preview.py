# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What apt would do for packages in a version that is requested, known before anything is changed.

As for the driver, apt is run over the host's own sources and one more in a directory that is removed again; then it
simulates. So a repository that cannot be reached, a key that does not match, a version that is not there, a hold and a
package that would have to go are named in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..common.command_io import CommandResult
from ..driver.apt_failures import UNREACHABLE, explain_update
from ..driver.preview import parse_policy, parse_simulation
from .pins import newest

MOST = 4
"""Versions that a message names."""
_OF_THE_DRIVER = "nvidia_driver_repository"
"""How the variables begin in the words for trouble with a repository, which the driver's preview shares."""


class AptIO(Protocol):
    """A trial of apt; tests hand in a fake."""

    def update(self) -> CommandResult:
        """Fetch the indices."""

    def policy(self, names: Sequence[str]) -> str:
        """Return ``apt-cache policy`` of these packages."""

    def simulate(self, names: Sequence[str]) -> CommandResult:
        """Simulate the installation of these packages."""

    def held(self) -> list[str]:
        """Return the packages that are on hold."""


@dataclass(frozen=True)
class Goal:
    """``locked`` are those of ``packages`` that must have one version, which begins with ``version``.

    ``prefix`` is how the variables begin that messages name. ``holds`` are packages on hold that may change.
    """

    packages: tuple[str, ...]
    prefix: str
    version: str = ""
    locked: tuple[str, ...] = ()
    address: str = ""
    holds: tuple[str, ...] = ()
    may_go: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preview:
    """What the installation would do. ``packages`` are for apt, with their version where one is locked."""

    packages: tuple[str, ...] = ()
    version: str | None = None
    installs: Mapping[str, str] = field(default_factory=dict)
    replaces: Mapping[str, str] = field(default_factory=dict)
    removes: Mapping[str, str] = field(default_factory=dict)
    unreachable: bool = False
    problems: tuple[str, ...] = ()


def gather(io: AptIO, goal: Goal) -> Preview:
    """Ask apt. Whatever prevents the installation is in ``problems``, each a sentence with its remedy."""
    trouble = explain_update(io.update(), goal.address)
    if trouble is not None:
        text = trouble.text.replace(_OF_THE_DRIVER, f"{goal.prefix}_repository")
        return Preview(unreachable=trouble.kind == UNREACHABLE, problems=(f"{text}.",))
    versions = parse_policy(io.policy(list(goal.packages)))
    unknown = [name for name in goal.packages if name not in versions]
    if unknown:
        return Preview(problems=(_unknown(unknown, goal),))
    chosen = _version(goal, versions)
    if goal.locked and chosen is None:
        return Preview(problems=(_no_version(goal, versions),))
    packages = tuple(f"{name}={chosen}" if name in goal.locked else name for name in goal.packages)
    answer = io.simulate(packages)
    if answer.rc != 0:
        return Preview(problems=(_unsolvable(answer, goal),))
    installs, replaces, removes = parse_simulation(answer.stdout)
    held = [name for name in io.held() if name in {*installs, *replaces, *removes} and name not in goal.holds]
    return Preview(
        packages,
        chosen,
        installs,
        replaces,
        removes,
        problems=tuple(_in_the_way(goal, held, [name for name in removes if name not in goal.may_go])),
    )


def _version(goal: Goal, versions: Mapping[str, Sequence[str]]) -> str | None:
    """Return the newest version that all locked packages have."""
    common = [
        version
        for version in versions.get(goal.locked[0] if goal.locked else "", ())
        if all(version in versions[name] for name in goal.locked)
    ]
    return newest(common, goal.version)


def _unknown(unknown: Sequence[str], goal: Goal) -> str:
    return (
        f"apt has no package {', '.join(unknown)}. Remedy: correct {goal.prefix}_repository_url, or choose another "
        f"{goal.prefix}_source."
    )


def _no_version(goal: Goal, versions: Mapping[str, Sequence[str]]) -> str:
    offered = "; ".join(f"{name} {', '.join(list(versions[name])[:MOST])}" for name in goal.locked)
    requested = f" that begins with {goal.version}" if goal.version else ""
    return (
        f"apt has no version{requested} that {', '.join(goal.locked)} have in common (it has: {offered}). "
        f"Remedy: set {goal.prefix}_version to one of these."
    )


def _unsolvable(answer: CommandResult, goal: Goal) -> str:
    dummy, separator, tail = answer.text.partition("unmet dependencies:")
    reported = " ".join((tail if separator else answer.text).split())[:400].rstrip(". ")
    return (
        f"apt cannot install {', '.join(goal.packages)}: {reported}. Remedy: check what is held or half-installed "
        "(apt-mark showhold; dpkg --audit), and run again."
    )


def _in_the_way(goal: Goal, held: Sequence[str], removes: Sequence[str]) -> list[str]:
    problems = []
    if held:
        problems.append(
            f"{', '.join(held)} is on hold, but would have to change. Remedy: apt-mark unhold {' '.join(held)} if it "
            f"may change, or set {goal.prefix}_source: keep."
        )
    if removes:
        problems.append(
            f"the installation would remove {', '.join(removes)}. Remedy: remove it yourself if it may go, or set "
            f"{goal.prefix}_source: keep."
        )
    return problems


def as_dict(preview: Preview) -> dict[str, Any]:
    """The form that the module returns."""
    return {
        "packages": list(preview.packages),
        "version": preview.version,
        "installs": dict(preview.installs),
        "replaces": dict(preview.replaces),
        "removes": dict(preview.removes),
        "cannot_fetch": preview.unreachable,
        "problems": list(preview.problems),
    }
