# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs in each Python process of a job, as ``sitecustomize`` of a folder of its own: answers when the doctor asks.

Two signals that nothing else uses are all that is open, no socket. One has faulthandler write the stacks, which
works without the interpreter's lock. The other wakes a thread, started when torch.distributed is imported, which
writes a report: stacks with what a collective was called with, the groups, and the last entries of the flight
recorder. A process that does neither costs nothing. The user's own sitecustomize is run as if this one were not here.

Standard library, Python 3.8 or later; a failure here never reaches the job.
"""

# What is imported at the top is imported in every Python process of the job.
# ruff: noqa: PLC0415, PTH100, PTH104, PTH108, PTH112, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import sys
from typing import Any, Callable

STACKS_BELOW_MAX, REPORT_BELOW_MAX = 3, 2
"""The signals, counted down from SIGRTMAX: what uses real-time signals counts up from SIGRTMIN."""
ENTRIES = 120
"""Entries of the recorder in a report, of each group."""
FRAMES, THREADS = 60, 48
RECORDER = (
    ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
    ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"),
)
"""Variables of torch's flight recorder by their name since 2.8, which warns of the older one, and before."""
VALUES = (
    *("src", "dst", "group_src", "group_dst", "peer", "tag", "rank", "world_size", "hostname", "port", "group_name"),
    *("master_addr", "master_port", "timeout", "key", "keys"),
)
"""Arguments of torch.distributed that are reported: numbers and names of ranks, ports and groups."""


def follow(folder: str) -> None:
    """Register for the signals; ``folder`` is where this file is, and where the answers go."""
    import atexit
    import contextlib
    import faulthandler
    import signal

    own = os.getpid()
    written = [os.path.join(folder, name + str(own)) for name in ("stacks-", "thread-", "report-")]

    def leave() -> None:
        if os.getpid() == own:
            for path in written:
                with contextlib.suppress(OSError):
                    os.unlink(path)

    number = os.open(written[0], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    faulthandler.register(signal.SIGRTMAX - STACKS_BELOW_MAX, file=number, all_threads=True, chain=False)
    # The thread that waits for it gets it all the same, and nothing ends if that thread is gone.
    signal.signal(signal.SIGRTMAX - REPORT_BELOW_MAX, signal.SIG_IGN)
    atexit.register(leave)

    def begin() -> None:
        name_recorder()
        listen(written[1], written[2])

    sys.meta_path.insert(0, Noticed(begin))


def name_recorder() -> None:
    """Leave the variables of the recorder under the name that this torch reads, where both have the same value."""
    version = str(getattr(sys.modules.get("torch.version"), "__version__", ""))
    release = [int(part) if part.isdigit() else 0 for part in version.split(".")[:2]]
    for newer, older in RECORDER if version else ():
        if newer in os.environ and os.environ[newer] == os.environ.get(older):
            os.environ.pop(older if release >= [2, 8] else newer)


class Noticed:
    """Not a finder of modules: notices that torch.distributed is being imported."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.then: Callable[[], None] | None = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "torch.distributed" and self.then is not None:
            then, self.then = self.then, None
            try:
                sys.meta_path.remove(self)
                then()
            except Exception:  # the job must go on without a doctor
                pass


def listen(path: str, report: str) -> None:
    """Start the thread that answers; not a threading.Thread, as a job may count those."""
    import _thread
    import json  # noqa: F401  # so that no import is needed when the job hangs in one
    import pickle  # noqa: F401
    import signal
    import socket  # noqa: F401
    import threading

    if not hasattr(threading, "get_native_id"):  # before Python 3.8
        return
    number = signal.SIGRTMAX - REPORT_BELOW_MAX
    own = os.getpid()

    def answer() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        try:
            with open(path, "w") as file:
                file.write(str(threading.get_native_id()))
        except OSError:  # a full disk: no one will ask
            return
        while os.getpid() == own:
            try:
                signal.sigwait({number})
                write(report)
            except Exception:
                continue

    _thread.start_new_thread(answer, ())


def write(path: str) -> None:
    """Write a report, then once more with what may take long: whether the name of the store resolves."""
    import json

    report = stacks()
    for part in (groups, recorder, releases):
        try:
            report.update(part())
        except Exception as error:
            report.setdefault("errors", []).append(part.__name__ + ": " + repr(error)[:200])
    put(path, json.dumps(report))
    named = (frame["values"]["hostname"] for frame in every_frame(report) if "hostname" in frame.get("values", ()))
    host: Any = next(named, None) or os.environ.get("MASTER_ADDR")
    if host and report.get("joined") is not True:
        report["name"] = {"host": host, "error": resolved(host)}
        put(path, json.dumps(report))


def every_frame(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [frame for thread in report["threads"] for frame in thread["frames"]]


def put(path: str, text: str) -> None:
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def resolved(host: str) -> str:
    import socket

    try:
        socket.getaddrinfo(host, None)
        return ""
    except OSError as error:
        return str(error)[:200]


def stacks() -> dict[str, Any]:
    """Return the stacks of all threads, the innermost frame first."""
    import threading
    import time

    main = threading.main_thread().ident
    own = threading.get_ident()
    names = {thread.ident: thread for thread in list(getattr(threading, "_active", {}).values())}
    found = []
    current = sys._current_frames()
    for ident in sorted(current, key=lambda one: one != main)[:THREADS]:
        if ident == own:
            continue
        thread = names.get(ident)
        frames: list[dict[str, Any]] = []
        frame: Any = current[ident]
        while frame is not None and len(frames) < FRAMES:
            frames.append(shown(frame))
            frame = frame.f_back
        found.append(
            {
                "main": ident == main,
                "daemon": bool(getattr(thread, "daemon", True)),
                "native": getattr(thread, "native_id", None),
                "name": str(getattr(thread, "name", ""))[:60],
                "frames": frames,
            }
        )
    return {"pid": os.getpid(), "time": time.time(), "threads": found}


def shown(frame: Any) -> dict[str, Any]:
    code = frame.f_code
    entry = {"function": code.co_name[:120], "file": code.co_filename[-300:], "line": frame.f_lineno}
    if "/torch/distributed/" in code.co_filename:
        values: dict[str, Any] = {}
        for name in VALUES:
            # Only here, as reading the variables of a frame copies them.
            value = frame.f_locals.get(name)
            if isinstance(value, (int, str)) and not isinstance(value, bool):
                values[name] = value if isinstance(value, int) else value[:200]
        ranks = frame.f_locals.get("ranks")
        if isinstance(ranks, (list, tuple)) and all(isinstance(rank, int) for rank in ranks):
            values["ranks"] = list(ranks)[:4096]
        group = frame.f_locals.get("group")
        named = getattr(group, "group_name", None)
        if isinstance(named, str):
            values["group"] = named[:100]
        if values:
            entry["values"] = values
    return entry


def groups() -> dict[str, Any]:
    """Return the ranks of each group, by its name."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    world = getattr(c10d, "_world", None)
    found = {}
    if world is None:
        return {"joined": False}
    names = world.pg_names
    for group, ranks in list(world.pg_group_ranks.items()):
        name = names.get(group)
        if isinstance(name, str):
            description = str(getattr(group, "group_desc", ""))[:60]
            found[name[:100]] = {"ranks": sorted(ranks)[:65536], "description": description}
    joined = bool(c10d.is_initialized())
    return {"groups": found, "joined": joined, "rank": c10d.get_rank() if joined else None}


def recorder() -> dict[str, Any]:
    """Return the last entries of torch's flight recorders, of NCCL and, where torch has it, of Gloo."""
    import pickle

    module = sys.modules.get("torch._C._distributed_c10d")
    entries: list[Any] = []
    status: dict[str, Any] = {}
    known: set[Any] = set()
    for name in ("_dump_nccl_trace", "_dump_fr_trace"):
        dump = getattr(module, name, None)
        if dump is None:
            continue
        try:
            # Without stacks: to name their functions torch imports its compiler, which takes seconds.
            data = pickle.loads(dump(includeCollectives=True, includeStackTraces=False, onlyActive=False))
        except TypeError:  # releases before 2.5
            data = pickle.loads(dump())
        # From 2.15 on, both functions may read one recorder of all backends.
        both = [entry for entry in data.get("entries", []) if identity(entry) not in known]
        known.update(map(identity, both))
        entries += [reduced(entry) for entry in last(both)]
        status[name] = {"version": str(data.get("version", ""))[:20], "configured": data.get("pg_config", {})}
    return {"entries": entries, "recorders": status}


def identity(entry: dict[str, Any]) -> Any:
    return entry.get("record_id"), tuple(entry.get("process_group") or ()), entry.get("time_created_ns")


def last(entries: Any) -> list[Any]:
    """Return the last entries of each group; entries come in the order in which they were made."""
    counts: dict[Any, int] = {}
    kept = []
    for entry in reversed(entries):
        name = tuple(entry.get("process_group") or ())
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= ENTRIES:
            kept.append(entry)
    return kept[::-1]


def reduced(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without the frames of torch: the first one outside says from where it was called."""
    frames = entry.get("frames") or []
    outside = [frame for frame in frames if "/torch/" not in frame.get("filename", "")][:3]
    kept = {name: value for name, value in entry.items() if name != "frames"}
    kept["frames"] = outside
    if isinstance(kept.get("time_created_ns"), int):
        kept["at"] = kept.pop("time_created_ns") / 1e9
    return kept


def releases() -> dict[str, str]:
    torch: Any = sys.modules.get("torch")
    found = {"torch": str(getattr(torch, "__version__", ""))[:40], "python": sys.version.split()[0]}
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and getattr(torch._C, "_nccl_version", None) is not None and cuda.is_initialized():
        found["nccl"] = ".".join(map(str, cuda.nccl.version()))
    return found


def hand_on(folder: str) -> None:
    """Run the sitecustomize that this one hides, if there is one."""
    import importlib.machinery
    import importlib.util

    # Python may give a relative path; "" is the folder in which it was started.
    others = [path for path in sys.path if os.path.realpath(path or os.curdir) != os.path.realpath(folder)]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def begin(path: str) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    try:
        # Launchers and their children are not ranks.
        if os.environ.get("RANK", "").isdigit() and os.path.isdir(folder):
            follow(folder)
    except Exception:  # a full disk, no faulthandler: the job must go on without a doctor
        pass
    hand_on(folder)


if __name__ == "sitecustomize":
    begin(__file__)
