# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""training_job_examine against real folders, with a fake engine whose container writes what it finds.

With a real job: molecule/hangs.
"""

from __future__ import annotations

import base64
import json
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import examine_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.modules import training_job_examine
from ansible_collections.swarmspeed.cluster.plugins.modules.training_job_examine import examine

STATE = {
    "state": "running",
    "run": 1,
    "container": "c",
    "container_id": "id1",
    "container_started_at": "t0",
    "started_at": "t0",
}
FOUND = {"examination": {"node": "gpu1"}, "log": [[1.0, 0, "token hf_s3cret-value"]]}


class Engine:
    """A container that has the jobs at /jobs, and writes ``found`` when it is to examine one."""

    def __init__(self, jobs: Path, *, code: int | None = 0, found: Any = FOUND, present: bool = True) -> None:
        self.jobs, self.code, self.found, self.present = jobs, code, found, present
        self.commands: list[list[str]] = []

    def container(self, name: str) -> Container | None:
        return Container("id1", "t0", True, {"/jobs": str(self.jobs)}) if self.present else None

    def launch(self, container: str, command: list[str]) -> str:
        assert container == "id1"
        self.commands.append(command)
        if self.found is not None:
            place = self.jobs / "digits/hangs/request"
            place.mkdir(parents=True, exist_ok=True)
            (place / "examination.json").write_text(json.dumps(self.found))
        return "handle"

    def exited(self, handle: str) -> int | None:
        return self.code


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs"
    (folder / "digits").mkdir(parents=True)
    (folder / "digits/state.json").write_text(json.dumps({**STATE, "heartbeat": time.time()}))
    spec = {"spec": {"environment": {"HF_TOKEN": "hf_s3cret-value"}}}
    (folder / "digits/spec.json").write_text(json.dumps(spec))
    return folder


def call(jobs: Path, engine: Engine, name: str = "digits") -> dict[str, Any]:
    params = {"name": name, "jobs_dir": str(jobs), "container_jobs_dir": "/jobs"}
    return examine(params, {"container": engine, "host": engine})


def test_what_was_found_comes_packed_and_without_secrets(jobs: Path) -> None:
    engine = Engine(jobs)
    reply = call(jobs, engine)
    assert engine.commands == [["python3", "-B", "/jobs/digits/supervisor.pyz", "/jobs/digits", "--examine", "request"]]
    assert (reply["changed"], reply["state"], reply["problem"]) == (False, "running", "")
    found = json.loads(zlib.decompress(base64.b64decode(reply["examination"])))
    assert found == {**FOUND, "log": [[1.0, 0, "token ********"]]}
    assert set(from_yaml(training_job_examine.RETURN)) == set(reply) - {"changed"}


@pytest.mark.parametrize(
    ("code", "found", "problem"),
    [
        (1, None, "the examination ended with exit code 1"),
        (
            2,
            None,
            "it was started by a release of this collection that does not examine jobs; its next run can be examined",
        ),
        (0, None, "the examination ended, and what it found is missing"),
        (None, FOUND, "the examination did not end within 40 s"),
    ],
)
def test_an_examination_that_fails_is_said(
    jobs: Path, monkeypatch: pytest.MonkeyPatch, code: int | None, found: Any, problem: str
) -> None:
    monkeypatch.setattr(examine_io.JobExaminer.__init__, "__kwdefaults__", {"sleep": lambda _: None, "clock": Clock()})
    reply = call(jobs, Engine(jobs, code=code, found=found))
    assert (reply["problem"], reply["examination"]) == (problem, "")


class Clock:
    """Each query takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_job_that_does_not_run_is_not_examined(jobs: Path) -> None:
    (jobs / "digits/state.json").write_text(json.dumps({**STATE, "state": "failed", "reason": "it failed."}))
    engine = Engine(jobs)
    assert call(jobs, engine) == {"changed": False, "state": "failed", "problem": "it failed.", "examination": ""}
    assert call(jobs, engine, "other")["problem"] == "it is absent here"
    assert engine.commands == []


def test_nothing_is_run_in_a_container_that_does_not_have_the_jobs(jobs: Path, tmp_path: Path) -> None:
    engine = Engine(tmp_path / "elsewhere")
    with pytest.raises(JobError, match=r"names a container that does not have .* at /jobs\. Nothing was run there\."):
        call(jobs, engine)
    assert engine.commands == []


def test_a_link_in_place_of_what_was_found_is_not_followed(jobs: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(json.dumps(FOUND))
    place = jobs / "digits/hangs/request"
    place.mkdir(parents=True)
    (place / "examination.json").symlink_to(secret)
    with pytest.raises(JobError, match="is a link"):
        call(jobs, Engine(jobs, found=None))


def test_a_name_that_is_none_is_refused(jobs: Path) -> None:
    with pytest.raises(JobError, match=r"name: '\.\./x' is not a name for a job"):
        call(jobs, Engine(jobs), "../x")
