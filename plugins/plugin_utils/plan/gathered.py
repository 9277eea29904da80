# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What must be gathered for the roles that are planned. Constants alone: every worker that gathers reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gathered:
    """``packages``, ``files``, ``groups`` and ``sysctls`` are what ``node_facts`` gathers, as its options.

    ``by_role_vars`` returns what more of them follows from the variables of a host, and of ``accounts``,
    ``repositories``, ``trees``, ``folders``, ``jobs``, ``assets``, ``vscode`` and ``code``.
    """

    packages: Sequence[str] = ()
    files: Sequence[Mapping[str, Any]] = ()
    groups: Sequence[str] = ()
    sysctls: Sequence[str] = ()
    by_role_vars: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None


def requested(arguments: Mapping[str, Any], needed: Sequence[Gathered], role_vars: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``node_facts`` with what the planners need added to them."""
    merged = dict(arguments)
    more = [part.by_role_vars(role_vars) if part.by_role_vars else {} for part in needed]
    for name in ("packages", "files", "groups", "accounts", "sysctls", "repositories"):
        entries = list(merged.get(name) or [])
        for part, by_role_vars in zip(needed, more):
            for entry in (*getattr(part, name, ()), *by_role_vars.get(name, ())):
                if entry not in entries:
                    entries.append(_copy(entry))
        if entries:
            merged[name] = entries
    for by_role_vars in more:
        for name in ("trees", "tree_sizes"):
            if by_role_vars.get(name):
                merged[name] = {**(merged.get(name) or {}), **by_role_vars[name]}
        if by_role_vars.get("folders"):
            former = merged.get("folders") or {"paths": []}
            paths = dict.fromkeys([*former["paths"], *by_role_vars["folders"]["paths"]])
            merged["folders"] = {**former, **by_role_vars["folders"], "paths": list(paths)}
        for name in ("jobs", "assets", "vscode", "code"):
            if by_role_vars.get(name):
                merged[name] = by_role_vars[name]
    return merged


def _copy(entry: Any) -> Any:
    return dict(entry) if isinstance(entry, Mapping) else entry
