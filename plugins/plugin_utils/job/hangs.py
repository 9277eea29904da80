# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A job that makes no progress, for people: when it is examined, what was found, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from ...module_utils.job.doctor.finding import sentence
from ...module_utils.job.resource import ACTIVE
from ..core.values import mapping, number

MOST_ROWS = 64
"""Ranks that are shown one by one; of more only those to blame are."""


def _last(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """The last finding, one that can be put in words."""
    summary = mapping(job.get("summary"))
    found = mapping(job.get("hang")).get("findings") or summary.get("hangs") or []
    last = mapping(found[-1]) if isinstance(found, Sequence) and found else {}
    known = number(last.get("silent")) is not None and number(last.get("bound")) is not None
    return last if known and last.get("sentence") else {}


def bound(name: str, job: Mapping[str, Any]) -> list[str]:
    """When a job that runs is examined, and why then."""
    hang = mapping(job.get("hang"))
    seconds = number(hang.get("bound"))
    if job.get("state") not in ACTIVE or not seconds:
        return []
    return [f"{name} will be examined if it makes no progress for {seconds:g} s: {hang.get('why')}"]


def sentences(name: str, job: Mapping[str, Any], node: str) -> list[str]:
    """What was found last. ``node``: where the job's log and evidence are."""
    last = _last(job)
    if not last or job.get("state") not in (*ACTIVE, "failed"):
        return []
    if last.get("woke") is not None:
        if job.get("state") not in ACTIVE:
            return []
        return [
            f"{name}: made no progress for {last['woke']:.0f} s until shortly after {last.get('at')}, then continued"
        ]
    where = PurePosixPath(str(job.get("log_path") or "")).parent / str(last.get("evidence") or "")
    return [f"{name}, at {last.get('at')}: {sentence(last)} Evidence: {node}:{where}"]


def view(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """The last finding as the report has it, with a row for each rank."""
    last = _last(job)
    if not last:
        return None
    rows = list(_rows(last, mapping(job.get("summary")).get("members") or job.get("members") or []))
    shown = rows if len(rows) <= MOST_ROWS else [row for row in rows if row["level"] == "bad"][:MOST_ROWS]
    return {
        "sentence": str(last["sentence"]).rstrip(".") + ".",
        "remedy": str(last.get("remedy") or ""),
        "confidence": str(last.get("confidence") or ""),
        "at": str(last.get("at") or ""),
        "silent": f"{last['silent']:.0f} s",
        "woke": None if last.get("woke") is None else f"{last['woke']:.0f} s",
        "missing": ", ".join(str(one) for one in last.get("missing") or []),
        "ranks": list(last.get("ranks") or []),
        "timeline": last.get("timeline"),
        "nodes": {row["rank"]: row["node"] for row in rows},
        "rows": shown,
        "more": len(rows) - len(shown),
    }


def _rows(last: Mapping[str, Any], members: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Who waits for whom: of each rank what it does, as far as the finding says so."""
    blamed, group = list(last.get("ranks") or []), mapping(last.get("collective")).get("group")
    collective, link = mapping(last.get("collective")), mapping(last.get("link"))
    waiting = collective.get("ranks") or group
    operation = " ".join(str(collective[key]) for key in ("operation", "sequence") if collective.get(key) is not None)
    who = f"rank {', '.join(map(str, blamed[:8]))}" if blamed else "the others"
    frame = mapping(last.get("does"))
    place = ":".join(str(frame[key]) for key in ("file", "line") if frame.get(key))
    does = ", ".join(part for part in (str(frame.get("function") or ""), place) if part)
    for member in members:
        found, slots = mapping(member), mapping(member).get("slots")
        first = number(found.get("first_rank"))
        for rank in range(int(first or 0), int(first or 0) + len(slots if isinstance(slots, list) else [])):
            level, what = "", "not in this collective"
            if rank in blamed:
                level, what = "bad", f"is in {does}" if does else "did not come"
            elif operation and (not isinstance(waiting, list) or not waiting or rank in waiting):
                level, what = "warn", f"waits for {who} in {operation}"
            if not operation and rank not in blamed:
                what = ""
            if rank in (link.get("from"), link.get("to")):
                what = f"{what}; packets from {link.get('from')} to {link.get('to')} are lost".lstrip("; ")
            yield {"rank": rank, "node": str(found.get("name") or ""), "level": level, "what": what}
