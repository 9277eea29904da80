# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a rank that did not come does instead: its kind, and the words for it.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .positions import ABSENT, DEAD, Position, of_user

CERTAIN, LIKELY, NOT_KNOWN = "certain", "likely", "not known"
THROTTLED = 0.3
"""Seconds in a second in which its cgroup's limit kept a thread from running."""
BUSY = 0.5
"""Share of a processor from which on a rank computes."""
MOVES = 64 << 10
"""Bytes a second from which on a rank reads or writes."""
_SAVING = re.compile(
    r"save|saving|checkpoint|ckpt|state_dict|evaluat|validat|(?:^|_)eval(?:_|$)|snapshot", re.IGNORECASE
)
_ENDING = re.compile(
    r"epoch|finish|(?:^|_)end(?:_|$)|finali[sz]e|teardown|cleanup|shutdown|destroy|on_train_end", re.IGNORECASE
)
_FILE_LOCK = re.compile(r"(?:^|/)(?:filelock/_\w+|file_baton|portalocker/\w+|fasteners/\w+)\.py$")
_COMMAND, _PIPE = "a command that it started", "a process at the other end of a pipe"
_WAITING_ON_OTHERS = (
    (re.compile(r"torch/utils/data/dataloader\.py$"), "its data loader's workers"),
    (
        re.compile(r"multiprocessing/(?:queues|connection|pool|popen_\w+|process|managers|synchronize)\.py$"),
        "a process",
    ),
    (re.compile(r"(?:^|/)subprocess\.py$"), _COMMAND),
    (re.compile(r"concurrent/futures/\w+\.py$"), "a worker"),
    (re.compile(r"(?:^|/)queue\.py$"), "an item of a queue that no thread puts there"),
    (re.compile(r"(?:^|/)threading\.py$"), "a thread or a lock"),
)
_FOR_PROCESSES = {"its data loader's workers", "a process", "a worker", _COMMAND, _PIPE}
_PIPE_WAITS = {"pipe_read", "pipe_write", "anon_pipe_read", "anon_pipe_write", "pipe_wait"}


@dataclass
class Cause:
    kind: str
    words: str
    """What it does, as the rest of a sentence."""
    remedy: str
    confidence: str = CERTAIN
    place: dict[str, Any] = field(default_factory=dict)
    works: bool = False
    """It computes, reads or writes, itself or its helpers: it may only be slow."""


def cause_of(place: Position, kernel: list[dict[str, Any]]) -> Cause:
    """Return why a rank that waits for no other one does not go on."""
    seen = place.seen
    tasks = seen.get("tasks", [])
    main = tasks[0] if tasks else {}
    return (
        _ended(place, kernel)
        or _not_scheduled(seen, place)
        or _file(place, main, tasks)
        or _waits_for_exit(place)
        or _waits_for_others(place, main, kernel)
        or _own_code(place, seen, main)
    )


def _ended(place: Position, kernel: list[dict[str, Any]]) -> Cause | None:
    if place.what == ABSENT:
        return Cause("lost_process", "was not started, or its node does not answer", START, LIKELY)
    if place.what != DEAD:
        return None
    killed = [one["line"] for one in kernel if f"process {place.seen.get('pid')} " in one["line"]]
    why = f" ({killed[-1]})" if killed else ""
    return Cause(
        "lost_process",
        f"has ended, and the others have not noticed{why}",
        "See the end of its log. If the kernel killed it for memory: use smaller batches or fewer workers.",
    )


START = (
    "See why that rank was not started: the end of the launcher's log on its node, and whether the node is reachable."
)


def _not_scheduled(seen: Mapping[str, Any], place: Position) -> Cause | None:
    if seen.get("frozen"):
        return Cause(
            "not_scheduled",
            "is frozen by its cgroup",
            "Thaw it: `docker unpause` for a container, or write 0 to cgroup.freeze.",
        )
    if seen.get("state") in ("T", "t"):
        how = "is being traced by a debugger" if seen["state"] == "t" else "was stopped by a signal (SIGSTOP, SIGTSTP)"
        return Cause("not_scheduled", how, f"Let it go on: `kill -CONT {seen.get('pid', 'PID')}`.")
    if seen.get("throttled", 0) > THROTTLED:
        limit = seen.get("cgroup", {}).get("cpu_limit", "")
        return Cause(
            "not_scheduled",
            f"gets hardly any processor time, as its cgroup limits it (cpu.max {limit})",
            "Raise the processor limit of its cgroup or container.",
            place=place.place,
        )
    return None


def _file(place: Position, main: Mapping[str, Any], tasks: list[dict[str, Any]]) -> Cause | None:
    blocked = next((task for task in tasks if task.get("state") == "D"), None)
    if main.get("state") == "D":
        blocked = dict(main)
    if blocked is not None and not moves(place.seen):
        path = blocked.get("path", "")
        where = f" {path}" if path else ""
        by = ", ".join(blocked.get("kernel", [])[:3]) or blocked.get("wait", "")
        how = f"waits for a file{where} that does not answer (in the kernel: {by})"
        return Cause(
            "blocked_file",
            how,
            "See whether its file system (NFS, FUSE, disk) answers: `df`, `dmesg`.",
            CERTAIN,
            place.place,
        )
    waited = next((lock for lock in place.seen.get("locks", []) if lock.get("waits")), None)
    if waited is not None or main.get("call") == "flock":
        holder = (waited or {}).get("holder") or 0
        who = f", which process {holder} ({(waited or {}).get('holder_name', '')}) holds" if holder > 0 else ""
        where = f" {main['path']}" if main.get("path") else ""
        return Cause(
            "blocked_file",
            f"waits for the lock of a file{where}{who}",
            "End the process that holds it.",
            CERTAIN,
            place.place,
        )
    if any(_FILE_LOCK.search(str(frame.get("file", ""))) for frame in place.frames[:8]):
        return Cause(
            "blocked_file",
            "waits for a file to be removed that stands for a lock",
            "Remove the lock file that an interrupted process left, if none of its kind runs.",
            CERTAIN,
            place.place,
        )
    if main.get("call") in ("openat", "open") and main.get("state") == "S":
        return Cause(
            "blocked_file", "waits in opening a FIFO that no one opens at its other end", OPEN, CERTAIN, place.place
        )
    return None


OPEN = "Start the process that is to write into it, or read from it."


def _waits_for_exit(place: Position) -> Cause | None:
    """The interpreter is ending and waits for threads that are not daemons."""
    names = [str(frame.get("function")) for frame in place.frames]
    if "_shutdown" not in names or any(of_user(frame) for frame in place.frames):
        return None
    for thread in place.threads:
        own = [frame for frame in thread.get("frames", []) if of_user(frame)]
        if not thread.get("main") and thread.get("daemon") is not True and own:
            where = {name: own[0].get(name, "") for name in ("function", "file", "line")}
            how = "has ended its script, and waits at exit for a thread that does not end"
            return Cause("deadlock", how, "See its log for an exception; make that thread a daemon.", CERTAIN, where)
    return None


def _waits_for_others(place: Position, main: Mapping[str, Any], kernel: list[dict[str, Any]]) -> Cause | None:
    files = [str(frame.get("file", "")) for frame in place.frames[:6]]
    what = next((words for pattern, words in _WAITING_ON_OTHERS if any(map(pattern.search, files))), "")
    call, wait = str(main.get("call", "")), str(main.get("wait", ""))
    idle = float(main.get("cpu", 0)) < BUSY and main.get("state") != "R"
    if not what and idle and (wait in _PIPE_WAITS or str(main.get("path", "")).startswith("pipe:")):
        what = _PIPE
    if not what and idle and call in ("wait4", "waitid"):
        what = _COMMAND
    if not what and idle and call == "futex" and place.frames and of_user(place.frames[0]):
        what = "a lock"
    if not what or not idle:
        return None
    children = place.seen.get("children", [])
    killed = next((child for child in children if child.get("state") == "Z" and child.get("signal")), None)
    # Another job on this node may have run out of memory, too.
    name = re.escape(f"({main.get('name', '')})")
    reports = [one["line"] for one in kernel if re.search(f"out of memory: killed process .*{name}", one["line"], re.I)]
    able = what in _FOR_PROCESSES and not (what == _COMMAND and children)
    if not reports and place.seen.get("cgroup", {}).get("oom_kills"):
        reports = ["its cgroup has run out of memory"]
    if killed is not None or (able and reports):
        by = f"was killed by signal {killed['signal']}" if killed else f"the kernel has killed ({reports[-1][:100]})"
        return Cause(
            "lost_process",
            f"waits for {what}, which {by}",
            "Give its helpers more memory (fewer workers, a higher limit), and use a pool that notices a lost worker.",
            CERTAIN if killed else LIKELY,
            place.place,
        )
    stuck = next((child for child in children if child.get("state") == "D"), None)
    if stuck is not None:
        how = (
            f"waits for {what}; process {stuck['pid']} waits for a file that does not answer ({stuck.get('wait', '')})"
        )
        return Cause("blocked_file", how, "See whether the file system (NFS, FUSE, disk) answers.", LIKELY, place.place)
    if what in _FOR_PROCESSES and works(place.seen):
        return Cause("own_code", f"waits for {what}, and {_work(place.seen)}", SLOW, LIKELY, place.place, works=True)
    how = f"waits for {what}, in a deadlock"
    return Cause("deadlock", how, "Correct the script there: nothing will wake it.", LIKELY, place.place)


def _own_code(place: Position, seen: Mapping[str, Any], main: Mapping[str, Any]) -> Cause:
    used = float(seen.get("cpu", 0))
    call = str(main.get("call", ""))
    computes = used >= BUSY or main.get("state") == "R"
    if computes:
        how = f"computes ({used:.1f} processors)"
    elif moves(seen):
        how = f"reads or writes ({seen['bytes'] / 1e6:.1f} MB/s)"
    elif "sleep" in call or "sleep" in str(main.get("wait", "")):
        how = "sleeps"
    elif call in ("poll", "ppoll", "recvfrom", "recvmsg", "connect", "epoll_wait", "select", "pselect6"):
        how = "waits for an answer over the network"
    else:
        how = f"is in code of its own{f' ({call})' if call else ''}"
    known = CERTAIN if place.frames else LIKELY
    return Cause("own_code", how, SLOW, known, place.place, works=computes or moves(seen))


SLOW = "See what the script does there; raise deepspeed_launch_hang_after if it is to take so long."


def moves(seen: Mapping[str, Any]) -> bool:
    return float(seen.get("bytes", 0)) >= MOVES


def _work(seen: Mapping[str, Any]) -> str:
    """Return how much its helpers do, or its other threads."""
    helpers = float(seen.get("helpers", 0))
    if helpers >= BUSY:
        return f"its helpers compute ({helpers:.1f} processors)"
    if moves(seen):
        return f"it or its helpers read or write ({seen['bytes'] / 1e6:.1f} MB/s)"
    return f"its other threads compute ({float(seen.get('cpu', 0)):.1f} processors)"


def blocked(seen: Mapping[str, Any]) -> bool:
    """Whether its main thread is in an uninterruptible wait, mostly for a file."""
    return bool(seen.get("tasks")) and seen["tasks"][0].get("state") == "D"


def works(seen: Mapping[str, Any]) -> bool:
    """Whether a rank, wherever it is, computes, reads or writes, itself or its helpers."""
    return float(seen.get("cpu", 0)) >= BUSY or float(seen.get("helpers", 0)) >= BUSY or moves(seen)


def collective_kind(place: Position, skipped: bool) -> str:
    """Return the kind where a rank is in another collective than the others: by where it calls that from."""
    own = [str(frame.get("function", "")) for frame in place.frames if of_user(frame)][:6]
    if any(_SAVING.search(name) for name in own[:4]):
        return "one_rank_checkpoint"
    if any(_ENDING.search(name) for name in own[:3]):
        return "uneven_batches"
    return "skipped_collective" if skipped else "reordered_collective"
