# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Makes the plan of a run from what was gathered of its hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError

from ..core.constraints import judge
from ..core.problems import Problem, listing
from ..core.variables import ROLES, constraints, role_specs
from ..docker.needed import missing_engines
from ..plan.changes import Inputs
from ..plan.controller import TEXT, here, read, split_kind
from ..plan.fold import Plan, fold
from ..plan.variables import VariableError, typed
from .planners import planners

OF_A_ROLE = "role:"
"""Begins the name of a file that comes with a role."""


class UnplannableError(Exception):
    """A variable, or a file on the controller that one names, is not what a plan can be made from."""


@dataclass(frozen=True)
class Made:
    """``needed``: what the selected roles need of a role that is not selected."""

    plan: Plan
    needed: Sequence[Problem]


def make_plan(  # noqa: PLR0917 - what a run has, each of another type
    roles: Sequence[str],
    gathered: Mapping[str, Mapping[str, Any]],
    inputs: Inputs,
    loader: Any,
    selected: Sequence[str],
    judged: bool,
) -> Made:
    """Return the plan of these roles. ``gathered``: by host, what ``node_facts`` returned in this run.

    ``loader`` is Ansible's; ``judged``: preflight has judged the variables before any connection.
    Raises ``UnplannableError``.
    """
    requested = planners(roles)
    facts = {host: found["ansible_facts"]["swarmspeed"] for host, found in gathered.items()}
    try:
        variables = {
            host: typed(host, found.get("role_vars") or {}, found.get("unrendered") or {})
            for host, found in gathered.items()
        }
        if not judged:
            _judge([name for role in roles for name in role_specs().by_role[role]], variables)
        files = {name for planner in requested for desired in variables.values() for name in planner.files(desired)}
        texts = {name: _text(name, loader) for name in sorted(files)}
        plan = fold(requested, facts, variables, replace(inputs, files=texts))
        return Made(plan, list(missing_engines(facts, variables, plan.roles, selected)))
    except VariableError as error:
        raise UnplannableError(f"{error}. Remedy: correct this variable") from None


def _text(name: str, loader: Any) -> str:
    """Return the text of a file on the controller, line ends as they are; one in Ansible's vault is decrypted."""
    kind, path = split_kind(name)
    path = str(ROLES / path[len(OF_A_ROLE) :]) if path.startswith(OF_A_ROLE) else path
    try:
        if kind == TEXT:
            path = str(here(path))
        elif kind:
            return read(kind, path)
        return Path(loader.get_real_file(loader.path_dwim(path))).read_bytes().decode("utf-8")
    except (AnsibleError, OSError, UnicodeDecodeError) as error:
        raise UnplannableError(
            f"{split_kind(name)[1]}: cannot be read. Remedy: name a file that this account can read"
        ) from error


def _judge(names: Iterable[str], variables: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse what the constraints of these variables do not allow."""
    wrong: dict[str, list[str]] = {}
    for host, given in variables.items():
        for name in names:
            fault = judge(name, constraints()[name], role_specs().options[name], given[name]) if name in given else None
            if fault:
                wrong.setdefault(f"{name}{fault.suffix}: {fault.text}. Remedy: {fault.remedy}.", []).append(host)
    if wrong:
        raise UnplannableError(" ".join(f"{listing(hosts)}: {text}" for text, hosts in wrong.items()))
