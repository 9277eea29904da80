# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A problem: what is wrong where, and the remedy.

Checks are functions that yield problems; all are run, and reported together, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Callable, TypeVar

SHOWN_HOSTS = 5


@dataclass(frozen=True)
class Problem:
    """``subject`` is a host, a group or a variable; ``fatal`` is false for a mere warning. ``text`` and ``remedy`` are
    clauses without a full stop.

    ``check`` is the name of the check that found it, which ``collect`` fills in; ``role`` that of the role which would
    not begin on a host, which the plan's fold fills in.
    """

    subject: str
    text: str
    remedy: str
    check: str = ""
    fatal: bool = True
    role: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.text}. Remedy: {self.remedy}"

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
        f"the facts gathered there do not say {what}",
        "run the playbook again; if the problem persists, check the output of swarmspeed.cluster.node_facts for this "
        "host",
    )


def listing(names: Iterable[str]) -> str:
    """Return names for a sentence, the first few of them where there are many."""
    ordered = list(names)
    if len(ordered) <= SHOWN_HOSTS:
        return ", ".join(ordered)
    return f"{', '.join(ordered[:SHOWN_HOSTS])} and {len(ordered) - SHOWN_HOSTS} more"
