# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reader of torch's flight recorder: entries as releases from 2.2 on have them, and the pickles of NCCL's watchdog.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

LARGEST = 16 << 20
"""Bytes of a dump that is read; torch keeps 2000 entries of about 3 KiB."""
SECONDS = 4.0
KEPT = 120
"""Entries of each group that are kept: the last ones."""
MOST_GROUPS = 64

_PLAIN = (
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1"),
    *("BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1"),
    *("TUPLE2", "TUPLE3", "APPEND", "APPENDS", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"),
)
"""What torch writes: numbers, texts, lists, tuples, dictionaries. Nothing that names a class or calls a function."""


class DumpError(Exception):
    """It is not a dump of a flight recorder, or too much of one."""


class _Bounded(io.BytesIO):
    """What a pickle is read from: for some seconds only."""

    def __init__(self, data: bytes, seconds: float) -> None:
        super().__init__(data)
        self._until = time.monotonic() + seconds
        self._reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self._reads += 1
        if self._reads % 4096 == 0 and time.monotonic() > self._until:
            raise DumpError("it takes too long to read")
        return super().read(size)

    def readline(self, size: int | None = -1) -> bytes:
        raise DumpError("it has instructions of another form")


# The unpickler in Python: that in C reserves as much memory as an index in a pickle says.
_Unpickler: Any = pickle._Unpickler


class _Reader(_Unpickler):  # type: ignore[misc]
    dispatch: ClassVar[dict[int, Any]] = {
        code: _Unpickler.dispatch[code] for code in (getattr(pickle, name)[0] for name in _PLAIN)
    }

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self._set(self.stack[-1], items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set(self.stack[-1], [key, value])

    @staticmethod
    def _set(target: Any, items: list[Any]) -> None:
        # The hash of tuples in tuples in tuples would exhaust the stack.
        if not isinstance(target, dict) or len(items) % 2 or not all(isinstance(key, (str, int)) for key in items[::2]):
            raise DumpError("it has a key that is not text")
        target.update(zip(items[::2], items[1::2]))

    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.SETITEM[0]] = load_setitem

    def find_class(self, module: str, name: str) -> Any:
        raise DumpError(f"it names {module[:60]}.{name[:60]}")


def read_pickle(data: bytes, seconds: float = SECONDS) -> Any:
    """Return what a pickle holds that is made of plain values."""
    if len(data) > LARGEST:
        raise DumpError(f"it has {len(data)} bytes")
    try:
        return _Reader(_Bounded(data, seconds)).load()
    except DumpError:
        raise
    except Exception as error:  # whatever bytes make of it
        raise DumpError(f"it is damaged ({type(error).__name__})") from error


def entries_of(dump: Any, kept: int = KEPT) -> list[dict[str, Any]]:
    """Return the last entries of each group, in their order, in our words; each value still as it came."""
    found = dump.get("entries") if isinstance(dump, Mapping) else dump
    counts: dict[str, int] = {}
    chosen = []
    for entry in reversed(found if isinstance(found, (list, tuple)) else ()):
        if not isinstance(entry, Mapping):
            continue
        group = entry.get("process_group")
        pair = [*group, ""] if isinstance(group, (list, tuple)) else [str(entry.get("pg_id", "")), ""]
        name = pair[0] if isinstance(pair[0], str) else ""
        if name not in counts and len(counts) >= MOST_GROUPS:
            continue
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= kept:
            chosen.append(_entry(entry, name, pair[1]))
    return chosen[::-1]


def _entry(entry: Mapping[str, Any], group: str, description: Any) -> dict[str, Any]:
    p2p = bool(entry.get("is_p2p"))
    state = entry.get("state")
    created = entry.get("time_created_ns")
    frames = entry.get("frames")
    return {
        "group": group,
        "description": description,
        # Of releases before 2.4 it is called seq_id.
        "sequence": entry.get("p2p_seq_id" if p2p else "collective_seq_id", entry.get("seq_id")),
        "operation": entry.get("profiling_name"),
        "sizes": entry.get("input_sizes"),
        "outputs": entry.get("output_sizes"),
        "dtypes": entry.get("input_dtypes"),
        "state": state,
        "done": bool(entry.get("retired")) or state == "completed",
        "p2p": p2p,
        "at": created / 1e9 if isinstance(created, int) and abs(created) < 1 << 63 else entry.get("at"),
        "site": [
            {"function": frame.get("name"), "file": frame.get("filename"), "line": frame.get("line")}
            for frame in (frames if isinstance(frames, (list, tuple)) else ())[:64]
            if isinstance(frame, Mapping) and "/torch/" not in str(frame.get("filename"))[:300]
        ],
    }


def groups_of(dumps: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """Return the ranks of groups as NCCL's recorder has them: ``"[0, 1]"``; Gloo's has none."""
    found = {}
    for dump in dumps:
        configured = dump.get("pg_config") if isinstance(dump, Mapping) else None
        for one in list(configured.values())[:MOST_GROUPS] if isinstance(configured, Mapping) else ():
            if not isinstance(one, Mapping) or not one.get("name"):
                continue
            ranks = str(one.get("ranks"))[:65536].strip("[]").split(",")
            numbers = [int(rank) for rank in ranks if rank.strip().isdecimal() and len(rank) < 10]
            if numbers:
                found[str(one["name"])[:100]] = {"ranks": numbers, "description": one.get("desc")}
    return found
