# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A plan in the forms that tasks read it in: text, JSON, and by host and role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.problems import Problem
from .document import document
from .fold import Plan
from .text import consent_text, diff, drift_text, plan_text


def outcome(plan: Plan, run: str, selected: Sequence[str], needed: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return the result of the action that plans.

    All is planned; ``selected`` are the roles that the tags of the run name, which are printed and written, and whose
    refusals and missing consents the run fails at. Where tags name none, such as ``preflight``, refusals of all do.
    ``needed``: what the selected roles need of a role that is not selected.
    """
    part = plan.only(selected)
    gated = part.roles or plan.roles
    return {
        "run": run,
        "roles": list(plan.roles),
        "hosts": list(plan.hosts),
        "text": plan_text(part),
        "document": document(part, run),
        "pending": _each(plan, plan.pending),
        "stops": _each(plan, lambda role, host: stops(plan, role, host)),
        "image": str(plan.cluster.get("image") or ""),
        "drift": _each(plan, lambda role, host: _drift(plan, role, host)),
        "diffs": _each(plan, lambda role, host: diff(plan.of(role, host))),
        "task_inputs": {host: dict(task_inputs) for host, task_inputs in plan.task_inputs.items()},
        "refused": {role: _refused(plan, role, needed, gated=role in gated) for role in plan.roles},
        "consents": _consents(part),
    }


def stops(plan: Plan, role: str, host: str) -> list[str]:
    """Return why the role must not begin on the host: what is refused, else each consent that is missing."""
    refused = [refusal.sentence for refusal in plan.refused(role, host)]
    return refused or [consent_text(change) for change in plan.of(role, host) if change.missing_consent]


Entries = dict[str, list[dict[str, str]]]
"""By host, with text and remedy."""


def _refused(plan: Plan, role: str, needed: Sequence[Problem], *, gated: bool) -> Entries:
    """Return what is refused."""
    found: Entries = {}
    for one in (*(plan.refusals if gated else ()), *needed):
        if one.role == role and one.subject in plan.hosts:
            found.setdefault(one.subject, []).append({"text": one.text, "remedy": one.remedy})
    return found


def _consents(plan: Plan) -> dict[str, Entries]:
    """Return the consents that are missing, by variable. What is refused is not begun with any."""
    found: dict[str, Entries] = {}
    for change in plan.missing_consents:
        if change.consent and not plan.refused(change.role, change.host):
            entries = found.setdefault(change.consent.variable, {}).setdefault(change.host, [])
            entry = {"text": change.consent.effect, "remedy": change.consent.remedy}
            if entry not in entries:
                entries.append(entry)
    return found


def _drift(plan: Plan, role: str, host: str) -> list[str]:
    return [drift_text(change) for change in plan.of(role, host) if not change.tolerated]


def _each(plan: Plan, value: Callable[[str, str], Any]) -> dict[str, dict[str, Any]]:
    return {host: {role: value(role, host) for role in plan.roles} for host in plan.hosts}
