# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Examine one node of a job that makes no progress: what its ranks do, as data that can be kept and judged later.

Nothing is changed, and no process is stopped for it: files of /proc are read, and ranks that our launcher started
are asked by signals that they have registered for.
Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import host_files, shape
from .answers import Rank, recorded, reported, stacks_by_py_spy, stacks_by_signal
from .process_files import locks_of
from .processes import Proc
from .sockets_io import sockets_by_inode

LIMIT_S = 15.0
LIMIT_BYTES = 64 << 20
SAMPLE_S = 2.0
"""Seconds between the two reads of which processor time and progress are the difference."""
WORK_S = 0.5
"""The same at least for what is read and written, after the reports, which ranks write too."""
REPORT_S = 4.0
"""Seconds that ranks have for their report. One that holds the interpreter's lock gives none."""


def examine(
    root: Path,
    ranks: Iterable[Mapping[str, Any]],
    limit_s: float = LIMIT_S,
    limit_bytes: int = LIMIT_BYTES,
    node: str = "",
) -> dict[str, Any]:
    """Return the examination of this node as JSON-able data: at most so many seconds and bytes of it.

    ``root``: the root of the file system, ``/``. ``ranks``: those of this node, ``{rank, pid}``, with ``folder`` where
    the ranks were started with inside.environment().
    """
    began = time.monotonic()
    until = began + limit_s
    proc = Proc(root)
    own = [Rank(int(one["rank"]), int(one.get("pid") or 0), one.get("folder")) for one in ranks]
    found: dict[int, dict[str, Any]] = {one.rank: {"rank": one.rank, "pid": one.pid} for one in own}
    missing: list[str] = []
    alive = [one for one in own if proc.alive(one.pid)]
    for one in own:
        found[one.rank]["alive"] = one in alive
    before = {one.rank: proc.sample(one.pid) for one in alive}
    able = [one for one in alive if not proc.stopped(one.pid)]
    reports = reported(proc, able, min(until, time.monotonic() + REPORT_S))
    for rank, report in reports.items():
        found[rank].update(report)
    silent = [one for one in alive if one.rank not in reports]
    for read in (stacks_by_py_spy, stacks_by_signal):
        left = [one for one in silent if not found[one.rank].get("threads")]
        if left:
            given, problems = read(proc, left, min(until, time.monotonic() + limit_s / 4))
            for rank, threads in given.items():
                found[rank].update(threads=threads, source=read.__name__.rpartition("stacks_by_")[2].replace("_", "-"))
            for rank, problem in problems.items():
                found[rank].setdefault("missing", []).append(problem)
    for one in silent:
        found[one.rank].update(recorded(one, min(until, time.monotonic() + 2)))
    with noted(missing, "sockets"):
        by_inode = sockets_by_inode(proc, [one.pid for one in alive])
        for one in alive:
            found[one.rank]["sockets"] = proc.sockets(one.pid, by_inode)
    with noted(missing, "locks of files"):
        for pid, locks in locks_of(proc.text("locks"), {one.pid: "" for one in alive}).items():
            rank = next(one.rank for one in alive if one.pid == pid)
            named = [{**lock, "holder_name": proc.name(lock["holder"])} for lock in locks]
            found[rank]["locks"] = named
    pids = [one.pid for one in alive]
    work = proc.work(pids, proc.children())
    time.sleep(max(0.0, min(max(SAMPLE_S - (time.monotonic() - began), WORK_S), until - time.monotonic())))
    children = proc.children()
    worked = proc.work(pids, children)
    for one in alive:
        with noted(missing, f"rank {one.rank}"):
            found[one.rank].update(proc.rank(one.pid, before[one.rank], children))
            found[one.rank].update(proc.worked(work[one.pid], worked[one.pid]))
    moved = [one for one in able if reports.get(one.rank, {}).get("entries")]
    for rank, again in reported(proc, moved, min(until, time.monotonic() + 1)).items():
        found[rank]["moved"] = newest(again) != newest(reports[rank])
    examined = {
        "version": 1,
        "node": node,
        "time": time.time(),
        "ranks": [found[rank] for rank in sorted(found)],
        **host_files.host(proc, reports.values(), proc.age(one.pid for one in alive), until, missing),
    }
    examined.update(missing=missing, took=round(time.monotonic() - began, 1))
    return within(shape.examination(examined), limit_bytes)


@contextlib.contextmanager
def noted(missing: list[str], what: str) -> Any:
    """Note what could not be read, and go on."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        missing.append(f"{what}: {error}"[:200])


def newest(report: Mapping[str, Any]) -> list[Any]:
    """Return how far each group is."""
    heads = {str(entry.get("group")): (entry.get("sequence"), entry.get("done")) for entry in report["entries"]}
    return sorted(heads.items(), key=str)


def within(examined: dict[str, Any], limit: int) -> dict[str, Any]:
    """Leave out the parts that say least until an examination is small enough."""
    for part, keep in (("entries", 40), ("threads", 4), ("tasks", 8), ("sockets", 64), ("entries", 4), ("children", 4)):
        if size(examined) <= limit:
            return examined
        for one in examined["ranks"]:
            if len(one.get(part, ())) > keep:
                one[part] = one[part][-keep:] if part == "entries" else one[part][:keep]
        examined["missing"] = [*examined.get("missing", [])[:31], f"{part}: cut, as there was too much"]
    while size(examined) > limit and examined.get("ranks"):
        examined["ranks"] = examined["ranks"][: len(examined["ranks"]) // 2]
    return examined


def size(examined: Mapping[str, Any]) -> int:
    return len(json.dumps(examined))
