# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is known of survivors, what makes the command fail, and the table of docs/security.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.documents import text
from tests.mutants.choice import MOST
from tests.mutants.mutant import KINDS
from tests.mutants.results import (
    EQUIVALENT,
    KILLED,
    RESULTS,
    SURVIVED,
    ExplanationError,
    Result,
    complaints,
    exists,
    explanations,
    judged,
    read_explanations,
    settled,
    unexplained,
)
from tests.mutants.table import BEGIN, COLUMNS, END, KEPT, rendered
from tests.mutants.targets import TARGETS

FIRST = "plugins/module_utils/common/private_folder.py::make_private"


def entry(**changed: Any) -> list[dict[str, Any]]:
    return [{"mutants": ["one"], "verdict": EQUIVALENT, "why": "another holds", "defence": FIRST, **changed}]


def result(outcome: str, mutant: str = "one", by: str = "") -> Result:
    return Result("hub", KINDS[0], mutant, outcome, by, 3, 0.5)


def test_a_survivor_is_reported() -> None:
    (complaint,) = complaints([result(SURVIVED), result(KILLED, "two", "a test")], {}, {"one", "two"})
    assert complaint == (
        "one: no test notices it (3 were run). Remedy: write a test that fails with it, or explain it in explained.yml."
    )


def test_a_survivor_that_is_explained_is_not() -> None:
    known = explanations(entry())
    found = judged(result(SURVIVED), known)
    assert (found.result, found.by) == (EQUIVALENT, f"{FIRST}: another holds")
    assert complaints([found], known, {"one"}) == []


def test_an_entry_that_a_test_contradicts_is_reported() -> None:
    known = explanations(entry())
    found = judged(result(KILLED, by="a test"), known)
    assert found.result == KILLED
    assert complaints([found], known, {"one"}) == [
        "one: explained.yml explains why no test notices it, but a test does. Remedy: remove the entry."
    ]


def test_an_entry_of_a_mutant_that_is_gone_is_reported() -> None:
    (complaint,) = complaints([], explanations(entry()), {"two"})
    assert complaint.startswith("one: explained.yml explains it, but there is no such mutant.")


@pytest.mark.parametrize("name", ["mutants", "verdict", "why", "defence"])
def test_an_entry_says_everything(name: str) -> None:
    with pytest.raises(ExplanationError, match=f"Entry 1 of explained.yml has no {name}"):
        explanations(entry(**{name: ""}))


@pytest.mark.parametrize(
    "defence",
    [
        "the kernel",
        FIRST.replace("make_private", "no_such"),
        "plugins/none.py::f",
        "docs/security.md::Assets",
        FIRST + ".",
    ],
)
def test_a_defence_that_does_not_exist_is_refused(defence: str) -> None:
    with pytest.raises(ExplanationError, match="does not exist"):
        explanations(entry(defence=defence))


def test_other_verdicts_and_second_entries_are_refused() -> None:
    with pytest.raises(ExplanationError, match="write equivalent or explained"):
        explanations(entry(verdict="harmless"))
    with pytest.raises(ExplanationError, match="explains one twice"):
        explanations([*entry(), *entry()])


def test_methods_and_constants_are_defences() -> None:
    folder = "plugins/module_utils/common/untrusted_folder.py"
    assert all(exists(f"{folder}::{name}") for name in ("UntrustedFolder.read", "UntrustedFolder", "TEXT_BYTES"))


def test_the_entries_that_there_are_name_defences_that_exist() -> None:
    assert all(one.why and one.defence for one in read_explanations().values())


def test_targets_have_modules_and_tests() -> None:
    root = Path(__file__).parents[3]
    assert all(target.module_paths(root) and target.test_paths(root) for target in TARGETS)


def test_what_was_explained_is_a_survivor_until_it_is_judged_again() -> None:
    known = explanations(entry())
    explained = judged(result(SURVIVED), known)
    assert unexplained(explained) == result(SURVIVED) and judged(unexplained(explained), {}).result == SURVIVED
    assert unexplained(result(KILLED, by="a test")) == result(KILLED, by="a test")


def test_what_is_complained_of_is_tried_again_and_nothing_else() -> None:
    """A test that was late with a mutant may notice one that none can notice."""
    known = explanations(entry(mutants=["explained", "contradicted"]))
    results = [
        result(KILLED, "killed", by="a test"),
        judged(result(SURVIVED, "explained"), known),
        result(SURVIVED, "survivor"),
        result(KILLED, "contradicted", by="a test"),
    ]
    assert [one.mutant for one in settled(results, known)] == ["killed", "explained"]
    everything = {one.mutant for one in results}
    assert [text.partition(":")[0] for text in complaints(results, known, everything)] == ["survivor", "contradicted"]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def assert_sums(table: str, targets: list[str]) -> None:
    header, rule, *rows, total = [cells(line) for line in table.splitlines() if line.startswith("|")]
    assert tuple(header) == COLUMNS and set(rule) == {"---"}
    assert [row[0] for row in rows] == targets and total[0] == "all"
    tried = COLUMNS.index("tried")
    for row in (*rows, total):
        kinds = [[int(number) for number in cell.split(" of ")] for cell in row[1:tried] if cell]
        outcomes = dict(zip(RESULTS, map(int, row[tried + 1 : -1]), strict=True))
        assert sum(of for _killed, of in kinds) == int(row[tried]) == sum(outcomes.values()) <= int(row[-1])
        assert sum(killed for killed, _of in kinds) == outcomes[KILLED]
    for column in range(tried, len(COLUMNS)):
        assert sum(int(row[column]) for row in rows) == int(total[column])
    assert int(total[tried]) <= MOST


def test_a_table_sums_up() -> None:
    results = [
        Result(target, kind, f"{target} {kind} {number}", RESULTS[number % 4], "why", 1, 1.0)
        for target in ("hub", "git")
        for kind in KINDS[: 3 if target == "git" else 5]
        for number in range(7)
    ]
    document = {
        "date": "2026-01-02",
        "seconds": 600,
        "there_are": {"hub": 90, "git": 40},
        "results": [one.as_json() for one in results],
    }
    table = rendered(document)
    assert_sums(table, ["hub", "git"])
    assert table.startswith(
        "Last run 2026-01-02: 56 of 130 mutants in 10 minutes, 16 killed, 16 equivalent, 16 explained."
    )
    assert "| hub | 2 of 7 | 2 of 7 | 2 of 7 | 2 of 7 | 2 of 7 | 35 |" in table


def test_the_page_has_the_table_of_the_results() -> None:
    shown = text("docs/security.md").split(BEGIN)[1].split(END)[0].strip()
    if not KEPT.exists():
        assert shown == ""
        return
    document = json.loads(KEPT.read_text(encoding="utf-8"))
    assert shown == rendered(document)
    assert_sums(shown, list(document["there_are"]))
    assert [one["mutant"] for one in document["results"] if one["result"] == SURVIVED] == []
    assert all(one["by"] for one in document["results"])
