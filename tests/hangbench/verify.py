# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Compares the truth of a case with what its processes do: traces of collectives, stacks, /proc, cgroups."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from . import faults
from .catalogue import FOLDER, Case
from .faults import kill
from .ranks import Ranks, state

WITHOUT_STACK = ("stopped", "frozen", "throttled", "uninterruptible", "dead", "absent")
"""States in which a process handles no signal, so that its stack cannot be read this way."""
LETTERS = {"T": "stopped", "t": "stopped", "D": "uninterruptible"}


def entered(path: Path) -> dict[str, Any] | None:
    """Return the first collective that a rank has entered and not left."""
    opened: list[dict[str, Any]] = []
    if not path.exists():
        return None
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if not entry.pop("left", False):
            opened.append(entry)
        elif entry in opened:
            opened.remove(entry)
    return opened[0] if opened else None


def differs(truth: dict[str, Any], found: dict[str, Any] | None) -> list[str]:
    """Return in what the collective that a rank waits in is not the one of the truth."""
    if found is None:
        return ["it is in no collective"]
    expected = {key: truth.get(key) for key in ("operation", "sequence", "group") if truth.get(key) is not None}
    return [f"{key} is {found[key]}, not {value}" for key, value in expected.items() if found[key] != value]


def hang(case: Case, ranks: Ranks, place: faults.Place) -> dict[str, Any]:
    """Return the problems that the truth has, and what was seen."""
    truth = case.truth or {}
    waiting, does = truth["waiting"], truth["does"]
    traces = {rank: entered(ranks.private / f"trace-{rank}") for rank in case.ranks}
    problems = []
    for rank in waiting["ranks"]:
        if not ranks.alive(rank):
            problems.append(f"rank {rank} is to wait and has ended")
        elif waiting.get("operation") and not waiting.get("in_cpp"):
            problems += [f"rank {rank}: {difference}" for difference in differs(waiting, traces[rank])]
    states, stuck = {}, [rank for rank in truth["culprits"] or [] if rank not in waiting["ranks"]]
    for rank in stuck:
        states[rank] = observed(rank, ranks, place, traces.get(rank), does["state"])
        if states[rank] != does["state"]:
            problems.append(f"rank {rank} is {states[rank]}, not {does['state']}")
    named = [(rank, does.get("function")) for rank in stuck if does["state"] not in WITHOUT_STACK]
    named += [(rank, waiting.get("function")) for rank in waiting["ranks"]]
    for rank, function in named:
        if function and function not in (stack := functions(ranks, rank)):
            problems.append(f"rank {rank} is not in {function} but in {' < '.join(stack[:6])}")
    seen = {str(rank): trace for rank, trace in traces.items() if trace}
    return {"problems": problems, "seen": seen, "states": {str(rank): one for rank, one in states.items()}}


def observed(rank: int, ranks: Ranks, place: faults.Place, trace: dict[str, Any] | None, expected: str) -> str:
    """Return the state of a rank, in the words of the truth."""
    pid = ranks.pids.get(rank, -1)
    letter = state(pid)
    if letter is None:
        return "dead" if rank in ranks.pids else "absent"
    if expected == "throttled" and faults.throttled(place.cgroups["cpu"]):
        return expected
    if expected == "frozen" and "frozen 1" in (place.cgroups["freeze"] / "cgroup.events").read_text():
        return expected
    if letter in LETTERS:
        return LETTERS[letter]
    # On a busy machine a rank that wants to run gets little of the processors: most samples find it runnable.
    samples = []
    for dummy in range(20):
        samples.append(state(pid))
        time.sleep(0.1)
    idle = "waiting" if trace else "sleeping"
    return "running" if samples.count("R") > 10 else idle


def functions(ranks: Ranks, rank: int) -> list[str]:
    """Return the functions on all stacks of a rank, which it writes on SIGUSR1."""
    path = ranks.private / f"stacks-{rank}"
    before = path.stat().st_size if path.exists() else 0
    kill(ranks.pids[rank], signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        time.sleep(0.3)
        if path.exists() and path.stat().st_size > before:
            break
    time.sleep(0.3)
    with path.open("rb") as file:
        file.seek(before)
        text = file.read().decode("utf-8", "replace")
    return re.findall(r"File .* in (\S+)", text)


def longest_silence(lines: Path) -> float:
    """Return the longest time without a line of any rank, between the first and the last one."""
    times = [json.loads(line)[0] for line in lines.read_text(encoding="utf-8").splitlines()]
    return max((after - before for before, after in zip(times, times[1:])), default=0.0)


def versions(python: str, forked: bool) -> dict[str, Any]:
    """Return what a verification is valid for."""
    words = [python, "-W", "ignore", "-c", "import torch, sys; print(torch.__version__, sys.version.split()[0])"]
    torch, own = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    return {"torch": torch, "python": own, "kernel": os.uname().release, "ranks": "forked" if forked else "started"}


def keep(results: Iterable[dict[str, Any]]) -> None:
    """Keep the cases that were verified, beside those kept before; a case that failed since is dropped."""
    path = FOLDER / "verified.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    names = ("torch", "python", "kernel", "ranks", "seconds", "begins_after", "longest_silence", "seen", "states")
    for result in results:
        if result.get("verified"):
            kept[result["id"]] = {name: result[name] for name in names if result.get(name)}
        elif "skipped" not in result:
            kept.pop(result["id"], None)
    lines = (f'"{name}": {json.dumps(kept[name])}' for name in sorted(kept))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
