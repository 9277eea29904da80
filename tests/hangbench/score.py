# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Scores the answers of a doctor, and prints a table of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

ALIASES = {
    "allgather": "all_gather",
    "allreduce": "all_reduce",
    "alltoall": "all_to_all",
    "reducescatter": "reduce_scatter",
}
ALIASES |= {"all_to_all_single": "all_to_all", "alltoall_base": "all_to_all", "all_gather_into_tensor": "all_gather"}
ALIASES |= {
    "reduce_scatter_tensor": "reduce_scatter",
    "_allgather_base": "all_gather",
    "isend": "send",
    "irecv": "recv",
}
ALIASES |= {"rendezvous": "init_process_group"}
COLUMNS = ("rank", "kind", "collective", "does", "link")


def operation(name: object) -> str | None:
    """Return the name of an operation as torch.distributed has it: `gloo:all_reduce` and `ALLREDUCE` are one."""
    if not isinstance(name, str):
        return None
    plain = name.rpartition(":")[2].strip().lower()
    return ALIASES.get(plain, plain)


def ranks(answer: dict[str, Any]) -> set[int] | None:
    """Return the ranks that an answer blames: an empty set for none, None where it does not say."""
    if "ranks" not in answer and "rank" not in answer:
        return None
    named = answer.get("ranks", answer.get("rank"))
    if named is None:
        return set()
    listed = named if isinstance(named, list) else [named]
    return {one for one in listed if isinstance(one, int) and not isinstance(one, bool)}


def collective(truth: dict[str, Any], answer: object) -> bool | None:
    """Return whether an answer names the collective that the others wait in; None where they wait in none."""
    if truth.get("operation") is None:
        return None
    if not isinstance(answer, dict) or operation(answer.get("operation")) != operation(truth["operation"]):
        return False
    if truth.get("sequence") is not None and answer.get("sequence") != truth["sequence"]:
        return False
    return truth.get("group") is None or same_group(truth["group"], answer.get("group"))


def same_group(truth: list[int], answer: object) -> bool:
    return isinstance(answer, list) and sorted(map(str, answer)) == sorted(map(str, truth))


def hang(truth: dict[str, Any], answer: dict[str, Any] | None) -> dict[str, bool | None]:
    """Return for each column whether the answer is right; None where the truth does not define it."""
    # Whoever finds that nothing hangs blames no rank, but not rightly.
    given = answer if answer and answer.get("hang") is not False else {}
    function, link = truth["does"].get("function"), truth.get("link")
    return {
        "rank": ranks(given) == set(truth["culprits"] or []),
        "kind": given.get("kind") in truth["accept"],
        "collective": collective(truth["waiting"], given.get("collective")),
        "does": function in str(given.get("does", "")) if function else None,
        "link": given.get("link") == link if link else None,
    }


def healthy(answer: dict[str, Any] | None) -> dict[str, bool | None]:
    """Return whether there was no false alarm: no answer, or one that says that nothing hangs."""
    return {"quiet": answer is None or answer.get("hang") is False}


def share(values: Iterable[bool | None]) -> str:
    counted = [value for value in values if value is not None]
    return f"{sum(counted)}/{len(counted)}" if counted else "-"


def table(results: list[dict[str, Any]], halves: dict[str, str]) -> str:
    """Return the table of a file of results: a row for each kind, and one for each half."""
    scored = [one for one in results if "scores" in one]
    hangs = [one for one in scored if not one["healthy"]]
    rows = [("kind", "cases", *COLUMNS, "median s")]
    groups = [(kind, [one for one in hangs if one["kind"] == kind]) for kind in sorted({one["kind"] for one in hangs})]
    groups += [(f"all, {half}", [one for one in hangs if halves.get(one["id"]) == half]) for half in ("tuned", "held")]
    for name, members in groups:
        if members:
            seconds = statistics.median(one["answered_after"] for one in members)
            shares = (share(one["scores"][column] for one in members) for column in COLUMNS)
            rows.append((name, str(len(members)), *shares, f"{seconds:.0f}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    quiet = [one["scores"]["quiet"] for one in scored if one["healthy"]]
    lines.append(f"false alarms: {len(quiet) - sum(quiet)} of {len(quiet)} healthy runs")
    blamed = [one for one in hangs if one.get("blames")]
    lines.append(f"right rank where one is to blame: {share(one['scores']['rank'] for one in blamed)}")
    for word in ("skipped", "failed"):
        lines += [f"{word}: {one['id']}: {one[word]}" for one in results if word in one]
    verified = [one["verified"] for one in results if "verified" in one]
    if verified:
        lines.append(f"verified: {sum(verified)} of {len(verified)}")
        lines += [f"not verified: {one['id']}: {'; '.join(one['problems'])}" for one in results if one.get("problems")]
    return "\n".join(lines)
