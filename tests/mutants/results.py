# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What came of each mutant, and what is known of those that no test notices."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tests.documents import ROOT

KILLED, EQUIVALENT, EXPLAINED, SURVIVED = RESULTS = ("killed", "equivalent", "explained", "survived")
KNOWN = Path(__file__).with_name("explained.yml")


class ExplanationError(Exception):
    """An entry of explained.yml that says too little, or what is not so."""


@dataclass(frozen=True)
class Result:
    """``by`` is the test that failed, or how the run of the tests ended otherwise; of a survivor it is empty."""

    target: str
    kind: str
    mutant: str
    result: str
    by: str
    tests: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Explanation:
    """Why no test notices some mutants. ``defence`` is what holds instead: ``path::name`` of code or of a test."""

    verdict: str
    why: str
    defence: str


def explanations(entries: Any, root: Path = ROOT) -> dict[str, Explanation]:
    """Return the entries by mutant. Raises ``ExplanationError`` for one without a defence that exists."""
    found: dict[str, Explanation] = {}
    for number, entry in enumerate(entries or [], 1):
        lacking = [name for name in ("mutants", "verdict", "why", "defence") if not entry.get(name)]
        if lacking:
            raise ExplanationError(f"Entry {number} of {KNOWN.name} has no {lacking[0]}. Remedy: add it.")
        if entry["verdict"] not in (EQUIVALENT, EXPLAINED):
            raise ExplanationError(
                f"Entry {number} of {KNOWN.name}: verdict is {entry['verdict']!r}. "
                f"Remedy: write {EQUIVALENT} or {EXPLAINED}."
            )
        if not exists(entry["defence"], root):
            raise ExplanationError(
                f"Entry {number} of {KNOWN.name}: the defence {entry['defence']} does not exist. Remedy: name a "
                "function, class or constant as path::name; if the defence was removed, the mutants need a test."
            )
        for mutant in entry["mutants"]:
            if mutant in found:
                raise ExplanationError(f"{KNOWN.name} explains {mutant} twice. Remedy: remove one of the entries.")
            found[mutant] = Explanation(entry["verdict"], entry["why"], entry["defence"])
    return found


def read_explanations() -> dict[str, Explanation]:
    return explanations(yaml.safe_load(KNOWN.read_text(encoding="utf-8")))


def exists(defence: str, root: Path = ROOT) -> bool:
    """Whether ``path::name`` is a function, a class or a constant of a module of this checkout."""
    path, dummy, name = defence.partition("::")
    file = root / path
    if not name or file.suffix != ".py" or not file.is_file():
        return False
    body: Sequence[ast.stmt] = ast.parse(file.read_bytes()).body
    for part in name.split("."):
        named = next((statement for statement in body if part in _names(statement)), None)
        if named is None:
            return False
        body = getattr(named, "body", [])
    return True


def _names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return set()


def judged(result: Result, known: Mapping[str, Explanation]) -> Result:
    """The result of a mutant that survived, with what is known of it."""
    explanation = known.get(result.mutant)
    if result.result != SURVIVED or explanation is None:
        return result
    return replace(result, result=explanation.verdict, by=f"{explanation.defence}: {explanation.why}")


def unexplained(result: Result) -> Result:
    """A result as it was before what is known of its mutant: no test noticed it, or one did."""
    return result if result.result == KILLED else replace(result, result=SURVIVED, by="")


def settled(results: Sequence[Result], known: Mapping[str, Explanation]) -> list[Result]:
    """The results that need not be had again: a test noticed the mutant, or it is explained, and not both."""
    return [result for result in results if (result.result == KILLED) is not (result.mutant in known)]


def complaints(results: Sequence[Result], known: Mapping[str, Explanation], mutants: set[str]) -> list[str]:
    """Return what makes the command fail. ``mutants`` are all that there are, tried or not."""
    found = [
        f"{result.mutant}: no test notices it ({result.tests} were run). "
        f"Remedy: write a test that fails with it, or explain it in {KNOWN.name}."
        for result in results
        if result.result == SURVIVED
    ]
    found += [
        f"{result.mutant}: {KNOWN.name} explains why no test notices it, but {result.by} does. "
        "Remedy: remove the entry."
        for result in results
        if result.result == KILLED and result.mutant in known
    ]
    gone = sorted(set(known) - mutants)
    return found + [
        f"{name}: {KNOWN.name} explains it, but there is no such mutant. Remedy: correct the entry." for name in gone
    ]
