# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Starts and ends a run of a training job: its folder is written, and the engine runs the supervisor."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable

from ..engine.api_io import EngineError
from .members import placed
from .private import check_private, make_private
from .resource import ACTIVE, Container, JobError
from .runtimes import Runtime
from .store_io import Store
from .supervisor.base import GRACE, PROGRAM, now_text
from .supervisor_archive import supervisor_archive

START_TIMEOUT = 60.0
"""Seconds the engine and Python in the container may take until the supervisor reports."""
STOP_TIMEOUT = 3 * GRACE + 10
"""Seconds until a job that is being stopped must have ended; its supervisor kills after GRACE, twice at most."""
RUN_FILES = (
    *("launcher.log", "node.log", "ranks", "supervisor.log", "summary.json", "environment", "resumes", "stop"),
    *("hangs", "inside"),
    *("hostfile", "ds_config.json"),
    *(PROGRAM, "spec.json", "state.json"),
)
"""What belongs to one run. state.json comes last: until it is moved, a rotation that was interrupted is done again."""
PLAIN = ("launcher.log", "summary.json", PROGRAM, "spec.json", "state.json")
"""Those of them that are plain files. What bears such a name and is none was not written by a job, and is removed."""
_RUN = re.compile(r"[0-9]{1,6}")


class RunStore(Store):
    """The folder of a job, with what writes a run into it."""

    def set_aside(self) -> int:
        """Put the files of an earlier run aside as ``runs/NUMBER``; return the highest number there is."""
        runs = f"{self.name}/runs"
        self._folder.make_folder(runs)
        self._folder.make_folder(self.name, exact=True)
        last = max((int(name) for name in self._folder.entries(runs) if _RUN.fullmatch(name)), default=0)
        lies = self._folder.entries(self.name)
        present = [name for name in RUN_FILES if name in lies]
        if present:
            number = last + 1
            with contextlib.suppress(JobError):  # of a damaged one the number is not known
                number = int(self.read_state().get("run") or number)
            if self._folder.kind(f"{runs}/{number:04d}/state.json"):  # counted by another leader
                number = last + 1
            self._folder.make_folder(f"{runs}/{number:04d}")
            for name in present:
                if lies[name] != "a plain file" and name in PLAIN:
                    self._folder.remove(f"{self.name}/{name}")  # a link or a folder: no job wrote it
                    continue
                aside = f"{runs}/{number:04d}/{name}"
                if self._folder.kind(aside):
                    self._folder.remove(aside)
                self._folder.rename(f"{self.name}/{name}", aside)
            last = max(last, number)
        return last

    def prepare(
        self,
        spec: dict[str, Any],
        state: dict[str, Any],
        place: Mapping[str, Any] = MappingProxyType({}),
        copies: Mapping[str, bytes] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Put an earlier run aside and write the files of the next one; ``copies``: of the cluster's, by name."""
        if self.on_host:
            make_private(self._folder.root)
        last = self.set_aside()
        state = {**state, "run": place.get("run") or last + 1}
        state.setdefault("run_id", f"{self.name}/{state['run']}/{state.get('started_at')}")
        self.write_program()
        for name, content in copies.items():
            self._folder.write(f"{self.name}/{name}", content)
        self._write("spec.json", json.dumps({"spec": spec, **place, "run_id": state["run_id"]}))
        self.write_state(state)
        return state

    def write_program(self) -> None:
        self._folder.write(f"{self.name}/{PROGRAM}", supervisor_archive())

    def runs_this_program(self) -> bool:
        """Whether the job was started by the supervisor that this release has."""
        return self._folder.digest(f"{self.name}/{PROGRAM}") == hashlib.sha256(supervisor_archive()).hexdigest()

    def check_private(self) -> None:
        """Before the host runs anything that lies there."""
        if self.on_host:
            check_private(self._folder.root)


class JobRunner:
    """Starts and stops a job. The specification, which may hold secrets, travels by file and never by command line."""

    def __init__(
        self,
        store: RunStore,
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
        copies: Mapping[str, bytes] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Start a run in the container ``found`` and wait until its supervisor reports. It is an error if it does not.

        ``place``: this node's part of it: ``node``, ``leader``, ``options``, and ``run`` where the leader has counted.
        ``versions``: releases that were seen before the start, for the summary. ``copies``: files that the job keeps.
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
            copies,
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
        elif self._state() == "starting":
            raise JobError(
                f"The job's supervisor has not reported for {START_TIMEOUT:.0f} s, and may still start. Remedy: see "
                "what keeps the host busy (uptime), then run launch.yml again, which joins the job, or stop.yml."
            )
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

    def clear(self, container: Container | None, inside: str) -> None:
        """End what may run of a job whose files are damaged, and put them aside: then there is no such job."""
        self._store.check_private()
        self._store.ask_to_stop()
        deadline = self._clock() + STOP_TIMEOUT
        while self._known_state() in ACTIVE and self._clock() < deadline:
            self._sleep(0.2)
        if container is not None and container.running:
            self._store.write_program()  # what is there may be damaged, too
            self.sweep(container, inside)
        self._store.set_aside()

    def _known_state(self) -> str:
        """The state, where enough is recorded for it to be that of a run."""
        try:
            return str(self._store.read_place().get("state", "absent"))
        except JobError:
            return ""

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
                    f"check `docker top {container.id[:12]}`, or restart the container."
                )
            self._sleep(0.2)
