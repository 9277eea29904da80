# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A plan as a JSON document: docs/plan.md has its schema. A report, and never an input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .changes import Change, Consent, Sealed, Unknown
from .fold import Plan

FORMAT = 1
_SEAL = 16
"""Hexadecimal digits of a secret's digest that are written: enough to tell two of a run apart."""


def document(plan: Plan, run: str = "") -> dict[str, Any]:
    """Return a plan as JSON has it. Secrets are sealed, and what the roles' tasks read is not part of it."""
    return {
        "format": FORMAT,
        "run": run,
        "roles": list(plan.roles),
        "hosts": list(plan.hosts),
        "counts": asdict(plan.counts),
        "changes": [_change(change) for change in plan.changes],
        "refusals": [
            {"role": one.role, "host": one.subject, "text": one.text, "remedy": one.remedy} for one in plan.refusals
        ],
        "found_after_apply": [],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "host": change.host,
        "role": change.role,
        "what": change.what,
        "action": change.action,
        "before": plain(change.before),
        "after": plain(change.after),
        "why": change.why,
        "consent": _consent(change.consent),
    }


def _consent(consent: Consent | None) -> dict[str, Any] | None:
    if consent is None:
        return None
    return {
        "variable": consent.variable,
        "effect": consent.effect,
        "given": consent.given,
        "remedy": consent.remedy,
    }


def plain(value: Any) -> Any:
    """Return a value as JSON has it; ``{"unknown": reason}`` and ``{"sealed": digest}`` stand for what has no text."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if isinstance(value, Sealed):
        return {"sealed": value.digest[:_SEAL]}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)


def written(found: Mapping[str, Any]) -> str:
    """Return the document's text."""
    return json.dumps(found, indent=2, sort_keys=False, ensure_ascii=False) + "\n"
