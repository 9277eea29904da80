# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The folder of a training job on the host, and the engine that runs its supervisor in the container."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_folder import UntrustedFolder
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.environment import ranks_environment
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.members import placed
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.private import (
    check_private,
    host_jobs_dir,
    make_private,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.record import (
    RecordError,
    check_environment,
    check_place,
    check_state,
    check_summary,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import (
    ACTIVE,
    Container,
    JobError,
    whole_lines,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runtimes import Runtime
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.base import GRACE, PROGRAM, now_text
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor_archive import supervisor_archive

START_TIMEOUT = 15.0
"""Seconds the engine and Python in the container may take until the supervisor reports."""
STOP_TIMEOUT = 3 * GRACE + 10
"""Seconds until a job that is being stopped must have ended; its supervisor kills after GRACE, twice at most."""
RUN_FILES = (
    *("launcher.log", "node.log", "ranks", "supervisor.log", "summary.json", "environment", "resumes", "stop"),
    *("hostfile", "ds_config.json"),
    *(PROGRAM, "spec.json", "state.json"),
)
"""What belongs to one run. state.json comes last: until it is moved, a rotation that was interrupted is done again."""
REMEDY = (
    "Remedy: end what may still run of it with its container (docker stop, or teardown.yml). "
    "Remove the job with state: absent."
)
_RUN = re.compile(r"[0-9]{1,6}")


class Store:
    """``JOBS_DIR/NAME`` on the host, which the container can write; of a job that runs on the host, a private folder.

    What a job of the host runs, and what is known of it, lies in ``host_jobs`` beside ``JOBS_DIR``. No container mounts
    that, and so nothing in a container's folder makes the host run anything, or says that it should.
    """

    def __init__(self, jobs_dir: str, name: str, *, on_host: bool = False) -> None:
        self._jobs, self.name, self.on_host = Path(jobs_dir), name, on_host
        self._folder = UntrustedFolder(host_jobs_dir(jobs_dir) if on_host else jobs_dir, JobError, REMEDY)
        self.path = self._folder.root / name

    @classmethod
    def of(cls, jobs_dir: str, name: str, *, else_on_host: bool = False) -> Store:
        """Where the job of this name is recorded. On the host, when a record is there: only root can have made it."""
        for on_host in (True, False):
            store = cls(jobs_dir, name, on_host=on_host)
            if store.recorded():
                return store
        return cls(jobs_dir, name, on_host=else_on_host)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Two playbooks at once must not start a job twice. Free when its holder dies.

        Held on the folder above, as a process in a container could hold JOBS_DIR itself for ever.
        """
        try:
            os.close(os.open(self._jobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            handle = os.open(self._jobs.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise JobError(
                f"jobs_dir: {self._jobs} can not be used: {error.strerror}. It is made together with the container "
                "(--tags training_container)."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _read(self, name: str) -> dict[str, Any]:
        return self._folder.read_json(f"{self.name}/{name}") or {}

    def read_state(self) -> dict[str, Any]:
        """What the supervisor wrote last, every field checked; empty where there is none."""
        found = self._folder.read_json(f"{self.name}/state.json")
        if found is None:
            return {}
        try:
            return check_state(found, on_host=self.on_host)
        except RecordError as error:
            raise JobError(f"{self.path}/state.json is damaged: {error}. {REMEDY}") from error

    def read_place(self) -> dict[str, Any]:
        """The same, with what is needed to find a job that runs."""
        found = self.read_state()
        try:
            check_place(found)
        except RecordError as error:
            raise JobError(f"{self.path}/state.json is damaged: {error}. {REMEDY}") from error
        return found

    def read_request(self) -> dict[str, Any]:
        return self._read("spec.json")

    def read_spec(self) -> dict[str, Any]:
        spec = self.read_request().get("spec", {})
        return spec if isinstance(spec, dict) else {}

    def read_summary(self) -> dict[str, Any] | None:
        """The leader's, where there is one that can be used."""
        with contextlib.suppress(JobError):
            return check_summary(self._read("summary.json"))
        return None

    def read_environment(self) -> dict[str, str]:
        """Variables of the cluster's ranks, and of the job as it was started: what must be hidden in its log."""
        found: dict[str, str] = ranks_environment(self._jobs)
        with contextlib.suppress(JobError):
            found.update(check_environment(self.read_spec().get("environment")))
        return found

    def write_state(self, state: dict[str, Any]) -> None:
        self._write("state.json", json.dumps(state))

    def _write(self, name: str, text: str) -> None:
        self._folder.write(f"{self.name}/{name}", text.encode())

    def read_log(self, offset: int, limit: int, ended: bool) -> tuple[bytes, int, int]:
        """Bytes from ``offset`` (negative: from the end) to a line end, the offset after them, and the log's size."""
        log = self._folder.open(f"{self.name}/launcher.log")
        if log is None:
            return b"", 0, 0
        with log:
            size = os.fstat(log.fileno()).st_size
            start = max(0, size + offset) if offset < 0 else min(offset, size)
            log.seek(start)
            data = log.read(limit)
        if offset < 0 < start:  # begin with a whole line
            skipped = data.find(b"\n") + 1
            start, data = start + skipped, data[skipped:]
        data = whole_lines(data, ended, limit)
        return data, start + len(data), size

    def exists(self) -> bool:
        return self._folder.kind(self.name) is not None

    def recorded(self) -> bool:
        return self._folder.kind(f"{self.name}/state.json") is not None

    def remove(self) -> None:
        self._folder.remove(self.name)

    def ask_to_stop(self) -> None:
        self._write("stop", "")

    def set_aside(self) -> int:
        """Put the files of an earlier run aside as ``runs/NUMBER``; return the highest number there is."""
        runs = f"{self.name}/runs"
        self._folder.make_folder(runs)
        self._folder.make_folder(self.name, exact=True)
        last = max((int(name) for name in self._folder.entries(runs) if _RUN.fullmatch(name)), default=0)
        lies = self._folder.entries(self.name)
        present = [name for name in RUN_FILES if name in lies]
        if present:
            number = int(self.read_state().get("run") or last + 1)
            if self._folder.kind(f"{runs}/{number:04d}/state.json"):  # counted by another leader
                number = last + 1
            self._folder.make_folder(f"{runs}/{number:04d}")
            for name in present:
                aside = f"{runs}/{number:04d}/{name}"
                if self._folder.kind(aside):
                    self._folder.remove(aside)
                self._folder.rename(f"{self.name}/{name}", aside)
            last = max(last, number)
        return last

    def prepare(
        self, spec: dict[str, Any], state: dict[str, Any], place: Mapping[str, Any] = MappingProxyType({})
    ) -> dict[str, Any]:
        """Put an earlier run aside and write the files of the next one."""
        if self.on_host:
            make_private(self._folder.root)
        last = self.set_aside()
        state = {**state, "run": place.get("run") or last + 1}
        state.setdefault("run_id", f"{self.name}/{state['run']}/{state.get('started_at')}")
        self._folder.write(f"{self.name}/{PROGRAM}", supervisor_archive())
        self._write("spec.json", json.dumps({"spec": spec, **place, "run_id": state["run_id"]}))
        self.write_state(state)
        return state

    def check_private(self) -> None:
        """Before the host runs anything that lies there."""
        if self.on_host:
            check_private(self._folder.root)


class JobRunner:
    """Starts and stops a job. The specification, which may hold secrets, travels by file and never by command line."""

    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._runtime, self._sleep, self._clock = store, runtime, sleep, clock

    def start(
        self,
        spec: dict[str, Any],
        digest: str,
        container: str,
        found: Container,
        inside: str,
        *,
        place: Mapping[str, Any] = MappingProxyType({}),
        versions: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Start a run in the container ``found`` and wait until its supervisor has reported.

        ``place``: this node's part of it: ``node``, ``leader``, ``options``, and ``run`` where the leader has counted.
        ``versions``: releases that were seen before the start, for the summary.
        """
        state = self._store.prepare(
            spec,
            {
                "state": "starting",
                "reason": "",
                "spec_hash": digest,
                "started_at": now_text(),
                "heartbeat": self._clock(),
                "container": container or None,
                **{key: spec.get(key) for key in ("launcher", "transport", "runtime")},
                "members": placed(spec.get("members") or []),
                "container_id": found.id,
                "container_started_at": found.started_at,
                "world_size_expected": spec["world_size"],
                "nodes_expected": spec["nodes"],
                "versions": dict(versions),
                **({"run_id": place["run_id"]} if "run_id" in place else {}),
            },
            place,
        )
        problem = ""
        try:
            self._store.check_private()
            handle = self._runtime.launch(found.id, ["python3", "-B", f"{inside}/{PROGRAM}", inside])
            deadline = self._clock() + START_TIMEOUT
            while self._state() == "starting" and self._clock() < deadline:
                code = self._runtime.exited(handle)
                if code is not None and self._state() == "starting":
                    problem = f"it ended at once with exit code {code}"
                    break
                self._sleep(0.1)
        except EngineError as error:
            problem = str(error)
        if problem:
            state.update(
                state="failed",
                finished_at=now_text(),
                reason="the supervisor could not be started"
                + (f" in container {container}" if container else "")
                + f": {problem}. It needs python3 3.8 or later, and must run as root.",
            )
            self._store.write_state(state)
        return self._store.read_state()

    def stop(self, state: str, container: Container | None, inside: str) -> None:
        """End the job, or what a lost one left behind."""
        recorded = self._store.read_state()
        if state in ACTIVE:
            self._store.ask_to_stop()
            deadline = self._clock() + STOP_TIMEOUT
            while recorded.get("state") in ACTIVE and self._clock() < deadline:
                self._sleep(0.2)
                recorded = self._store.read_state()
            if recorded.get("state", "absent") not in (*ACTIVE, "absent"):
                return
        if container is not None and container.running:
            self.sweep(container, inside)
        recorded.update(state="stopped", finished_at=now_text(), reason="on request, after it was lost")
        self._store.write_state(recorded)

    def _state(self) -> str:
        return str(self._store.read_state().get("state", "absent"))

    def sweep(self, container: Container, inside: str) -> None:
        """End every process of the job that is left."""
        self._store.check_private()
        handle = self._runtime.launch(container.id, ["python3", "-B", f"{inside}/{PROGRAM}", inside, "--sweep"])
        deadline = self._clock() + STOP_TIMEOUT
        while self._runtime.exited(handle) is None:
            if self._clock() > deadline:
                raise JobError(
                    f"processes of the lost job are still alive in container {container.id[:12]}: "
                    f"look at `docker top {container.id[:12]}`, or restart the container."
                )
            self._sleep(0.2)
