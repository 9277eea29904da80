# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How busy the GPUs of this node are while its job runs. Never waits for nvidia-smi, which hangs where a GPU does.

Part of the supervisor's archive: standard library, Python 3.8 or later.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from typing import Any, Callable

from ...gpu.readings import ARGUMENTS, KEYS, joined, parse_activity
from .messages import MOST_GPUS

EVERY = 10.0
"""Seconds between two readings."""
READINGS = 3
"""Readings that make a report: a GPU may rest for the second that one covers."""
LIMIT = 30.0
"""Seconds without an answer after which nvidia-smi is not run again in this attempt."""
FAILURES = 3
"""Answers in a row that were errors, after which it is not run again either."""


class GpuWatch:
    """Reads in the background of ``poll``. ``wanted``: whether the job computes on GPUs."""

    def __init__(
        self,
        wanted: bool = True,
        every: float = EVERY,
        program: str = "nvidia-smi",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._program, self._every, self._clock = program, every, clock
        self._tries = FAILURES if wanted else 0
        self._process: subprocess.Popen[bytes] | None = None
        self._began = clock() - every
        self._samples: list[dict[int, dict[str, Any]]] = []

    def poll(self) -> list[list[Any]]:
        """Return a row of ``KEYS`` for each GPU when there are enough new readings; else nothing."""
        if self._process is None:
            if self._tries > 0 and self._clock() - self._began >= self._every:
                self._begin()
            return []
        if self._process.poll() is None:
            if self._clock() - self._began >= LIMIT:
                self.close()
            return []
        text, self._process = self._text(self._process), None
        sample = parse_activity(text)  # whatever its exit status: it may come from a warning beside the rows
        if not sample:
            self._tries -= 1
            return []
        self._tries = FAILURES
        self._samples.append(sample)
        if len(self._samples) < READINGS:
            return []
        samples, self._samples = self._samples, []
        return [[gpu[key] for key in KEYS] for gpu in joined(samples)[:MOST_GPUS]]

    def close(self) -> None:
        """Read no more. A process that cannot be killed is left behind: it waits for the driver, not for us."""
        self._tries = 0
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.kill()
            if process.stdout is not None:
                process.stdout.close()
            process.poll()

    def _begin(self) -> None:
        self._began = self._clock()
        try:
            self._process = subprocess.Popen(
                [self._program, *ARGUMENTS],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:  # it is not there
            self._tries = 0

    @staticmethod
    def _text(process: subprocess.Popen[bytes]) -> str:
        """What it printed; more than fits into the pipe would have kept it from ending."""
        if process.stdout is None:
            return ""
        with process.stdout as pipe:
            return pipe.read(65536).decode("utf-8", "replace")
