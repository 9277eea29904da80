# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Engines that cannot read each other's packets on an encrypted overlay network. Pure.

Engines 29.0.0 to 29.2.0, and 25.0.13 and 25.0.14, number the keys of the encryption in another way than all others
(``buildSPI`` in libnetwork/drivers/overlay/encryption.go; moby#51798, corrected by moby#51951 in 29.2.1 and by
moby#51963 in 25.0.15). Between the two kinds names resolve and nothing else passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..core.problems import Problem
from .host import DISTRIBUTION, SHIPPED, Host, Request, packages_wanted

_VERSION = re.compile(r"(?:^|[^0-9.])([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?(?![0-9])")
_SPANS = (((29, 0, 0), (29, 2, 0)), ((25, 0, 13), (25, 0, 14)))
"""First and last releases of the other kind."""


def engine_after(requested: Request, host: Host) -> str:
    """Return the version that a host's engine will have, as far as it is known; it may be the beginning of one."""
    if packages_wanted(requested, host)[1]:
        return requested.version
    shipped = SHIPPED.get(host.codename) if requested.source == DISTRIBUTION else None
    return host.engine_version or (".".join(map(str, shipped)) if shipped else "")


def numbers_otherwise(version: str) -> bool | None:
    """Return whether an engine is of the other kind, None where its version does not say so."""
    found = _VERSION.search(version.partition(":")[2] or version)
    if not found:
        return None
    minor = (int(found[1]), int(found[2]))
    if found[3] is not None:
        return any(first <= (*minor, int(found[3])) <= last for first, last in _SPANS)
    answers = {any(first <= (*minor, patch) <= last for first, last in _SPANS) for patch in range(50)}
    return answers.pop() if len(answers) == 1 else None


def refusals(versions: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the hosts of the other kind where the cluster has engines of both; ``versions`` are those after the run."""
    kinds = {host: numbers_otherwise(version) for host, version in versions.items()}
    others = [host for host, kind in kinds.items() if kind is False]
    for host, kind in kinds.items():
        if kind and others:
            yield Problem(
                host,
                (
                    f"engine {versions[host]} and those of {_shown(others, versions)} cannot read each other's "
                    "packets on an encrypted overlay network (moby#51798)"
                ),
                (
                    'set docker_version: "29.3" or later, or one version on all hosts, or set '
                    "overlay_network_encrypted: false"
                ),
            )


def _shown(hosts: Sequence[str], versions: Mapping[str, str]) -> str:
    return f"{hosts[0]} ({versions[hosts[0]]})" + (f" and {len(hosts) - 1} more" if len(hosts) > 1 else "")
