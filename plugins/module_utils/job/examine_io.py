# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Examines the ranks of a running job on this host, on request: by the program of the job, where its ranks run."""

from __future__ import annotations

import base64
import json
import os.path
import time
import zlib
from collections.abc import Mapping
from typing import Any, Callable

from ..common.secret_names import hider
from .doctor.collect import LIMIT_S
from .doctor.examination import EXAMINATION, HANGS, REQUEST
from .observe_io import current
from .private import check_private
from .resource import ACTIVE, Container, JobError
from .runtimes import Runtime
from .store_io import Store
from .summary import clean
from .supervisor.base import PROGRAM

LIMIT = LIMIT_S + 25.0
"""Seconds for all of it, with the start of Python in a container."""
USAGE = 2
"""Exit code of a program that does not know the option: that of an earlier release."""


class JobExaminer:
    """Changes nothing of the job: its ranks go on, and what was found lies beside its log."""

    def __init__(
        self,
        jobs_dir: str,
        name: str,
        inside: str,
        runtimes: Mapping[str, Runtime],
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = Store.of(jobs_dir, name)
        self._jobs_dir, self._container_jobs, self._sleep, self._clock = jobs_dir, inside.rstrip("/"), sleep, clock
        self._runtime = runtimes["host" if self._store.on_host else "container"]

    def examine(self) -> dict[str, Any]:
        """Return its ``state`` here, and what was found as ``examination``, or why nothing was as ``problem``."""
        state, reason, container = current(self._store, self._runtime, self._store.read_place)
        if state not in ACTIVE or container is None:
            return {"state": state, "problem": reason or f"it is {state} here", "examination": ""}
        problem = self._run(container)
        found = None if problem else self._found()
        if not problem and found is None:
            problem = "the examination ended, and what it found is missing"
        if not found:
            return {"state": state, "problem": problem, "examination": ""}
        hidden = clean(found, hider(self._store.read_environment()))
        packed = base64.b64encode(zlib.compress(json.dumps(hidden).encode(), 6)).decode("ascii")
        return {"state": state, "problem": "", "examination": packed}

    def _run(self, container: Container) -> str:
        """Run the examination; return what was wrong."""
        folder = f"{self._container_jobs}/{self._store.name}"
        if self._store.on_host:
            check_private(self._store.path.parent)
            folder = str(self._store.path)
        elif os.path.realpath(container.source_of(self._container_jobs) or "") != os.path.realpath(self._jobs_dir):
            # Root in the container may have written which container it is.
            raise JobError(
                f"{self._store.path}/state.json names a container that does not have {self._jobs_dir} at "
                f"{self._container_jobs}. Nothing was run there. {self._store.remedy}"
            )
        handle = self._runtime.launch(
            container.id, ["python3", "-B", f"{folder}/{PROGRAM}", folder, "--examine", REQUEST]
        )
        deadline = self._clock() + LIMIT
        while self._clock() < deadline:
            code = self._runtime.exited(handle)
            if code == USAGE:
                return (
                    "it was started by a release of this collection that does not examine jobs; its next run can be "
                    "examined"
                )
            if code is not None:
                return f"the examination ended with exit code {code}" if code else ""
            self._sleep(0.2)
        return f"the examination did not end within {LIMIT:.0f} s"

    def _found(self) -> dict[str, Any] | None:
        return self._store.read_examination(f"{HANGS}/{REQUEST}/{EXAMINATION}")
