# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the roles would change on a host, in words, for verify to fail at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SUB_TAGS = {"hostfile": "deepspeed_launch", "ds_config": "deepspeed_launch"}
"""Tags of parts of a role, and the role."""


@dataclass(frozen=True)
class RoleDrift:
    """What one role would change; ``what`` is never empty."""

    role: str
    what: tuple[str, ...]

    def sentence(self, host: str) -> str:
        return f"{host}: role {self.role}: {'; '.join(self.what)}. Remedy: ansible-playbook site.yml --tags {self.role}"


def drift(planned: Mapping[str, Sequence[str]], roles: Sequence[str], run_tags: Sequence[str]) -> list[RoleDrift]:
    """Return what differs by role, in the order of ``planned``, of those that the tags of the run select.

    ``roles`` are those that the tags name as a whole.
    """
    selected = {*roles, *(role for tag, role in SUB_TAGS.items() if tag in run_tags)}
    return [RoleDrift(role, tuple(what)) for role, what in planned.items() if what and role in selected]
