# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs one part of an examination (doctor/examination.py) on this node, as a process that the supervisor only polls.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import base64
import contextlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

from ..doctor.collect import LIMIT_S
from ..doctor.examination import COMPRESSED, SENT_BYTES, begin, place
from .messages import PIECE

LIMIT = LIMIT_S + 15.0
"""Seconds after which the process is killed: it keeps its own time, but may start slowly, or wait for the kernel."""


class Examiner:
    """At most one such process at a time, in the folder of a job."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self.name = ""

    def begin(self, name: str, ranks: list[dict[str, Any]]) -> None:
        """Examine these ranks, ``{rank, pid}``."""
        self._run(name, "--examine", lambda: begin(self._folder, name, ranks))

    def judge(self, name: str) -> None:
        """Say what follows from what all nodes found."""
        self._run(name, "--judge", lambda: None)

    def _run(self, name: str, option: str, prepare: Callable[[], Any]) -> None:
        self.close()
        self.name, self._began, self._problem = name, self._clock(), ""
        try:
            prepare()
            with (self._folder / "supervisor.log").open("ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-B", sys.argv[0], str(self._folder), option, name],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                )
        except OSError as error:  # a full disk, or no process is left
            self._problem = str(error)

    def poll(self) -> str | None:
        """``None`` while it runs; then empty where it has ended well, else what was wrong."""
        if self._process is None:
            return self._problem
        code = self._process.poll()
        if code is None and self._clock() - self._began < LIMIT:
            return None
        self.close()
        if code is None:
            return f"it did not end within {LIMIT:.0f} s"
        return "" if code == 0 else f"it ended with exit code {code}; see supervisor.log there"

    def close(self) -> None:
        """End it. One that waits for the kernel and cannot be killed is left behind."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            with contextlib.suppress(OSError):
                process.kill()
            process.poll()


def messages(folder: Path, name: str, problem: str) -> list[dict[str, Any]]:
    """What a follower found, for its leader, in as many messages as it needs."""
    data = b""
    if not problem:
        path = place(folder, name) / COMPRESSED
        try:
            data = path.read_bytes()
            path.unlink()
        except OSError as error:
            problem = str(error)
    if len(data) > SENT_BYTES:
        data, problem = b"", f"it has {len(data)} bytes, and {SENT_BYTES} are the most that are sent"
    parts = [data[at : at + PIECE] for at in range(0, len(data), PIECE)] or [b""]
    problem = " ".join(problem.split())[:1000]
    return [
        {
            "t": "examined",
            "name": name,
            "piece": base64.b64encode(part).decode("ascii"),
            "more": number < len(parts) - 1,
            "problem": problem,
        }
        for number, part in enumerate(parts)
    ]
