# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What must be gathered for the roles that are planned. Constants alone: every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gathered:
    """``variables`` are all that the role's argument spec declares, ``optional`` those of other roles that it reads.

    ``packages``, ``files`` and ``groups`` are what ``node_facts`` is asked about, as its options of these names.
    """

    variables: Sequence[str] = ()
    optional: Sequence[str] = ()
    packages: Sequence[str] = ()
    files: Sequence[Mapping[str, Any]] = ()
    groups: Sequence[str] = ()


def asked(arguments: Mapping[str, Any], needed: Sequence[Gathered]) -> dict[str, Any]:
    """Return the arguments of ``node_facts`` with what the planners need added to them."""
    merged = dict(arguments)
    for name in ("packages", "files", "groups"):
        entries = list(merged.get(name) or [])
        for part in needed:
            entries += [_copy(entry) for entry in getattr(part, name) if entry not in entries]
        if entries:
            merged[name] = entries
    return merged


def _copy(entry: Any) -> Any:
    return dict(entry) if isinstance(entry, Mapping) else entry
