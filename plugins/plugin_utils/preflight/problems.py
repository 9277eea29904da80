# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How preflight reports: checks are functions that yield problems; all are run, and reported together, once.

What is checked is in ``inventory`` (no connection needed) and ``facts`` (facts of all hosts).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, TypeVar

SHOWN_HOSTS = 5


class PreflightError(Exception):
    """Preflight itself was called wrongly: an argument, not the inventory or a host, has to be corrected."""


@dataclass(frozen=True)
class Problem:
    """One line of the report. ``subject`` is a host, a group or a variable; ``fatal`` is false for a mere warning.

    ``check`` is the name of the check that found it, which ``collect`` fills in.
    """

    subject: str
    text: str
    remedy: str
    check: str = ""
    fatal: bool = True

    def line(self) -> str:
        """Return ``subject: text. Remedy: remedy.``"""
        # "… did you mean 'x'?" ends by itself.
        end = "" if self.text.endswith("?") else "."
        return f"{self.subject}: {self.text}{end} Remedy: {self.remedy}."

    def reported(self) -> str:
        """Return the line with the name of its check, which the documentation lists and ``preflight_skip`` takes."""
        return f"{self.line()} (check: {self.check})"


@dataclass(frozen=True)
class Report:
    """What a stage found: fatal ``problems``, ``warnings``, and the names of the checks that were run or left out."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    checked: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    def message(self) -> str:
        """Return one readable text with all problems, numbered."""
        if not self.problems:
            return f"Preflight: {len(self.checked)} checks passed."
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"{number}. {problem.reported()}" for number, problem in enumerate(self.problems, 1)]
        return "\n".join([f"Preflight found {count}. Nothing was changed.", *lines])

    def notices(self) -> list[str]:
        """Return what is shown whether there are problems or not: checks that were left out, and warnings."""
        left_out = [f"Preflight check {name} is skipped, as requested." for name in self.skipped]
        return left_out + [problem.reported() for problem in self.warnings]


Context = TypeVar("Context")


def collect(
    checks: Mapping[str, Callable[[Context], Iterable[Problem]]], context: Context, skip: Sequence[str] = ()
) -> Report:
    """Run all checks but the skipped ones. What is the same on several subjects is reported once."""
    merged: dict[tuple[str, str, str, bool], Problem] = {}
    checked = tuple(name for name in checks if name not in skip)
    for name in checked:
        for problem in checks[name](context):
            key = (name, problem.text, problem.remedy, problem.fatal)
            same = merged.get(key)
            subject = f"{same.subject}, {problem.subject}" if same else problem.subject
            merged[key] = replace(problem, check=name, subject=subject)
    problems = tuple(problem for problem in merged.values() if problem.fatal)
    warnings = tuple(problem for problem in merged.values() if not problem.fatal)
    return Report(problems, warnings, checked, tuple(name for name in checks if name in skip))


def missing(host: str, what: str) -> Problem:
    """Return the problem that a host's facts lack ``what``."""
    return Problem(
        host,
        f"what was found there does not say {what}",
        "run the playbook again; if it stays so, check the output of swarmspeed.cluster.node_facts for this host",
    )


def mapping(value: Any) -> Mapping[str, Any]:
    """Return the value where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def texts(value: Any) -> list[str]:
    """Return the items of a list as text; anything else is an empty list."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the items of a list as mappings, empty where they are none; anything else is an empty list."""
    return [mapping(item) for item in value] if isinstance(value, (list, tuple)) else []


def whole(value: Any) -> int | None:
    """Return a whole number >= 0, also where an INI inventory or the command line gave it as text, else None."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def number(value: Any) -> float | None:
    """Return a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:  # an int beyond the range of floats
        return None
    return found if math.isfinite(found) else None


def listing(names: Iterable[str]) -> str:
    """Return names for a sentence, the first few of them where there are many."""
    ordered = list(names)
    if len(ordered) <= SHOWN_HOSTS:
        return ", ".join(ordered)
    return f"{', '.join(ordered[:SHOWN_HOSTS])} and {len(ordered) - SHOWN_HOSTS} more"
