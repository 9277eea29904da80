# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The variables of a job with ``deepspeed_launch_integration`` decided from the script on the controller. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..launch.integration import (
    ARGUMENT_VARIABLE,
    AUTO,
    KEYS_VARIABLE,
    Integration,
    Requested,
    determined,
    integration_of,
    undetermined,
)
from ..launch.program import FILE, ProgramError, in_workspace, program
from ..launch.script_files import BETWEEN
from ..plan.controller import SCRIPT, source_of
from ..plan.variables import changed

BY_ENVIRONMENT = "_by_environment"
"""Stands among the variables where the script finds ds_config.json in the environment."""


def read_by_plan(role_vars: Mapping[str, Any]) -> list[str]:
    """Return under which name the plan reads the script on the controller; empty where it reads none."""
    name = _name(role_vars)[0]
    return [name] if name else []


def integration(role_vars: Mapping[str, Any], files: Mapping[str, str]) -> Integration:
    """Return how the script of a host gets ds_config.json."""
    requested = Requested(
        str(role_vars["deepspeed_launch_integration"] or AUTO),
        str(role_vars["deepspeed_launch_config_argument"]),
        str(role_vars["deepspeed_launch_ds_config_integration"]),
    )
    name, why = _name(role_vars)
    read = files.get(name) if name else None
    return integration_of(
        requested, undetermined(why or "it was not read") if read is None else determined(read, _script(role_vars))
    )


def settled(role_vars: Mapping[str, Any], found: Integration) -> Mapping[str, Any]:
    """Return the variables with what was decided in them."""
    decided = {ARGUMENT_VARIABLE: found.argument, KEYS_VARIABLE: found.keys, BY_ENVIRONMENT: found.environment}
    return changed(role_vars, decided)


def _script(role_vars: Mapping[str, Any]) -> str:
    return in_workspace(str(role_vars["deepspeed_launch_script"]))


def _name(role_vars: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name under which the script is read, or an empty one and why it is not."""
    script = _script(role_vars)
    if not script or role_vars["deepspeed_launch_integration"] != AUTO:
        return "", ""
    why = _no_file(script, role_vars)
    fetched = isinstance(role_vars.get("swarmspeed_source"), Mapping)
    if not why and role_vars["workspace_source_ref"] and not fetched:
        why = "the repository is not fetched yet"
    folder = source_of(role_vars)[0] if not why and (fetched or role_vars["workspace_source"]) else ""
    return (f"{SCRIPT}{folder}{BETWEEN}{script}", "") if folder else ("", why or "the script is not on the controller")


def _no_file(script: str, role_vars: Mapping[str, Any]) -> str:
    """Return why a script is not a file that can be read; empty where it is one."""
    try:
        kind = program(script, [str(word) for word in role_vars.get("deepspeed_launch_launcher_args") or []]).kind
    except ProgramError:
        return "it names no script"
    if kind != FILE:
        return f"deepspeed_launch_script is a {kind}, which the controller does not have"
    if script.startswith("/") or BETWEEN in script or not script.endswith(".py"):
        return f"{script} is not a Python file of workspace_source"
    return ""
