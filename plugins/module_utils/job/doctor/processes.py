# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads processes of this node from /proc and their cgroups; what may not be read is left out.

Nothing here reads the command line, the environment or the memory of a process: these block where its memory is locked.
Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .process_files import (
    OF_FILES,
    call_of,
    cgroup_mounts,
    cgroups_of,
    flat,
    has_signal,
    kernel_functions,
    signals_of,
    stat_of,
)

MOST_TASKS = 256
"""Threads of a rank that are read; of these the first and the busiest are described."""
DESCRIBED = 48
MOST_FILES = 4096
MOST_CHILDREN = 64
MOST_SOCKETS = 512
LONGEST = 1 << 20


class Proc:
    """The processes below a root of the file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.machine = os.uname().machine
        self._mounts: dict[str, tuple[str, str]] | None = None
        self._ticks = os.sysconf("SC_CLK_TCK")

    def text(self, *parts: str | int) -> str:
        """Return the content of a file below /proc; nothing where it cannot be read."""
        return self.content(self.root.joinpath("proc", *map(str, parts)))

    def content(self, path: Path) -> str:
        with contextlib.suppress(OSError), path.open("rb") as file:
            return file.read(LONGEST).decode("utf-8", "replace")
        return ""

    def link(self, *parts: str | int) -> str:
        with contextlib.suppress(OSError):
            return os.readlink(self.root.joinpath("proc", *map(str, parts)))  # noqa: PTH115  # Path has it since 3.9
        return ""

    def names(self, *parts: str | int) -> list[str]:
        with contextlib.suppress(OSError):
            return [path.name for path in self.root.joinpath("proc", *map(str, parts)).iterdir()]
        return []

    def stat(self, pid: int) -> dict[str, Any] | None:
        return stat_of(self.text(pid, "stat"))

    def name(self, pid: Any) -> str:
        found = self.stat(pid) if isinstance(pid, int) and pid > 0 else None
        return str(found["name"]) if found else ""

    def age(self, pids: Iterable[int]) -> float:
        """Return the seconds for which the oldest of some processes has run."""
        uptime = self.text("uptime").split()
        starts = [stat["start"] for stat in map(self.stat, pids) if stat]
        return max(0.0, float(uptime[0]) - min(starts) / self._ticks) if uptime and starts else 0.0

    def alive(self, pid: int) -> bool:
        found = self.stat(pid) if pid > 0 else None
        return found is not None and found["state"] not in "ZX"

    def stopped(self, pid: int) -> bool:
        """Whether no signal would be handled: a signal would then wait, and be handled when the process goes on."""
        found = self.stat(pid)
        return found is None or found["state"] in "Tt" or bool(self.cgroup(pid).get("frozen"))

    def work(self, pids: Iterable[int], children: Mapping[int, list[dict[str, Any]]]) -> dict[int, dict[str, Any]]:
        """Return by now what processes and those below them have read and written, and the latter's processor time."""
        found = {}
        for pid in pids:
            below = {child["pid"]: child["ticks"] for child in descendants(pid, children)}
            moved = {one: self._moved(one) for one in (pid, *below)}
            found[pid] = {"time": time.monotonic(), "bytes": moved, "ticks": below}
        return found

    def _moved(self, pid: int) -> int:
        counts = flat(self.text(pid, "io").replace(":", ""))
        return counts.get("rchar", 0) + counts.get("wchar", 0)

    def worked(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float]:
        """Return the bytes a second that were read and written, and the processors that helpers used."""
        seconds = max(after["time"] - before["time"], 0.01)
        moved, used = (
            sum(max(count - before[what].get(pid, count), 0) for pid, count in after[what].items())
            for what in ("bytes", "ticks")
        )
        return {"bytes": round(moved / seconds), "helpers": round(used / self._ticks / seconds, 3)}

    # --- threads -------------------------------------------------------------------------------------------------

    def tasks(self, pid: int) -> list[int]:
        """Return the threads of a process, the main thread first."""
        found = sorted((int(name) for name in self.names(pid, "task") if name.isdigit()), key=lambda tid: tid != pid)
        return found[:MOST_TASKS]

    def sample(self, pid: int) -> dict[str, Any]:
        """Return processor times and throttling by now, for a later difference."""
        stats = ((tid, stat_of(self.text(pid, "task", tid, "stat"))) for tid in self.tasks(pid))
        ticks = {tid: stat["ticks"] for tid, stat in stats if stat}
        return {"ticks": ticks, "time": time.monotonic(), "cgroup": self.cgroup(pid)}

    def rank(self, pid: int, before: Mapping[str, Any], children: Mapping[int, list[dict[str, Any]]]) -> dict[str, Any]:
        """Return what a rank does, from outside."""
        stat = self.stat(pid)
        if stat is None or stat["state"] in "ZX":
            return {"alive": False}
        seconds = max(time.monotonic() - before["time"], 0.01)
        tasks = []
        for tid in self.tasks(pid):
            one = stat_of(self.text(pid, "task", tid, "stat"))
            if one is not None:
                used = (one["ticks"] - before["ticks"].get(tid, one["ticks"])) / self._ticks
                tasks.append({"tid": tid, "name": one["name"], "state": one["state"], "cpu": round(used / seconds, 3)})
        chosen = tasks[:1] + sorted(tasks[1:], key=lambda task: (-task["cpu"], task["state"] != "D"))[: DESCRIBED - 1]
        for task in chosen:
            task.update(self._waits(pid, task["tid"], task["state"]))
        now = self.cgroup(pid)
        throttled = (now.get("throttled_s", 0) - before["cgroup"].get("throttled_s", 0)) / seconds
        return {
            "state": stat["state"],
            "count": stat["threads"],
            "cpu": round(sum(task["cpu"] for task in tasks), 3),
            "tasks": chosen,
            "children": descendants(pid, children),
            "cgroup": {name: value for name, value in now.items() if not isinstance(value, (bool, float))},
            "frozen": bool(now.get("frozen")),
            "throttled": round(max(throttled, 0.0), 3),
        }

    def _waits(self, pid: int, tid: int, state: str) -> dict[str, Any]:
        """Return in what a thread waits: the kernel's function, the system call, the file."""
        found: dict[str, Any] = {}
        wait = self.text(pid, "task", tid, "wchan").strip()
        if wait not in {"", "0"}:
            found["wait"] = wait
        call, argument = call_of(self.text(pid, "task", tid, "syscall"), self.machine)
        if call:
            found["call"] = call
        if call in OF_FILES and argument is not None and 0 <= argument < 1 << 20:
            path = self.link(pid, "fd", argument)
            if path:
                found["path"] = path
        if state == "D":
            functions = kernel_functions(self.text(pid, "task", tid, "stack"))
            if functions:
                found["kernel"] = functions
        return found

    def signals(self, pid: int, tid: int) -> dict[str, int]:
        return signals_of(self.text(pid, "task", tid, "status"))

    def target(self, pid: int, number: int, preferred: int | None = None) -> int | None:
        """Return the thread to which a signal is sent; None where the process does not catch it.

        Best that of rank_side.py, which only waits: a signal interrupts a sleep in C. Where it waits, the stacks of
        the others do not change meanwhile, as one in C has the interpreter's lock. Before it is started: the thread
        that runs, else the main thread, unless that is in an uninterruptible wait, where it would handle no signal.
        """
        if not has_signal(self.signals(pid, pid).get("SigCgt", 0), number):
            return None
        states = {}
        for tid in self.tasks(pid):
            stat = stat_of(self.text(pid, "task", tid, "stat"))
            if stat and not has_signal(self.signals(pid, tid).get("SigBlk", 0), number):
                states[tid] = stat["state"]
        if states.get(preferred or -1) == "S":
            return preferred
        running = next((tid for tid, state in states.items() if state == "R"), None)
        if running is not None or states.get(pid) not in (None, "D"):
            return running or pid
        return next((tid for tid, state in states.items() if state == "S"), None)

    # --- children, sockets ---------------------------------------------------------------------------------------

    def children(self) -> dict[int, list[dict[str, Any]]]:
        """Return all processes of this node by their parent."""
        found: dict[int, list[dict[str, Any]]] = {}
        for name in self.names():
            if name.isdigit():
                stat = self.stat(int(name))
                if stat is not None:
                    child = {"pid": int(name), "parent": stat["parent"], "name": stat["name"], "state": stat["state"]}
                    child["ticks"] = stat["ticks"]
                    if stat["state"] in "ZX":
                        child.update(signal=stat["signal"], code=stat["code"])
                    else:
                        child["wait"] = self.text(name, "wchan").strip()
                    found.setdefault(stat["parent"], []).append(child)
        return found

    def inodes(self, pid: int) -> list[int]:
        """Return the inodes of a process's sockets."""
        found = []
        for name in self.names(pid, "fd")[:MOST_FILES]:
            target = self.link(pid, "fd", name)
            if target.startswith("socket:["):
                found.append(int(target[8:-1]))
        return found

    def sockets(self, pid: int, by_inode: Mapping[int, dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the TCP sockets of a process, those with something unsent first."""
        found = [by_inode[inode] for inode in self.inodes(pid) if inode in by_inode]
        return sorted(found, key=lambda one: -one["send"])[:MOST_SOCKETS]

    # --- cgroups -------------------------------------------------------------------------------------------------

    def cgroup(self, pid: int) -> dict[str, Any]:
        """Return what limits the cgroup of a process: frozen, processor, memory; of the narrowest limit."""
        paths = cgroups_of(self.text(pid, "cgroup"))
        found: dict[str, Any] = {"frozen": False}
        for name in ("", "freezer"):
            for folder in self._folders(name, paths)[:1]:
                events = flat(self.content(folder / "cgroup.events"))
                state = self.content(folder / "freezer.state").strip()
                found["frozen"] |= events.get("frozen") == 1 or state in {"FROZEN", "FREEZING"}
        for name in ("", "cpu"):
            for folder in self._folders(name, paths):
                stat = flat(self.content(folder / "cpu.stat"))
                limit = self.content(folder / "cpu.max").strip() or self.content(folder / "cpu.cfs_quota_us").strip()
                if not limit or limit.startswith(("max", "-1")):
                    continue
                seconds = stat.get("throttled_usec", 0) / 1e6 or stat.get("throttled_time", 0) / 1e9
                found.update(throttled_s=seconds, throttled_periods=stat.get("nr_throttled", 0), cpu_limit=limit)
                period = self.content(folder / "cpu.cfs_period_us").strip()
                if period:
                    found["cpu_limit"] = f"{limit} {period}"
                break
        for name in ("", "memory"):
            for folder in self._folders(name, paths):
                events = flat(self.content(folder / "memory.events") or self.content(folder / "memory.oom_control"))
                if events.get("oom_kill"):
                    found["oom_kills"] = events["oom_kill"]
                    break
        return found

    def _folders(self, controller: str, paths: Mapping[str, str]) -> list[Path]:
        """Return the folder of a cgroup and those around it, the narrowest first."""
        if self._mounts is None:
            self._mounts = cgroup_mounts(self.text("self", "mountinfo"))
        if controller not in self._mounts or controller not in paths:
            return []
        point, shown = self._mounts[controller]
        path = paths[controller]
        if shown != "/" and (path == shown or path.startswith(shown + "/")):
            path = path[len(shown) :]
        parts = [part for part in path.split("/") if part]
        if ".." in parts:  # it is outside of what this container sees
            return []
        top = self.root.joinpath(point.lstrip("/"))
        return [top.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)][:8]


def descendants(pid: int, children: Mapping[int, Iterable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the processes below one, the nearest first."""
    found: list[dict[str, Any]] = []
    waiting = [pid]
    while waiting and len(found) < MOST_CHILDREN:
        below = list(children.get(waiting.pop(0), ()))
        found += below
        waiting += [child["pid"] for child in below]
    return found[:MOST_CHILDREN]
