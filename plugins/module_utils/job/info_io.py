# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reads the jobs of one host: their folders, and the engine only for those that may be running."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

from ..common.secret_names import Hide, hider
from ..common.untrusted_folder import UntrustedFolder
from ..common.untrusted_text import clean
from ..engine.api_io import EngineError
from . import resource
from . import summary as job_summary
from .launcher_log import plain
from .private import host_jobs_dir
from .record import JOB_NAME
from .runtimes import Runtime
from .store_io import Store

MOST_FOLDERS = 100_000
MOST_JOBS = 1000
"""Jobs of a node that are reported."""
AHEAD = 60.0
"""Seconds by which a state may have been written later than now."""
LONGEST_TAIL = 1 << 20
"""Most bytes at the end of a log that are read for its last lines."""


class JobsReader:
    """Never changes anything, and answers for every job: one that cannot be read is ``unreadable``, not a failure."""

    def __init__(self, jobs_dir: str, runtimes: Mapping[str, Runtime], clock: Callable[[], float] = time.time) -> None:
        self._folder, self._runtimes, self._clock = Path(jobs_dir), runtimes, clock
        self.engine_error: str | None = None
        """What the engine said, where it was asked and did not answer."""
        self.whole = True
        """Whether names() listed all."""

    def names(self) -> list[str]:
        """Folders that hold a job, in order: what is not a name of a job was not made by training_job.

        Whoever is root in a container can make any number; beyond ``MOST_JOBS`` these are not ``whole``.
        """
        found: dict[str, float] = {}
        for folder in (self._folder, host_jobs_dir(str(self._folder))):
            jobs = UntrustedFolder(folder, resource.JobError)
            names, whole = jobs.folders(MOST_FOLDERS, JOB_NAME.fullmatch)
            self.whole = self.whole and whole
            for name in names:
                status = jobs.status(f"{name}/state.json")
                if status is not None:
                    found[name] = status.st_mtime if status.st_mtime <= self._clock() + AHEAD else 0.0
        self.whole = self.whole and len(found) <= MOST_JOBS
        # Those whose supervisor has written last: of a job that runs it writes every few seconds.
        return sorted(sorted(found, key=lambda name: -found[name])[:MOST_JOBS])

    def named(self, name: str) -> list[str]:
        """The one job of this name, where there is one, however many others there are."""
        return [name] if Store.of(str(self._folder), name).recorded() else []

    def gather(self, name: str, tail: int) -> dict[str, Any]:
        """What is known of one job on this host, without secrets."""
        store = Store.of(str(self._folder), name)
        environment = store.read_environment()
        hide = hider(environment)
        try:
            store.check()
            request, recorded = store.read_request(), store.read_place()
            state, reason, recorded = self._now(store, recorded)
            active = state in resource.ACTIVE
            log = self._tail(store, tail, hide, ended=not active) if tail else []
        except resource.JobError as error:
            request, recorded, state, reason, active, log = {}, {}, "unreadable", str(error), False, []
        spec = request.get("spec") if isinstance(request.get("spec"), dict) else {}
        now = {**recorded, "name": name, "state": state, "reason": reason}
        return {
            **resource.report(name, recorded, state, reason, hide),
            "leader": self._leads(recorded, request),
            "since": job_summary.since(recorded, active),
            "seconds": job_summary.seconds_of(recorded),
            "summary": self._summary(store, clean(spec), now, environment),
            "log": log,
            "log_path": str(store.path / "launcher.log"),
        }

    def _now(self, store: Store, recorded: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
        """State and reason now, and the record they follow from."""
        found = None
        if recorded.get("state") in resource.ACTIVE:
            found = self._container(recorded)
            recorded = store.read_state()  # again: it may have ended, and then its container gone, since the first look
        return (*resource.current_state(recorded, found, self._clock()), recorded)

    def _container(self, recorded: dict[str, Any]) -> resource.Container | None:
        """Where a job runs. The recorded place, where the engine does not answer: then the heartbeat decides alone."""
        host, name = recorded.get("runtime") == "host", str(recorded.get("container") or "")
        if not host and not name:
            return None
        try:
            return self._runtimes["host" if host else "container"].container(name)
        except EngineError as error:
            self.engine_error = str(error)
        return resource.Container(
            str(recorded.get("container_id")), str(recorded.get("container_started_at")), running=True, mounts={}
        )

    @staticmethod
    def _leads(recorded: dict[str, Any], request: dict[str, Any]) -> bool:
        """Whether the whole job was judged here. A follower says so in its state once it runs."""
        if isinstance(recorded.get("leader"), bool):
            return bool(recorded["leader"])
        node, spec = request.get("node"), request.get("spec")
        members = spec.get("members") if isinstance(spec, dict) else None
        first = members[0] if isinstance(members, list) and members else None
        return not (node and isinstance(first, dict)) or first.get("name") == node

    @staticmethod
    def _summary(
        store: Store, spec: dict[str, Any], now: dict[str, Any], environment: dict[str, str]
    ) -> dict[str, Any]:
        """The one that the leader wrote at the end of this very run, else what is known so far."""
        written = store.read_summary()
        if written and all(written.get(key) == now.get(key) for key in ("run", "state", "started_at")):
            cleaned: dict[str, Any] = job_summary.clean({**written, "name": store.name}, hider(environment))
            return cleaned
        return job_summary.summary(spec, now, environment=environment)

    @staticmethod
    def _tail(store: Store, lines: int, hide: Hide, ended: bool) -> list[str]:
        """The last lines of the log, without control codes."""
        data = store.read_log(-LONGEST_TAIL, LONGEST_TAIL, ended)[0]
        text = [plain(line) for line in data.decode("utf-8", "replace").split("\n")]
        return [hide(line)[:2000] for line in text if line][-lines:]
