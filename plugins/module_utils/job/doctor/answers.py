# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Asks ranks for reports and stacks: rank_side.py by a signal, py-spy, faulthandler by a signal.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ...common.untrusted_text import parse_json
from . import inside, recorder, stacks
from .process_files import has_signal
from .processes import Proc

LARGEST_REPORT = 8 << 20
LARGEST_STACKS = 256 << 10
POLL = 0.02
TGKILL = {"x86_64": 234, "aarch64": 131}


@dataclass(frozen=True)
class Rank:
    rank: int
    pid: int
    folder: Any = None
    """Where rank_side.py writes; None where it was not put into the rank."""

    def path(self, name: str) -> Path | None:
        return Path(str(self.folder)) / f"{name}-{self.pid}" if self.folder else None


def send(proc: Proc, pid: int, tid: int, number: int) -> bool:
    """Send a signal to one thread."""
    call = TGKILL.get(proc.machine)
    if call is None:
        return False
    with contextlib.suppress(OSError, AttributeError):
        return int(ctypes.CDLL(None).syscall(call, pid, tid, number)) == 0
    return False


def plain_file(path: Path) -> BinaryIO | None:
    """Open what a rank wrote: no link is followed, no pipe, device or folder is opened."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        return None
    return os.fdopen(number, "rb")


def private(path: Path, most: int, behind: int = 0) -> str | None:
    """Return what a rank wrote into a plain file, ``behind`` so many bytes; None where it is more than ``most``."""
    file = plain_file(path)
    if file is None:
        return None
    with file:
        file.seek(max(behind, os.fstat(file.fileno()).st_size - most if behind else 0))
        data = file.read(most + 1)
    return None if len(data) > most else data.decode("utf-8", "replace")


# --- reports -------------------------------------------------------------------------------------------------------


def reported(proc: Proc, ranks: Sequence[Rank], until: float) -> dict[int, dict[str, Any]]:
    """Return the reports of ranks that listen for them."""
    requested = []
    for one in ranks:
        thread, report = one.path("thread"), one.path("report")
        number = private(thread, 20) if thread else None
        if report is None or not number or not number.isdigit():
            continue
        # rank_side.py has it ignored by all but its thread; of another process it could be the end.
        if has_signal(proc.signals(one.pid, int(number)).get("SigIgn", 0), inside.REPORT):
            with contextlib.suppress(OSError):
                report.unlink()
            if send(proc, one.pid, int(number), inside.REPORT):
                requested.append((one, report))
    found: dict[int, dict[str, Any]] = {}
    while True:
        for one, report in requested:
            if one.rank not in found and os.path.lexists(report):
                found[one.rank] = read_report(private(report, LARGEST_REPORT) or "")
        if len(found) == len(requested) or time.monotonic() >= until:
            break
        time.sleep(POLL)
    late = [(one, report) for one, report in requested if one.rank in found and found[one.rank].get("joined") is False]
    if late and time.monotonic() < until:
        # The name of the store follows, once it was resolved.
        deadline = min(until, time.monotonic() + 1.5)
        while time.monotonic() < deadline and any("name" not in found[one.rank] for one, _report in late):
            time.sleep(POLL)
            for one, report in late:
                if "name" not in found[one.rank]:
                    found[one.rank] = read_report(private(report, LARGEST_REPORT) or "") or found[one.rank]
    return {rank: report for rank, report in found.items() if report}


def read_report(content: str) -> dict[str, Any]:
    """Return a report in the words of an examination; each value still as it came."""
    try:
        data = parse_json(content.encode())
    except ValueError:
        return {}
    if not isinstance(data, Mapping) or not isinstance(data.get("threads"), list):
        return {}
    recorders = data.get("recorders")
    configured = [
        {"pg_config": one.get("configured")}
        for one in (list(recorders.values())[:4] if isinstance(recorders, Mapping) else ())
        if isinstance(one, Mapping)
    ]
    groups = data.get("groups")
    found = {
        "source": "report",
        "threads": data["threads"],
        "groups": {**recorder.groups_of(configured), **(groups if isinstance(groups, Mapping) else {})},
        "joined": data.get("joined"),
        "entries": recorder.entries_of(data),
        "releases": {name: data[name] for name in ("torch", "python", "nccl") if name in data},
    }
    if "name" in data:
        found["name"] = data["name"]
    return found


def recorded(one: Rank, until: float) -> dict[str, Any]:
    """Return what the recorder's own dump of a rank says, which NCCL's watchdog writes."""
    if not one.folder:
        return {}
    path = Path(str(one.folder)) / f"recorder_rank_{one.rank}"
    file = plain_file(path)
    if file is None:
        return {}
    try:
        with file:
            data = file.read(recorder.LARGEST + 1)
        dump = recorder.read_pickle(data, max(0.1, until - time.monotonic()))
    except (OSError, recorder.DumpError) as error:
        return {"missing": [f"the recorder's dump cannot be read: {error}"]}
    return {"entries": recorder.entries_of(dump), "groups": recorder.groups_of([dump])}


# --- stacks --------------------------------------------------------------------------------------------------------


def stacks_by_py_spy(proc: Proc, ranks: Sequence[Rank], until: float) -> Any:
    """Return stacks by rank, and why there are none. py-spy only reads: a rank is not stopped meanwhile."""
    program = shutil.which("py-spy")
    if program is None or proc.root != Path("/"):
        return {}, {}
    words = [program, "dump", "--json", "--nonblocking", "--full-filenames", "--pid"]
    running = []
    for one in ranks:
        with contextlib.suppress(OSError):
            running.append((one, subprocess.Popen([*words, str(one.pid)], stdin=subprocess.DEVNULL, **_PIPES)))
    found, problems = {}, {}
    for one, process in running:
        try:
            printed, error = process.communicate(timeout=max(0.1, until - time.monotonic()))
            threads = stacks.py_spy_threads(printed[:LARGEST_REPORT], one.pid)
            if threads:
                found[one.rank] = threads
            else:
                problems[one.rank] = f"py-spy: {error.decode('utf-8', 'replace').strip()[-150:]}"
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            problems[one.rank] = "py-spy did not end in time"
    return found, problems


_PIPES: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def stacks_by_signal(proc: Proc, ranks: Sequence[Rank], until: float) -> Any:
    """Return stacks that faulthandler writes, by rank, and why there are none."""
    requested, found, problems = [], {}, {}
    for one in ranks:
        path = one.path("stacks")
        if proc.stopped(one.pid):
            problems[one.rank] = "it is stopped, so it answers no signal; py-spy in the container would show its stack"
            continue
        size = path.stat().st_size if path and path.is_file() and not path.is_symlink() else None
        preferred = private(one.path("thread") or Path(), 20) or ""
        target = proc.target(one.pid, inside.STACKS, int(preferred) if preferred.isdigit() else None)
        if path is None or size is None or target is None:
            problems[one.rank] = "it does not catch our signal; py-spy in the container would show its stack"
        elif send(proc, one.pid, target, inside.STACKS):
            requested.append((one, path, size))
    grown: dict[int, int] = {}
    while requested and time.monotonic() < until:
        sizes = {one.rank: path.lstat().st_size for one, path, _size in requested if os.path.lexists(path)}
        if all(
            sizes.get(one.rank, 0) > size and grown.get(one.rank) == sizes[one.rank] for one, _path, size in requested
        ):
            break  # nothing was added since the last look
        grown = sizes
        time.sleep(0.1)
    for one, path, size in requested:
        threads = stacks.faulthandler_threads(private(path, LARGEST_STACKS, behind=size) or "")
        if threads:
            found[one.rank] = threads
        else:
            problems[one.rank] = "it did not handle our signal in time"
    return found, problems
