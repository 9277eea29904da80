# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the attacks through /jobs share: a job that the host has started, and a stand-in for the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.info_io import JobsReader
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runtimes import HostRuntime
from ansible_collections.swarmspeed.cluster.plugins.modules.training_job import Call

SPEC: dict[str, Any] = {"command": ["x"], "environment": {}, "world_size": 1, "nodes": 1}
STATE: dict[str, Any] = {
    "state": "running",
    "run": 1,
    "run_id": "digits/1/t",
    "started_at": "2026-11-22T09:00:05Z",
    "heartbeat": 1.0,
    "container": "c",
    "container_id": "id1",
    "container_started_at": "t0",
}
SECRET = "only the host may read this"


def forge(jobs: Path, **change: Any) -> None:
    (jobs / "digits" / "state.json").write_text(json.dumps({**STATE, **change}))


class Engine:
    """A stand-in for the engine's exec calls: notes in which container what would be run."""

    def __init__(self, *containers: Container) -> None:
        self.containers = {one.id: one for one in containers}
        self.names = {"c": "id1", "other": "id2"}
        self.launched: list[tuple[str, list[str]]] = []

    def container(self, name: str) -> Container | None:
        return self.containers.get(self.names.get(name, name))

    def launch(self, container: str, command: list[str]) -> str:
        self.launched.append((container, command))
        return "handle"

    def exited(self, handle: str) -> int | None:
        return 0


def call(jobs: Path, engine: Engine, **change: Any) -> dict[str, Any]:
    params: dict[str, Any] = {
        **{"name": "digits", "state": "stopped", "container": None, "jobs_dir": str(jobs)},
        **{"container_jobs_dir": "/jobs", "command": ["x"], "chdir": None, "environment": {}, "world_size": 1},
        **{"nodes": 1, "fingerprint": {}, "ds_config": None, "launcher": "deepspeed", "transport": "pdsh"},
        **{"runtime": "container", "members": None, "node": None, "leader": None, "secret_file": None},
        **{"visible_devices": None, "env_file": None, "master_port": 0, "stall_timeout": 0, "resume": "never"},
        **{"hang_after": 0, "on_hang": "report"},
        **{"resume_args": [], "checkpoints": None, "restarts": 3, "shrink": False, "versions": {}, "rerun": False},
        **{"observe": False, "log_offset": 0, "log_limit": 65536, "code": None, "files": {}, "digests": {}},
    }
    return Call({**params, **change}, False, {"container": engine, "host": HostRuntime()}).run()


def gather(jobs: Path, tail: int = 5) -> dict[str, Any]:
    reader = JobsReader(str(jobs), {"container": Engine(), "host": HostRuntime()}, lambda: 5.0)
    return reader.gather("digits", tail)


def one_line(caught: pytest.ExceptionInfo[JobError], *words: str) -> None:
    text = str(caught.value)
    assert text.isprintable() and all(word in text for word in (*words, "emedy: "))


def untouched(victim: Path) -> bool:
    return victim.read_text() == SECRET and sorted(victim.parent.iterdir()) == [victim]
