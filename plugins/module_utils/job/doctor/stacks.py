# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Readers of stacks: what faulthandler writes, and what py-spy prints. Each gives threads, innermost frame first.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...common.untrusted_text import parse_json

_THREAD = re.compile(
    r"(?:Current thread|Thread) (0x[0-9a-f]{1,16})(?: \[(?P<name>.{0,60})\])?(?: .*)?\(most recent call"
)
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d{1,9}|\?\?\?) in (?P<function>.*)$')
MOST_LINES = 20000


def faulthandler_threads(written: str, main: int | None = None) -> list[dict[str, Any]]:
    """Return the threads of the last dump in what was written. Python writes the main thread last.

    ``main``: the number of the main thread as pthreads have it, where that is known.
    """
    threads: list[dict[str, Any]] = []
    numbers: list[int] = []
    for line in written.splitlines()[-MOST_LINES:]:
        begun = _THREAD.match(line)
        if begun:
            number = int(begun.group(1), 16)
            if number in numbers:  # the next dump
                threads, numbers = [], []
            numbers.append(number)
            threads.append({"frames": [], "name": begun.group("name") or ""})
            continue
        frame = _FRAME.match(line)
        if frame and threads:
            place = int(frame.group("line")) if frame.group("line").isdigit() else 0
            threads[-1]["frames"].append(
                {"function": frame.group("function"), "file": frame.group("file"), "line": place}
            )
    for index, thread in enumerate(threads):
        thread["main"] = numbers[index] == main if main in numbers else index == len(threads) - 1
    return sorted(threads, key=lambda thread: not thread["main"])


def py_spy_threads(printed: bytes, pid: int) -> list[dict[str, Any]]:
    """Return the threads in what ``py-spy dump --json`` printed; nothing where it is something else."""
    try:
        data = parse_json(printed)
    except ValueError:
        return []
    threads = []
    for one in data if isinstance(data, list) else []:
        if not isinstance(one, Mapping) or one.get("pid") not in (None, pid) or not isinstance(one.get("frames"), list):
            continue
        frames = [
            {"function": frame.get("name"), "file": frame.get("filename"), "line": frame.get("line")}
            for frame in one["frames"]
            if isinstance(frame, Mapping)
        ]
        native = one.get("os_thread_id")
        entry = {"name": one.get("thread_name") or "", "native": native, "frames": frames}
        threads.append({**entry, "main": native == pid, "idle": not one.get("active", True)})
    return sorted(threads, key=lambda thread: not thread["main"])
