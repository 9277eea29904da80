# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""docs/security.md names for each attack a test, and each test of tests/adversary has a line there."""

from __future__ import annotations

import ast
import re

from tests.documents import ROOT, text

ADVERSARY = ROOT / "tests" / "adversary"


def named() -> dict[str, set[str]]:
    """Return the files that docs/security.md names, with the functions that it names of each."""
    found: dict[str, set[str]] = {}
    for path, function in re.findall(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`", text("docs/security.md")):
        found.setdefault(path, set()).update({function} - {""})
    return found


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return {name for name in found if name.startswith("test_")}


def test_every_test_that_is_named_exists() -> None:
    assert [path for path in named() if not (ROOT / path).is_file()] == []
    assert {path: names - functions(path) for path, names in named().items() if names - functions(path)} == {}


def test_every_file_of_attacks_is_named() -> None:
    there = {str(path.relative_to(ROOT)) for path in ADVERSARY.glob("test_*.py")}
    assert there and sorted(there - set(named())) == []


def test_every_line_of_the_table_names_a_test() -> None:
    section = text("docs/security.md").split("## Attacks, and the tests")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    proof = re.compile(r"`tests/(adversary|unit)/[a-z_/]*test_")
    assert len(rows) > 20 and [row for row in rows if not proof.search(row)] == []
