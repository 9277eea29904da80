# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Jobs of a host as read from their folders, with a fake engine. State files are stand-ins for a supervisor's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.info_io import JobsReader
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container

NOW = 1795341605.0
SPEC = {"command": ["deepspeed"], "environment": {"HF_TOKEN": "hf_s3cret"}, "fingerprint": {"image": "sha256:1"}}
STATE: dict[str, Any] = {
    "name": "digits",
    "state": "running",
    "run": 1,
    "started_at": "2026-11-22T09:00:05Z",
    "heartbeat": NOW - 1,
    "container": "c",
    "container_id": "id1",
    "container_started_at": "t0",
}


class FakeRuntime:
    def __init__(self, found: Container | EngineError | None) -> None:
        self.found, self.requested = found, 0

    def container(self, name: str) -> Container | None:
        self.requested += 1
        if isinstance(self.found, EngineError):
            raise self.found
        return self.found

    def launch(self, container: str, command: list[str]) -> str:
        raise AssertionError("nothing may be started")

    def exited(self, handle: str) -> int | None:
        raise AssertionError("nothing was started")


RUNS = Container("id1", "t0", running=True, mounts={})


def write(jobs: Path, name: str = "digits", log: str = "", spec: Any = None, **change: Any) -> Path:
    folder = jobs / name
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps({**STATE, "name": name, **change}))
    (folder / "spec.json").write_text(json.dumps({"spec": SPEC} if spec is None else spec))
    (folder / "launcher.log").write_text(log)
    return folder


def reader(jobs: Path, found: Container | EngineError | None = RUNS) -> tuple[JobsReader, FakeRuntime]:
    fake = FakeRuntime(found)
    return JobsReader(str(jobs), {"container": fake, "host": FakeRuntime(RUNS)}, lambda: NOW), fake


def test_names_are_those_of_folders_with_a_state(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path, name)
    (tmp_path / "none").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert reader(tmp_path)[0].names() == ["a", "b"]
    assert reader(tmp_path / "missing")[0].names() == []


def test_a_job_that_runs(tmp_path: Path) -> None:
    write(tmp_path, log="one\n\x1b[1mtoken hf_s3cret\x1b[0m\n50%\r100%\n")
    jobs, fake = reader(tmp_path)
    job = jobs.gather("digits", tail=2)
    assert (job["state"], job["since"], job["seconds"]) == ("running", "2026-11-22T09:00:05Z", 3599.0)
    assert job["leader"] is True and fake.requested == 1 and jobs.engine_error is None
    assert job["log"] == ["token ********", "100%"]
    assert job["log_path"] == str(tmp_path / "digits/launcher.log")
    assert (job["summary"]["state"], job["summary"]["spec"]["environment"]) == ("running", ["HF_TOKEN"])
    assert "hf_s3cret" not in json.dumps(job)


def test_the_engine_is_not_asked_about_a_job_that_has_ended(tmp_path: Path) -> None:
    write(tmp_path, state="succeeded", finished_at="2026-11-22T09:30:00Z")
    jobs, fake = reader(tmp_path)
    job = jobs.gather("digits", tail=0)
    assert (job["state"], job["since"], fake.requested, job["log"]) == ("succeeded", "2026-11-22T09:30:00Z", 0, [])


@pytest.mark.parametrize(
    ("found", "beat", "state", "words"),
    [
        (None, 1, "lost", "the container c it ran in is gone"),
        (Container("id1", "t1", running=True, mounts={}), 1, "lost", "was stopped or restarted while the job ran"),
        (RUNS, 60, "lost", "no sign of life from its supervisor in container c for 60 s"),
        (EngineError("down"), 1, "running", ""),
        (EngineError("down"), 60, "lost", "no sign of life from its supervisor in container c for 60 s"),
    ],
)
def test_a_lost_job_is_reported(
    tmp_path: Path, found: Container | EngineError | None, beat: int, state: str, words: str
) -> None:
    write(tmp_path, heartbeat=NOW - beat)
    jobs, dummy = reader(tmp_path, found)
    job = jobs.gather("digits", tail=0)
    assert job["state"] == state and words in job["reason"]
    assert job["summary"]["state"] == state and words in job["summary"]["reason"]
    assert jobs.engine_error == ("down" if isinstance(found, EngineError) else None)


def test_without_docker_the_host_is_asked(tmp_path: Path) -> None:
    write(tmp_path / "host_jobs", runtime="host", container=None)
    (tmp_path / "jobs").mkdir()
    jobs, fake = reader(tmp_path / "jobs", EngineError("no engine here"))
    assert jobs.names() == ["digits"]
    assert jobs.gather("digits", tail=0)["state"] == "running"
    assert fake.requested == 0 and jobs.engine_error is None


def test_a_state_without_a_container_asks_no_one(tmp_path: Path) -> None:
    write(tmp_path, container=None)
    jobs, fake = reader(tmp_path)
    assert jobs.gather("digits", tail=0)["state"] == "lost" and fake.requested == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "state.json cannot be read"),
        ("[]", "state.json does not hold a mapping"),
        (json.dumps({**STATE, "heartbeat": {}}), "is damaged"),
    ],
)
def test_one_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path, "bad")
    (tmp_path / "bad/state.json").write_text(text)
    write(tmp_path, "good")
    jobs, dummy = reader(tmp_path)
    bad, good = (jobs.gather(name, tail=1) for name in jobs.names())
    assert (
        bad["state"] == "unreadable"
        and words in bad["reason"]
        and "stop.yml -e deepspeed_launch_name=bad" in bad["reason"]
    )
    assert bad["summary"]["name"] == "bad"
    assert good["state"] == "running"


@pytest.mark.parametrize(
    ("reported", "node", "leads"),
    [(True, "gpu2", True), (False, "gpu1", False), (None, "gpu1", True), (None, "gpu2", False), (None, None, True)],
)
def test_who_leads(tmp_path: Path, reported: bool | None, node: str | None, leads: bool) -> None:
    spec = {"spec": {**SPEC, "members": [{"name": "gpu1"}, {"name": "gpu2"}]}, **({"node": node} if node else {})}
    write(tmp_path, spec=spec, leader=reported)
    assert reader(tmp_path)[0].gather("digits", tail=0)["leader"] is leads


def test_the_summary_of_the_leader_counts_for_its_own_run_only(tmp_path: Path) -> None:
    folder = write(tmp_path, state="failed", finished_at="f")
    written = {"name": "digits", "run": 1, "state": "failed", "started_at": STATE["started_at"], "line": "hf_s3cret"}
    (folder / "summary.json").write_text(json.dumps(written))
    jobs, dummy = reader(tmp_path)
    assert jobs.gather("digits", tail=0)["summary"] == {**written, "line": "********"}
    for change in ({"run": 2}, {"state": "running"}, {"started_at": "x"}):
        (folder / "summary.json").write_text(json.dumps({**written, **change}))
        assert jobs.gather("digits", tail=0)["summary"]["spec"]["environment"] == ["HF_TOKEN"]
    (folder / "summary.json").write_text("{")
    assert jobs.gather("digits", tail=0)["summary"]["run"] == 1
