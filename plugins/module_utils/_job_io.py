# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The folder of a training job on the host, and the engine that runs its supervisor in the container."""

from __future__ import annotations

import contextlib
import fcntl
import inspect
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Protocol
from urllib.parse import quote

from ansible_collections.swarmspeed.cluster.plugins.module_utils import (
    _job_base,
    _job_batch,
    _job_channel,
    _job_checkpoints,
    _job_comeback,
    _job_diagnose,
    _job_ds_config,
    _job_exits,
    _job_failures,
    _job_follower,
    _job_frames,
    _job_judge,
    _job_leader,
    _job_link,
    _job_log,
    _job_members,
    _job_messages,
    _job_nodes,
    _job_part,
    _job_progress,
    _job_ready,
    _job_restarts,
    _job_shrink,
    _job_summary,
    _job_supervisor,
    _job_voices,
    _job_wire,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils._engine_io import Engine, EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job import ACTIVE, Container, JobError, whole_lines
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_base import GRACE, now_text, write_json
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_members import placed
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common import secret_names
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.environment import ranks_environment

START_TIMEOUT = 15.0
"""Seconds the engine and Python in the container may take until the supervisor reports."""
STOP_TIMEOUT = 3 * GRACE + 10
"""Seconds until a job that is being stopped must have ended; its supervisor kills after GRACE, twice at most."""
SOURCES = {
    "supervisor.py": _job_supervisor,
    "_job_base.py": _job_base,
    "_job_batch.py": _job_batch,
    "_job_channel.py": _job_channel,
    "_job_checkpoints.py": _job_checkpoints,
    "_job_comeback.py": _job_comeback,
    "_job_diagnose.py": _job_diagnose,
    "_job_ds_config.py": _job_ds_config,
    "_job_exits.py": _job_exits,
    "_job_failures.py": _job_failures,
    "_job_follower.py": _job_follower,
    "_job_frames.py": _job_frames,
    "_job_judge.py": _job_judge,
    "_job_leader.py": _job_leader,
    "_job_link.py": _job_link,
    "_job_log.py": _job_log,
    "_job_members.py": _job_members,
    "_job_messages.py": _job_messages,
    "_job_nodes.py": _job_nodes,
    "_job_part.py": _job_part,
    "_job_progress.py": _job_progress,
    "_job_ready.py": _job_ready,
    "_job_restarts.py": _job_restarts,
    "_job_shrink.py": _job_shrink,
    "_job_summary.py": _job_summary,
    "_job_voices.py": _job_voices,
    "_job_wire.py": _job_wire,
    "secret_names.py": secret_names,
}
"""What runs inside the container."""
RUN_FILES = (
    *("launcher.log", "node.log", "ranks", "supervisor.log", "summary.json", "environment", "resumes", "stop"),
    *("hostfile", "ds_config.json"),
    *(*SOURCES, "spec.json", "state.json"),
)
"""What belongs to one run. state.json comes last: until it is moved, a rotation that was interrupted is done again."""


class Runtime(Protocol):
    """What a job needs of the engine; tests hand in a fake."""

    def container(self, name: str) -> Container | None:
        """The container, or ``None`` where there is none of that name or id."""

    def launch(self, container: str, command: list[str]) -> str:
        """Start a command detached in a running container and return a handle."""

    def exited(self, handle: str) -> int | None:
        """Exit code of a launched command, or ``None`` while it runs."""


class DockerRuntime:
    """The engine's exec calls: POST /containers/ID/exec, POST /exec/ID/start, GET /exec/ID/json."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def container(self, name: str) -> Container | None:
        try:
            return Container.parse(self._engine.call("GET", f"/containers/{quote(name, safe='')}/json"))
        except EngineError as error:
            if error.status == 404:
                return None
            raise

    def launch(self, container: str, command: list[str]) -> str:
        made = self._engine.call("POST", f"/containers/{container}/exec", {"Cmd": command})
        self._engine.call("POST", f"/exec/{made['Id']}/start", {"Detach": True})
        return str(made["Id"])

    def exited(self, handle: str) -> int | None:
        answer = self._engine.call("GET", f"/exec/{handle}/json")
        return None if answer["Running"] else int(answer.get("ExitCode") or 0)


class HostRuntime:
    """The host itself, for servers without Docker: a session of its own instead of a container's."""

    def __init__(self) -> None:
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    @staticmethod
    def here() -> Container:
        """The host as if it were a container that has run since the last boot."""
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return Container(id="host", started_at=boot, running=True, mounts={"/": "/"})

    def container(self, name: str) -> Container | None:
        return self.here()

    def launch(self, container: str, command: list[str]) -> str:
        nowhere = subprocess.DEVNULL
        process = subprocess.Popen(
            command, cwd="/", stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
        self._started[str(process.pid)] = process
        return str(process.pid)

    def exited(self, handle: str) -> int | None:
        return self._started[handle].poll()


class Store:
    """``JOBS_DIR/NAME`` on the host. Only the module and the supervisor write there."""

    def __init__(self, jobs_dir: str, name: str) -> None:
        self._jobs = Path(jobs_dir)
        self.path = self._jobs / name

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Two playbooks at once must not start a job twice. Held on the folder itself; free when its holder dies."""
        try:
            handle = os.open(self._jobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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
        path = self.path / name
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise JobError(f"{path} can not be read: {error}. Remove the job with state: absent.") from error
        if not isinstance(found, dict):
            raise JobError(f"{path} does not hold a mapping. Remove the job with state: absent.")
        return found

    def read_state(self) -> dict[str, Any]:
        return self._read("state.json")

    def read_spec(self) -> dict[str, Any]:
        spec = self._read("spec.json").get("spec", {})
        return spec if isinstance(spec, dict) else {}

    def read_environment(self) -> dict[str, str]:
        """Variables of the cluster's ranks, and of the job as it was started: what must be hidden in its log."""
        found: dict[str, str] = ranks_environment(self._jobs)
        with contextlib.suppress(JobError):
            environment = self.read_spec().get("environment", {})
            found.update(environment if isinstance(environment, dict) else {})
        return found

    def write_state(self, state: dict[str, Any]) -> None:
        write_json(self.path / "state.json", state)

    def read_log(self, offset: int, limit: int, ended: bool) -> tuple[bytes, int, int]:
        """Bytes from ``offset`` (negative: from the end) to a line end, the offset after them, and the log's size."""
        try:
            with (self.path / "launcher.log").open("rb") as log:
                size = os.fstat(log.fileno()).st_size
                start = max(0, size + offset) if offset < 0 else min(offset, size)
                log.seek(start)
                data = log.read(limit)
        except FileNotFoundError:
            return b"", 0, 0
        if offset < 0 < start:  # begin with a whole line
            skipped = data.find(b"\n") + 1
            start, data = start + skipped, data[skipped:]
        data = whole_lines(data, ended, limit)
        return data, start + len(data), size

    def exists(self) -> bool:
        return self.path.exists()

    def remove(self) -> None:
        shutil.rmtree(self.path)

    def ask_to_stop(self) -> None:
        (self.path / "stop").touch(mode=0o600)

    def prepare(
        self, spec: dict[str, Any], state: dict[str, Any], place: Mapping[str, Any] = MappingProxyType({})
    ) -> dict[str, Any]:
        """Put the files of an earlier run aside as ``runs/NUMBER`` and write those of the next one."""
        runs = self.path / "runs"
        runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        last = max((int(entry.name) for entry in runs.iterdir() if entry.name.isdigit()), default=0)
        present = [name for name in RUN_FILES if (self.path / name).exists()]
        if present:
            number = int(self.read_state().get("run") or last + 1)
            if (runs / f"{number:04d}" / "state.json").exists():  # counted by another leader
                number = last + 1
            aside = runs / f"{number:04d}"
            aside.mkdir(mode=0o700, exist_ok=True)
            for name in present:
                (self.path / name).replace(aside / name)
            last = max(last, number)
        state = {**state, "run": place.get("run") or last + 1}
        state.setdefault("run_id", f"{self.path.name}/{state['run']}/{state.get('started_at')}")
        for name, source in SOURCES.items():
            # The source, not the file: on a target this module runs out of a zip archive.
            (self.path / name).write_text(inspect.getsource(source), encoding="utf-8")
        write_json(self.path / "spec.json", {"spec": spec, **place, "run_id": state["run_id"]})
        (self.path / "spec.json").chmod(0o600)
        self.write_state(state)
        return state


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
            handle = self._runtime.launch(found.id, ["python3", "-B", f"{inside}/supervisor.py", inside])
            deadline = self._clock() + START_TIMEOUT
            while self._store.read_state()["state"] == "starting" and self._clock() < deadline:
                code = self._runtime.exited(handle)
                if code is not None and self._store.read_state()["state"] == "starting":
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
            while recorded["state"] in ACTIVE and self._clock() < deadline:
                self._sleep(0.2)
                recorded = self._store.read_state()
            if recorded["state"] not in ACTIVE:
                return
        if container is not None and container.running:
            self._sweep(container, inside)
        recorded.update(state="stopped", finished_at=now_text(), reason="on request, after it was lost")
        self._store.write_state(recorded)

    def _sweep(self, container: Container, inside: str) -> None:
        handle = self._runtime.launch(container.id, ["python3", "-B", f"{inside}/supervisor.py", inside, "--sweep"])
        deadline = self._clock() + STOP_TIMEOUT
        while self._runtime.exited(handle) is None:
            if self._clock() > deadline:
                raise JobError(
                    f"processes of the lost job are still alive in container {container.id[:12]}: "
                    f"look at `docker top {container.id[:12]}`, or restart the container."
                )
            self._sleep(0.2)
