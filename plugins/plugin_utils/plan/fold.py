# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The plan of a run: role after role is planned, each for the hosts as the roles before it leave them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..core.problems import Problem
from .changes import Change, Counts, Inputs, PlanError, RolePlan, counts

Facts = Mapping[str, Mapping[str, Any]]
"""By host, as ``node_facts`` returns them."""
RoleVars = Mapping[str, Mapping[str, Any]]
"""By host: the variables that the roles declare, rendered."""


class Planner(Protocol):
    """What a role's planner offers. It does no I/O and decides everything that the role does."""

    role: str

    def files(self, role_vars: Mapping[str, Any]) -> Iterable[str]:
        """Return which files of the controller the plan of a host reads."""

    def plan(self, facts: Facts, role_vars: RoleVars, inputs: Inputs) -> RolePlan:
        """Compare what the hosts are with what is desired, and return what leads from one to the other."""


@dataclass(frozen=True)
class Plan:
    """What a run would do: ``roles`` are those planned, in order, ``hosts`` those whose facts are known."""

    roles: tuple[str, ...]
    hosts: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    refusals: tuple[Problem, ...] = ()
    task_inputs: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)
    cluster: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        return counts(self.changes)

    @property
    def missing_consents(self) -> list[Change]:
        """The changes that need a consent which is not given."""
        return [change for change in self.changes if change.missing_consent]

    def of(self, role: str, host: str) -> list[Change]:
        return [change for change in self.changes if (change.role, change.host) == (role, host)]

    def refused(self, role: str, host: str) -> list[Problem]:
        return [refusal for refusal in self.refusals if (refusal.role, refusal.subject) == (role, host)]

    def pending(self, role: str, host: str) -> bool:
        """Whether the role has something to do on the host, or to refuse."""
        return bool(self.of(role, host) or self.refused(role, host))

    def only(self, roles: Iterable[str]) -> Plan:
        """Return the part of these roles, for a run that tags restrict. What they do not name stays planned."""
        kept = set(roles)
        return Plan(
            roles=tuple(role for role in self.roles if role in kept),
            hosts=self.hosts,
            changes=tuple(change for change in self.changes if change.role in kept),
            refusals=tuple(refusal for refusal in self.refusals if refusal.role in kept),
            task_inputs={
                host: {role: task_input for role, task_input in task_inputs.items() if role in kept}
                for host, task_inputs in self.task_inputs.items()
            },
            facts=self.facts,
            cluster=self.cluster,
        )


def fold(planners: Sequence[Planner], facts: Facts, role_vars: RoleVars, inputs: Inputs) -> Plan:
    """Plan role after role, each on the facts as the roles before it leave them."""
    changes: list[Change] = []
    refusals: list[Problem] = []
    task_inputs: dict[str, dict[str, Mapping[str, Any]]] = {host: {} for host in facts}
    after: dict[str, Mapping[str, Any]] = dict(facts)
    for planner in planners:
        part = planner.plan(after, role_vars, inputs)
        _check(planner.role, part, after)
        changes += part.changes
        refusals += (replace(refusal, role=planner.role) for refusal in part.refusals)
        for host, task_input in part.task_inputs.items():
            task_inputs[host][planner.role] = task_input
        after.update(part.facts)
        if part.cluster:
            inputs = replace(inputs, cluster={**inputs.cluster, **part.cluster})
    order = {host: number for number, host in enumerate(facts)}
    # By host; sorted() keeps the order of roles, and of what each does.
    return Plan(
        roles=tuple(planner.role for planner in planners),
        hosts=tuple(facts),
        changes=tuple(sorted(changes, key=lambda change: order[change.host])),
        refusals=tuple(sorted(refusals, key=lambda refusal: order[refusal.subject])),
        task_inputs=task_inputs,
        facts=after,
        cluster=inputs.cluster,
    )


def _check(role: str, part: RolePlan, facts: Facts) -> None:
    """Raise ``PlanError`` where a planner speaks of another role, of an unknown host, or twice of the same thing."""
    for change in part.changes:
        if change.role != role:
            raise PlanError(f"the planner of {role} returned a change of {change.role} on {change.host}")
    spoken = (*(change.host for change in part.changes), *(refusal.subject for refusal in part.refusals))
    for host in (*spoken, *part.task_inputs, *part.facts):
        if host not in facts:
            raise PlanError(f"the planner of {role} returned an entry for {host}, whose facts it did not get")
    seen: set[tuple[str, str]] = set()
    for change in part.changes:
        if (change.host, change.what) in seen:
            raise PlanError(f"the planner of {role} changes {change.what} of {change.host} twice")
        seen.add((change.host, change.what))
