# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Until when hosts and engines get security updates, published holes, and what is said of a host that is past them.

Days are text such as ``2026-07-11``, which compares as they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .numbers import key

STATES = ("tried", "accepted", "untried", "refused")
ACCEPTED = STATES[:2]


@dataclass(frozen=True)
class System:
    """A release of a distribution as a host: ``state`` is one of ``STATES``.

    Security updates for all its packages end with ``end``; ``by`` goes on until ``further``.
    """

    distribution: str
    release: str
    state: str
    end: str
    further: str
    by: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.distribution.capitalize()} {self.release}"


@dataclass(frozen=True)
class EndedEngine:
    """A release of Docker's own packages that gets no updates; ``end`` is the day of its last one."""

    release: str
    end: str
    source: str


@dataclass(frozen=True)
class Hole:
    """A published vulnerability of a package that a role installs and holds, in versions before one."""

    name: str
    published: str
    part: str
    package: str
    before: str
    why: str
    remedy: str
    source: str


class Finding(NamedTuple):
    """What is said of a host, and what to do; both without a full stop."""

    text: str
    remedy: str


def of_system(systems: Sequence[System], distribution: str, release: str, today: str) -> Iterator[Finding]:
    """Yield that a host's distribution is past its end of life."""
    row = next((one for one in systems if (one.distribution, one.release) == (distribution, release)), None)
    newer = [one for one in systems if row and one.distribution == row.distribution and one.state in ACCEPTED]
    if not row or today <= row.end:
        return
    remedy = f"upgrade to {newer[-1].name}" if newer and newer[-1].end >= today else "upgrade to a newer release"
    if today > row.further:
        yield Finding(f"{row.name} has had no security updates since {row.further}", remedy)
    else:
        yield Finding(
            f"regular security updates of {row.name} ended on {row.end}; {row.by}, which covers fewer packages or "
            f"needs a subscription, continues until {row.further}",
            remedy,
        )


def of_engine(engines: Sequence[EndedEngine], version: str, today: str) -> Iterator[Finding]:
    """Yield that an engine of Docker's repository gets no updates; ``version`` is that of its package."""
    found = key(version.partition(":")[2] or version)
    for row in engines:
        if found and found[: len(key(row.release))] == key(row.release) and today > row.end:
            yield Finding(
                f"Docker Engine {'.'.join(map(str, found))} is installed, but {row.release} has had no updates since "
                f"{row.end}",
                "set docker_version to a release that gets them (29 in November 2026), when no job runs",
            )


def of_packages(holes: Sequence[Hole], packages: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the published holes of packages that a role installs."""
    for hole in holes:
        version = packages.get(hole.package)
        if isinstance(version, str) and key(version) and key(version) < key(hole.before):
            yield Finding(
                f"{hole.package} {version} is affected by {hole.name} ({hole.published}): {hole.why}",
                hole.remedy,
            )
