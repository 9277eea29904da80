# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether the run has all hosts of the cluster together, where its roles need them together."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.problems import Problem
from ..plan.play_hosts import divided, own_roles
from .inventory import Inventory


def check_play_hosts(inventory: Inventory) -> Iterator[Problem]:
    """No host is left out by ``--limit``, and none runs ahead, unless the roles plan each host for itself."""
    if inventory.play:
        for subject, text, remedy in divided(_hosts(inventory), inventory.play):
            yield Problem(subject, text, remedy)


def roles_by_themselves(inventory: Inventory) -> list[str]:
    """Return the roles to be planned for the hosts of the play alone; none where the cluster is planned as a whole."""
    return own_roles(_hosts(inventory), inventory.play) if inventory.play else []


def _hosts(inventory: Inventory) -> list[str]:
    return [*inventory.members("managers"), *inventory.members("workers")]
