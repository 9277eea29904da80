# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The planners of the roles. Only what makes a plan imports them: most tasks report a part of one that is made."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ..core.roles import PLANNED
from ..plan.fold import Planner


def _planner(role: str) -> Planner:
    """Return the planner of a role: ``TrainingImagePlanner`` of ``training_image``."""
    module = import_module(f"..{role}.planner", __package__)
    planner: Planner = getattr(module, f"{role.title().replace('_', '')}Planner")()
    return planner


_FOUND = {role: _planner(role) for role in PLANNED}


def planners(roles: Iterable[str]) -> list[Planner]:
    """Return the planners of these roles, in the order of the roles."""
    requested = set(roles)
    return [_FOUND[role] for role in PLANNED if role in requested]
