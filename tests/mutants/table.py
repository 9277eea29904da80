# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""docs/mutants.json, and the table of docs/security.md that is made from it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.documents import ROOT
from tests.mutants.mutant import KINDS
from tests.mutants.results import EQUIVALENT, EXPLAINED, KILLED, RESULTS, Result
from tests.whole_file import write_whole

KEPT, PAGE = ROOT / "docs" / "mutants.json", ROOT / "docs" / "security.md"
BEGIN, END = "<!-- mutants: begin, written by make mutants -->", "<!-- mutants: end -->"
COLUMNS = ("target", *KINDS, "tried", *RESULTS, "there are")


def keep(results: Sequence[Result], sizes: Mapping[str, int], date: str, seconds: float) -> None:
    """Write the results, and the table from them."""
    document = {
        "date": date,
        "seconds": round(seconds),
        "there_are": dict(sizes),
        "results": [result.as_json() for result in results],
    }
    write_whole(KEPT, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    write_whole(PAGE, placed(PAGE.read_text(encoding="utf-8"), rendered(document)))


def read() -> tuple[list[Result], dict[str, int], float]:
    """Return the kept results, how many mutants of each target there were, and the seconds that all took."""
    document = json.loads(KEPT.read_text(encoding="utf-8"))
    return [Result(**result) for result in document["results"]], document["there_are"], document["seconds"]


def placed(page: str, table: str) -> str:
    """Return a page with the table between its markers."""
    before, begin, rest = page.partition(BEGIN)
    dummy, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for the table. Remedy: put {BEGIN} and {END} there.")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def rendered(document: Mapping[str, Any]) -> str:
    return "\n".join(_lines(document))


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    results, sizes = document["results"], document["there_are"]
    kinds: Counter[str] = Counter(result["result"] for result in results)
    yield (
        f"Last run {document['date']}: {len(results)} of {sum(sizes.values())} mutants in "
        f"{document['seconds'] / 60:.0f} minutes, {kinds[KILLED]} killed, {kinds[EQUIVALENT]} equivalent, "
        f"{kinds[EXPLAINED]} explained. A cell says how many of how many were killed."
    )
    yield ""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for target in sizes:
        yield _row(target, [result for result in results if result["target"] == target], sizes[target])
    yield _row("all", results, sum(sizes.values()))


def _row(name: str, results: Sequence[Mapping[str, Any]], size: int) -> str:
    cells = [name]
    for kind in KINDS:
        found = [result["result"] for result in results if result["kind"] == kind]
        cells.append(f"{found.count(KILLED)} of {len(found)}" if found else "")
    cells.append(str(len(results)))
    cells += [str(sum(one["result"] == result for one in results)) for result in RESULTS]
    return f"| {' | '.join([*cells, str(size)])} |"
