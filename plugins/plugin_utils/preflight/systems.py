# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the hosts are: distribution, processor, and until when they and what is on them get security updates.

The dates and the published holes are those of the table of versions (docs/versions.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from ..core.problems import Problem, missing
from ..core.values import mapping, number
from ..plan.requested import DISTRIBUTIONS, Requested
from ..versions.lifetimes import of_engine, of_packages, of_system
from ..versions.table import load_table

Hosts = Mapping[str, Mapping[str, Any]]

_ENGINE = "docker-ce"
"""The package of Docker's own repository. A distribution's docker.io gets the distribution's updates."""
_LAST = 4_000_000_000
"""A time of the 21st century that a clock may show; what is later is not a time."""


def check_distribution(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """The host runs a supported distribution and release."""
    names = ", ".join(f"{name.capitalize()} {' and '.join(known)}" for name, known in DISTRIBUTIONS.items())
    untried = {(row.distribution, row.release) for row in load_table().systems if row.state == "untried"}
    for host, facts in hosts.items():
        system = mapping(facts.get("system"))
        name, release = system.get("distribution"), str(system.get("release") or "")
        if not isinstance(name, str):
            yield missing(host, "which distribution is installed")
        elif release not in DISTRIBUTIONS.get(name, ()):
            title, remedy = name.capitalize(), f"install one of: {names}"
            if (name, release) in untried:
                remedy += "; or try it with preflight_skip: [distribution] (docs/versions.md)"
                yield Problem(host, f"{title} {release} is untested", remedy)
            else:
                shown = release or "without a release number"
                yield Problem(host, f"{title} {shown} is not supported", remedy)


def check_architectures(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """All hosts have one kind of processor, as one image goes to all of them."""
    if wanted.runtime == "host":
        return
    kinds: dict[str, list[str]] = {}
    for host, facts in hosts.items():
        kind = mapping(facts.get("system")).get("architecture")
        if isinstance(kind, str) and kind:
            kinds.setdefault(kind, []).append(host)
    if len(kinds) > 1:
        most = max(kinds, key=lambda kind: len(kinds[kind]))
        for kind, found in kinds.items():
            if kind != most:
                yield Problem(
                    ", ".join(found),
                    f"the processor is {kind}, but that of {kinds[most][0]} is {most}; a training image runs on only "
                    "one of them",
                    "make a cluster of each kind, each with its own inventory and cluster_name",
                )


def check_end_of_life(hosts: Hosts, wanted: Requested) -> Iterator[Problem]:
    """Warn of what gets no security updates any more, and of published holes in what this collection holds."""
    table = load_table()
    for host, facts in hosts.items():
        system, packages = mapping(facts.get("system")), mapping(facts.get("packages"))
        today = max(table.read, _day(system.get("time")))
        found = list(of_system(table.systems, str(system.get("distribution")), str(system.get("release") or ""), today))
        if wanted.runtime != "host":
            found += of_engine(table.engines, str(packages.get(_ENGINE) or ""), today)
            found += of_packages(table.holes, packages)
        for finding in found:
            yield Problem(host, finding.text, finding.remedy, fatal=False)


def _day(time: Any) -> str:
    seconds = number(time)
    known = seconds is not None and 0 <= seconds <= _LAST
    return datetime.fromtimestamp(seconds, timezone.utc).date().isoformat() if known and seconds is not None else ""
