# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""training_job_follow against real folders, with a fake engine and a clock that no one waits for."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import observe_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runtimes import Runtime
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.store_io import Store
from ansible_collections.swarmspeed.cluster.plugins.modules.training_job_follow import follow

STATE = {
    "state": "running",
    "run": 1,
    "run_id": "digits/1/t0",
    "container": "c",
    "container_id": "id1",
    "container_started_at": "t0",
    "started_at": "t0",
}


class Engine:
    """A container that runs, or none."""

    def __init__(self, present: bool = True) -> None:
        self.present = present

    def container(self, name: str) -> Container | None:
        return Container("id1", "t0", True, {}) if self.present else None

    def launch(self, container: str, command: list[str]) -> str:
        raise AssertionError("nothing is started")

    def exited(self, handle: str) -> int | None:
        raise AssertionError("nothing is started")


def write(jobs: Path, **change: Any) -> None:
    (jobs / "digits").mkdir(parents=True, exist_ok=True)
    state = {**STATE, "heartbeat": time.time(), **change}
    (jobs / "digits" / "state.json").write_text(json.dumps(state))


def log(jobs: Path, text: str) -> None:
    with (jobs / "digits" / "launcher.log").open("a") as file:
        file.write(text)


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs"
    write(folder)
    log(folder, "one\ntwo\n")
    return folder


def call(jobs: Path, present: bool = True, **given: Any) -> dict[str, Any]:
    engine: Runtime = Engine(present)
    params = {"name": "digits", "jobs_dir": str(jobs), "log_offset": 0, "log_limit": 65536, "wait": 0.0, **given}
    return follow(params, {"container": engine, "host": engine})


class Clock:
    """Goes on with each sleep; ``events`` happen at their second."""

    def __init__(self, **events: Callable[[], None]) -> None:
        self.now = 0.0
        self.events = {float(second.lstrip("_")): event for second, event in events.items()}

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for second in [second for second in self.events if second <= self.now]:
            self.events.pop(second)()


def waited(jobs: Path, offset: int, seconds: float, **events: Callable[[], None]) -> float:
    clock = Clock(**events)
    observe_io.wait_for_news(Store(str(jobs), "digits"), offset, seconds, sleep=clock.sleep, clock=clock.time)
    return clock.now


def test_the_log_from_a_byte_on(jobs: Path) -> None:
    found = call(jobs, log_offset=4)
    assert (found["changed"], found["job"]["state"], found["log"]) == (False, "running", "two\n")
    assert (found["log_offset"], found["log_size"]) == (8, 8)
    assert found["log_path"] == str(jobs / "digits" / "launcher.log")


def test_a_job_that_is_not_there(tmp_path: Path) -> None:
    assert call(tmp_path / "jobs", wait=60.0)["job"]["state"] == "absent"


def test_a_job_whose_container_is_gone_is_lost(jobs: Path) -> None:
    assert call(jobs, present=False)["job"]["state"] == "lost"


def test_secrets_of_the_ranks_are_hidden(jobs: Path) -> None:
    (jobs.parent / "etc").mkdir()
    (jobs.parent / "etc" / "env").write_text("HF_TOKEN=hf_s3cret_value\n")
    log(jobs, "my token is hf_s3cret_value\n")
    assert "hf_s3cret_value" not in call(jobs)["log"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"wait": 61.0}, "wait: 61 is not within 0 and 60 seconds."),
        ({"wait": -1.0}, "wait: -1 is not within 0 and 60 seconds."),
        ({"log_limit": 0}, "log_limit: 0 is not within 1 and 1048576 bytes."),
    ],
)
def test_what_is_out_of_range(jobs: Path, given: dict[str, Any], text: str) -> None:
    with pytest.raises(JobError) as error:
        call(jobs, **given)
    assert str(error.value) == text


def test_what_is_there_is_not_waited_for(jobs: Path) -> None:
    assert waited(jobs, 0, 10.0) == 0.0


def test_silence_is_waited_for_to_the_end(jobs: Path) -> None:
    assert waited(jobs, 8, 10.0) == pytest.approx(10.0)


def test_a_line_ends_the_wait_and_half_a_line_does_not(jobs: Path) -> None:
    assert waited(jobs, 8, 10.0, _2=lambda: log(jobs, "thr"), _5=lambda: log(jobs, "ee\n")) == pytest.approx(5.0)


@pytest.mark.parametrize("change", [{"state": "succeeded"}, {"state": "failed"}, {"run_id": "digits/2/t1", "run": 2}])
def test_an_end_and_another_run_end_the_wait(jobs: Path, change: dict[str, Any]) -> None:
    assert waited(jobs, 8, 10.0, _3=lambda: write(jobs, **change)) == pytest.approx(3.0)


def test_a_job_that_has_ended_is_not_waited_for(jobs: Path) -> None:
    write(jobs, state="succeeded")
    assert waited(jobs, 8, 10.0) == 0.0
