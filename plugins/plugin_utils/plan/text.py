# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A plan as text for people, as sentences for verify, and as Ansible's diff. Secrets are in none of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from ...module_utils.common.untrusted_text import on_one_line
from .changes import ADD, CHANGE, REMOVE, Change, Sealed, Unknown
from .fold import Plan

KNOWN_AFTER = "(known after apply)"
SECRET, OTHER_SECRET = "(a secret)", "(another secret)"
LONGEST = 200
"""Characters of a value that are shown on its line."""


def plan_text(plan: Plan) -> str:
    """Return the whole plan."""
    lines = _by_host(plan.changes)
    if plan.refusals:
        lines += ["Refused:", *(f"  {one.subject}: {one.role}: {one.sentence}." for one in plan.refusals), ""]
    missing = plan.missing_consents
    if missing:
        lines.append("Needs your consent:")
        lines += [f"  {change.host}: {change.role}: {consent_text(change)}." for change in missing]
        lines.append("")
    lines.append(summary(plan))
    return "\n".join(lines)


def unforeseen_text(changes: Iterable[Change]) -> str:
    """Return what is to be changed and was not in the first plan of the run; empty where there is nothing."""
    lines = _by_host(changes)
    return "\n".join(["Found after apply:", *lines[:-1]]) if lines else ""


def _by_host(changes: Iterable[Change]) -> list[str]:
    lines: list[str] = []
    for host, of_host in groupby(changes, lambda change: change.host):
        lines.append(host)
        for role, of_role in groupby(of_host, lambda change: change.role):
            lines.append(f"  {role}")
            for change in of_role:
                lines += [f"    {line}" for line in change_lines(change)]
        lines.append("")
    return lines


def summary(plan: Plan) -> str:
    """Return the plan's last line."""
    found = plan.counts
    if not found.total:
        return "No changes."
    return f"Plan: {found.add} to add, {found.change} to change, {found.remove} to remove."


def change_lines(change: Change) -> list[str]:
    """Return the line of a change, with why it is made, and another one where it needs consent."""
    first, second = shown_pair(change.before, change.after)
    values = {ADD: second, REMOVE: first}.get(change.action, f"{first} → {second}")
    # Of a thing that is there or not, such as a hold, there is no more to tell.
    bare = change.action != CHANGE and (change.after is True or change.before is True)
    line = f"{change.action} {change.what}" if bare else f"{change.action} {change.what}: {values}"
    lines = [f"{line}  # {change.why}" if change.why else line]
    if change.consent:
        state = "allowed by" if change.consent.given else "not allowed without"
        lines.append(f"    {change.consent.effect}: {state} {change.consent.variable}: {change.consent.value}")
    return lines


def consent_text(change: Change) -> str:
    """Return the sentence of a change that needs consent, with the remedy and without its full stop."""
    consent = change.consent
    if consent is None:
        return ""
    return f"{consent.effect}. Remedy: {consent.remedy}"


def drift_text(change: Change) -> str:
    """Return what verify says of a change, as that of the roles that compare for themselves."""
    if change.action == ADD:
        return f"{change.what} is missing"
    if change.action == REMOVE:
        return f"{change.what} exists, but should not"
    if _text(change.before) or _text(change.after) or isinstance(change.after, Sealed):
        return f"{change.what} has other content"
    first, second = shown_pair(change.before, change.after)
    wanted = change.after.reason if isinstance(change.after, Unknown) else second
    return f"{change.what} is {first}, but should be {wanted}"


def diff(changes: Iterable[Change]) -> list[dict[str, str]]:
    """Return Ansible's diffs: one of all single values, and one for each text."""
    single: list[Change] = []
    found: list[dict[str, str]] = []
    for change in changes:
        if _text(change.before) or _text(change.after):
            sides = shown_pair(change.before, change.after, whole=True)
            before, after = (
                "" if value is None else shown for value, shown in zip((change.before, change.after), sides)
            )
            found.append({"before": before, "after": after, "before_header": change.what, "after_header": change.what})
        else:
            single.append(change)
    pairs = [(change.what, *shown_pair(change.before, change.after)) for change in single]
    if pairs:
        before, after = ("".join(f"{pair[0]}: {pair[side]}\n" for pair in pairs) for side in (1, 2))
        found.insert(0, {"before": before, "after": after})
    return found


def shown_pair(before: Any, after: Any, whole: bool = False) -> tuple[str, str]:
    """Return both sides of a change to show; of two secrets the second says that it is another one."""
    first, second = shown(before, whole), shown(after, whole)
    if isinstance(after, Sealed) and isinstance(before, Sealed):
        second = OTHER_SECRET
    return first, second


def shown(value: Any, whole: bool = False) -> str:
    """Return a value on one line, without what a terminal would obey; with ``whole`` a text as it is."""
    if value is None:
        return "absent"
    if isinstance(value, Unknown):
        return KNOWN_AFTER
    if isinstance(value, Sealed):
        return SECRET
    if _text(value):
        count = len(value.splitlines())
        return str(value) if whole else f"({count} line{'s' if count > 1 else ''})"
    if isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    else:
        text = json.dumps(value, default=str, ensure_ascii=False)
    return on_one_line(text, LONGEST) or "(empty)"


def _text(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value
