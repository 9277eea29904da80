# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The argument specs of all roles taken together: which variables exist, whose they are, and which name was meant.

Ansible validates a role's variables against its argument spec when the role starts, that is after earlier roles have
changed the hosts, and it never notices a misspelt name. Preflight asks here, for all roles at once, before that.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHARED_PREFIXES = ("cluster", "gpu", "tensorboard")
"""Prefixes of variables that bear no role's name: ``cluster_*``, ``gpu_slots``, and those of tensorboard.yml."""

GENERIC_PREFIXES = ("assets", "docker", "gpu", "host", "nvidia_driver", "tensorboard", "workspace")
"""Prefixes that other people's roles use too (geerlingguy.docker, nvidia.nvidia_driver): names may be theirs."""

SUGGEST = 0.6
"""``difflib`` ratio from which a known name is offered as the one that was meant; difflib's own default."""
CLOSE = 0.85
"""Ratio from which an unknown name with a generic prefix is a misspelling: two wrong letters in a name of fourteen."""
SAME = 0.9
"""Ratio from which a name outside every prefix is taken for a misspelt prefix (``swarn_`` for ``swarm_``)."""

RENAMED = {
    "assets_adopt": "assets_allow_adopt",
    "docker_restart": "docker_allow_restart",
    "nvidia_driver_purge_conflicting": "nvidia_driver_allow_purge_conflicting",
    "overlay_network_bench_beside_jobs": "overlay_network_allow_bench_beside_jobs",
    "overlay_network_recreate": "overlay_network_allow_recreate",
    "swarm_adopt": "swarm_allow_adopt",
    "swarm_departed": "swarm_removed_nodes",
    "swarm_leave_foreign": "swarm_allow_leave_foreign",
    "swarm_remove_ghosts": "swarm_prune_stale_nodes",
    "training_container_recreate": "training_container_allow_recreate",
}
"""Variables of earlier releases, by the names that they have now."""


def renamed(today: str) -> tuple[str, str]:
    """Return what is wrong with the former name of this variable, and the remedy."""
    return f"is the name that an earlier release had for {today}", f"rename it to {today}"


def type_of(option: Mapping[str, Any]) -> dict[str, Any]:
    """Return an option as to its type: what a host does without stays absent."""
    return {key: part for key, part in option.items() if key not in ("default", "required")}


class RoleSpecError(Exception):
    """A role's meta/argument_specs.yml is not what Ansible asks for."""


@dataclass(frozen=True)
class Unknown:
    """A variable that no role knows. ``certain`` is false where it may belong to somebody else's role.

    ``nearest`` is the name that was meant; with ``renamed`` an earlier release had the variable.
    """

    name: str
    prefix: str | None
    nearest: str | None
    certain: bool
    renamed: bool = False


@dataclass(frozen=True)
class RoleSpecs:
    """``options``: variable name to its option in the argument spec; ``by_role``: the variables of each role."""

    options: Mapping[str, Mapping[str, Any]]
    by_role: Mapping[str, Sequence[str]]

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(self.by_role)

    def prefix(self, name: str) -> str | None:
        """Return the longest role name or shared prefix that this variable name begins with, or None."""
        owners = [owner for owner in (*self.roles, *SHARED_PREFIXES) if name.startswith(owner + "_")]
        return max(owners, key=len, default=None)

    def judge(self, name: str) -> Unknown | None:
        """Return None for a name that is known or none of our business, else what is wrong with it."""
        if name in self.options or name.startswith(("_", "ansible_")):
            return None
        prefix = self.prefix(name)
        if name in RENAMED:
            return Unknown(name, prefix, RENAMED[name], certain=True, renamed=True)
        if prefix is None:
            same = self._nearest(name, SAME)
            return Unknown(name, None, same, certain=False) if same else None
        if prefix not in GENERIC_PREFIXES:
            return Unknown(name, prefix, self._nearest(name, SUGGEST), certain=True)
        close = self._nearest(name, CLOSE)
        return Unknown(name, prefix, close, certain=close is not None)

    def _nearest(self, name: str, cutoff: float) -> str | None:
        return next(iter(difflib.get_close_matches(name, sorted(self.options), n=1, cutoff=cutoff)), None)


def parse_specs(documents: Mapping[str, Any]) -> RoleSpecs:
    """Join parsed meta/argument_specs.yml documents, given by role name; all entry points of a role count.

    A variable that several roles list (``cluster_name``) is taken from the first role in alphabetical order; that they
    agree is held by a unit test. Raises ``RoleSpecError`` naming the role whose document has another shape.
    """
    options: dict[str, Mapping[str, Any]] = {}
    by_role: dict[str, list[str]] = {}
    for role in sorted(documents):
        document, own = documents[role], by_role.setdefault(role, [])
        entries = document.get("argument_specs") if isinstance(document, Mapping) else None
        if not isinstance(entries, Mapping) or not entries:
            raise RoleSpecError(
                f"role {role}: meta/argument_specs.yml has no mapping argument_specs. Remedy: reinstall the collection."
            )
        for entry_name, entry in entries.items():
            found = (entry.get("options") or {}) if isinstance(entry, Mapping) else None
            if not isinstance(found, Mapping) or not all(isinstance(option, Mapping) for option in found.values()):
                raise RoleSpecError(
                    f"role {role}: the options of entry point {entry_name} in meta/argument_specs.yml "
                    "are not mappings. Remedy: reinstall the collection."
                )
            for name, option in found.items():
                options.setdefault(str(name), option)
                own.append(str(name))
    return RoleSpecs(options, by_role)
