# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Where each rank is: in a collective, in point-to-point communication, joining the others, or in code of its own.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .shape import rank as as_rank

COLLECTIVE, PEER, JOINING, STORE, CODE, STOPPED, DEAD, ABSENT = (
    "collective",
    "peer",
    "joining",
    "store",
    "code",
    "stopped",
    "dead",
    "absent",
)
OPERATIONS = (
    *("all_reduce", "broadcast", "reduce", "barrier", "monitored_barrier", "all_gather", "all_gather_into_tensor"),
    *("gather", "scatter", "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single"),
    *("all_reduce_coalesced", "all_gather_coalesced", "_all_gather_base", "_reduce_scatter_base"),
)
PEERS = {"send": "send", "recv": "recv", "isend": "send", "irecv": "recv", "batch_isend_irecv": "batch_isend_irecv"}
JOINS = ("init_process_group", "new_group", "split_group", "new_subgroups", "new_subgroups_by_enumeration")
ALIASES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
}
ALIASES.update({"reducescatter": "reduce_scatter", "_allgather_base": "all_gather", "allgather_base": "all_gather"})
ALIASES.update({"all_to_all_single": "all_to_all", "all_gather_into_tensor": "all_gather"})
ALIASES.update({"reduce_scatter_tensor": "reduce_scatter", "_all_gather_base": "all_gather"})
ASKS = ("poll", "ppoll", "recvfrom", "recvmsg")
"""Calls in which a thread waits for an answer over the network."""
_LIBRARY = re.compile(
    r"^<|(?:^|/)(?:site-packages|dist-packages)/|/lib/python3[^/]*/|(?:^|/)sitecustomize\.py$|^/usr/lib/"
)


def operation(name: str) -> str:
    """Return the name of an operation: ``nccl:all_reduce`` and ``ALLREDUCE`` are one."""
    plain = name.rpartition(":")[2].strip().lower()
    # NCCL's recorder names a peer too: "send 0->1".
    plain = plain.split()[0] if plain.split() else plain
    return ALIASES.get(plain, plain)


def of_user(frame: Mapping[str, Any]) -> bool:
    """Whether a frame is in code of the job, not of Python or of an installed library."""
    return not _LIBRARY.search(str(frame.get("file", "")))


def of_c10d(frame: Mapping[str, Any]) -> bool:
    return str(frame.get("file", "")).endswith("torch/distributed/distributed_c10d.py")


@dataclass
class Position:
    rank: int
    node: str = ""
    what: str = CODE
    operation: str = ""
    group: str = ""
    """The group's name as torch has it, where a stack says so."""
    peer: int | None = None
    frames: list[dict[str, Any]] = field(default_factory=list)
    """Of the main thread, the innermost first."""
    threads: list[dict[str, Any]] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    """What the functions of torch.distributed on its stack were called with."""
    seen: dict[str, Any] = field(default_factory=dict)
    """All that was examined of it."""

    @property
    def recorded(self) -> bool:
        return bool(self.entries) or self.seen.get("joined") is True

    @property
    def place(self) -> dict[str, Any]:
        """The innermost frame of the job's own code, else the innermost of all."""
        own = [frame for frame in self.frames if of_user(frame)]
        chosen = own or self.frames
        return {name: chosen[0].get(name, "") for name in ("function", "file", "line")} if chosen else {}

    @property
    def waits(self) -> bool:
        return self.what in {COLLECTIVE, PEER, JOINING, STORE}


def position(seen: Mapping[str, Any], node: str) -> Position:
    """Return where a rank is, of what was examined of it."""
    found = Position(int(seen.get("rank", -1)), node, seen=dict(seen))
    found.threads = [thread for thread in seen.get("threads", []) if not _ours(thread)]
    main = next((thread for thread in found.threads if thread.get("main")), None)
    found.frames = (main or {}).get("frames", [])
    # Groups of one rank wait for no one.
    found.groups = {name: tuple(one.get("ranks", ())) for name, one in seen.get("groups", {}).items()}
    found.entries = [
        {"group": "", "operation": "", **entry} for entry in seen.get("entries", []) if "sequence" in entry
    ]
    if seen.get("alive") is False:
        found.what = DEAD
        return found
    state = seen.get("state", "")
    if state in ("T", "t") or seen.get("frozen"):
        found.what = STOPPED
    _read_stack(found)
    if found.what == CODE and _in_backward(found):
        # Of DistributedDataParallel: C++ waits, not Python.
        opened = any(not entry.get("done") for entry in found.entries)
        if opened or (not found.recorded and _idle(seen)):
            found.what = COLLECTIVE
    if found.what == CODE and _in_wait(found):
        found.what = COLLECTIVE
    elif found.what == CODE and _in_store(found):
        found.what, found.operation = STORE, "a key of the store"
    return found


def _ours(thread: Mapping[str, Any]) -> bool:
    return any(
        frame.get("function") == "answer" and str(frame.get("file", "")).endswith("sitecustomize.py")
        for frame in thread.get("frames", [])
    )


def _read_stack(found: Position) -> None:
    """Take from the stack what the innermost function of torch.distributed is, unless own code is further in."""
    for frame in found.frames:
        name = str(frame.get("function", ""))
        values = frame.get("values", {})
        for key, value in values.items():
            if not isinstance(value, list):
                found.values.setdefault(key, value)
        if isinstance(values.get("group_name"), str) and isinstance(values.get("ranks"), list):
            found.groups.setdefault(
                values["group_name"], tuple(one for one in values["ranks"] if as_rank(one) is not None)
            )  # it is being created
        if of_user(frame):
            return
        if not of_c10d(frame) or found.what == STOPPED:
            continue
        if name in JOINS:
            # The outermost: a group is made of others, and a barrier is a part of it.
            found.what, found.operation = JOINING, name
        elif found.what != CODE:
            continue
        elif name in PEERS:
            found.what, found.operation = PEER, PEERS[name]
            peer = found.values.get("dst" if PEERS[name] == "send" else "src", found.values.get("peer"))
            found.peer = peer if isinstance(peer, int) else None
        elif name in OPERATIONS:
            found.what, found.operation = COLLECTIVE, operation(name)
            found.group = str(found.values.get("group", ""))


def _in_backward(found: Position) -> bool:
    return any("torch/autograd" in str(frame.get("file", "")) for frame in found.frames[:4])


def _in_wait(found: Position) -> bool:
    """Whether it waits in C++ for a collective that it started: its last entry is not done, and it computes nothing."""
    if not found.entries or found.entries[-1].get("done") or not found.frames:
        return False
    return _idle(found.seen)


def _idle(seen: Mapping[str, Any]) -> bool:
    """Whether its main thread waits to be woken by another one; a sleep is its own."""
    tasks = seen.get("tasks", [])
    return bool(tasks) and tasks[0].get("call") in ("futex", "") and tasks[0].get("cpu", 0) < 0.2


def _in_store(found: Position) -> bool:
    """Whether its main thread waits in C++ for an answer of the store, as Store.get and Store.wait do."""
    tasks = found.seen.get("tasks", [])
    if found.seen.get("joined") is not True or not tasks or tasks[0].get("call") not in ASKS:
        return False
    # In Python's own functions, it waits for something else.
    return bool(found.frames) and (of_user(found.frames[0]) or "/torch/" in str(found.frames[0].get("file", "")))
