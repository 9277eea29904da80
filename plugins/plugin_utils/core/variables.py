# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables of all roles as argument specs and constraints describe them, read once a process."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .constraints import Rule, read_constraints, read_yaml
from .role_specs import RoleSpecs, parse_specs

ROLES = Path(__file__).parents[3] / "roles"
BESIDE = ("group_names", "swarmspeed_source", "swarmspeed_image")
"""What planners read beside variables that a user sets: groups, where the source is on the controller, the image."""


def _documents(name: str) -> dict[str, Any]:
    """Return by role the file of this name that describes the role's variables."""
    return {path.parents[1].name: read_yaml(path) for path in sorted(ROLES.glob(f"*/meta/{name}"))}


@functools.cache
def role_specs() -> RoleSpecs:
    """Return the argument specs. Raises ``RoleSpecError``."""
    return parse_specs(_documents("argument_specs.yml"))


@functools.cache
def constraints() -> Mapping[str, Rule]:
    """Return the constraints by variable. Raises ``ConstraintError``."""
    return read_constraints(_documents("constraints.yml"))


@functools.cache
def text_as_words() -> frozenset[str]:
    """Return the names of lists that may be a text, which is split as a shell does."""
    return frozenset(name for name, rule in constraints().items() if rule.shell)
