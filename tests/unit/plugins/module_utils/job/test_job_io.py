# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The folder of a job, and the calls to the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runner_io import JobRunner, RunStore
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runtimes import DockerRuntime
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.base import PROGRAM
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor_archive import supervisor_archive

SPEC = {"command": ["x"], "chdir": None, "environment": {"HF_TOKEN": "s3cret"}, "world_size": 1, "nodes": 1}
FOUND = Container("id1", "t0", True, {})


class FakeEngine:
    """Answers by method and path; an exception is raised."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, Any]] = []

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        self.calls.append((f"{method} {path}", body))
        answer = self.answers[f"{method} {path}"]
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeRuntime:
    """Runs nothing: ``on_launch`` does what the supervisor would do to the folder."""

    def __init__(self, on_launch: Any = None, exit_code: int | None = None) -> None:
        self.on_launch, self.exit_code = on_launch, exit_code
        self.launched: list[tuple[str, list[str]]] = []

    def container(self, name: str) -> Container | None:
        return FOUND

    def launch(self, container: str, command: list[str]) -> str:
        self.launched.append((container, command))
        if self.on_launch:
            self.on_launch()
        return "handle"

    def exited(self, handle: str) -> int | None:
        return self.exit_code


class Time:
    now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return self.now


def runner(store: RunStore, runtime: FakeRuntime) -> JobRunner:
    fake = Time()
    return JobRunner(store, runtime, sleep=fake.sleep, clock=fake.clock)


def test_docker_runtime_makes_exactly_these_calls() -> None:
    engine = FakeEngine(
        {
            "POST /containers/c/exec": {"Id": "e"},
            "POST /exec/e/start": None,
            "GET /exec/e/json": {"Running": False, "ExitCode": 127},
            "GET /containers/a%20b/json": EngineError("No such container", 404),
            "GET /containers/c/json": EngineError("no answer"),
        }
    )
    runtime = DockerRuntime(engine)
    assert runtime.launch("c", ["python3", "x"]) == "e"
    assert runtime.exited("e") == 127
    assert engine.calls == [
        ("POST /containers/c/exec", {"Cmd": ["python3", "x"]}),
        ("POST /exec/e/start", {"Detach": True}),
        ("GET /exec/e/json", None),
    ]
    assert runtime.container("a b") is None
    with pytest.raises(EngineError, match="no answer"):  # an engine that is down is no missing container
        runtime.container("c")


def test_start_writes_the_folder_and_keeps_secrets_off_the_command_line(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    runtime = FakeRuntime(lambda: store.write_state({**store.read_state(), "state": "running"}))
    state = runner(store, runtime).start(SPEC, "hash", "c", FOUND, "/jobs/digits")
    assert (state["state"], state["run"], state["spec_hash"], state["container_id"]) == ("running", 1, "hash", "id1")
    assert runtime.launched == [("id1", ["python3", "-B", "/jobs/digits/supervisor.pyz", "/jobs/digits"])]
    assert store.read_spec() == SPEC
    assert store.read_environment() == {"HF_TOKEN": "s3cret"}
    assert (store.path / PROGRAM).read_bytes() == supervisor_archive()
    assert store.path.stat().st_mode & 0o777 == 0o700
    assert (store.path / "spec.json").stat().st_mode & 0o777 == 0o600


def test_an_earlier_run_is_put_aside_and_never_lost(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    for number in (1, 2, 3):
        state = store.prepare(SPEC, {"state": "failed"})
        assert state["run"] == number
        assert not (store.path / "launcher.log").exists()
        (store.path / "launcher.log").write_text(f"run {number}")
        (store.path / "stop").touch()
    assert (store.path / "runs/0001/launcher.log").read_text() == "run 1"
    assert (store.path / "runs/0002/launcher.log").read_text() == "run 2"
    assert json.loads((store.path / "runs/0002/state.json").read_text())["run"] == 2


def test_an_interrupted_rotation_loses_no_log(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    store.prepare(SPEC, {"state": "failed"})
    (store.path / "launcher.log").write_text("run 1")
    aside = store.path / "runs" / "0001"
    aside.mkdir()
    (store.path / "launcher.log").rename(aside / "launcher.log")  # and then the power went
    assert store.prepare(SPEC, {"state": "starting"})["run"] == 2
    assert (aside / "launcher.log").read_text() == "run 1"
    (store.path / "state.json").unlink()
    (store.path / "launcher.log").write_text("run 2")
    assert store.prepare(SPEC, {"state": "starting"})["run"] == 3
    assert (store.path / "runs/0002/launcher.log").read_text() == "run 2"


def refuse() -> None:
    raise EngineError('exec: "python3": executable file not found in $PATH', 400)


@pytest.mark.parametrize(
    ("runtime", "says"),
    [
        (FakeRuntime(exit_code=126), "container c: it ended at once with exit code 126"),
        (FakeRuntime(refuse), 'container c: exec: "python3": executable file not found'),
    ],
)
def test_a_supervisor_that_does_not_start_fails_the_job(tmp_path: Path, runtime: FakeRuntime, says: str) -> None:
    state = runner(RunStore(str(tmp_path), "digits"), runtime).start(SPEC, "hash", "c", FOUND, "/jobs/digits")
    assert state["state"] == "failed"
    assert says in state["reason"]
    assert "It needs python3 3.8 or later, and must run as root." in state["reason"]


def test_a_supervisor_that_does_not_report_is_an_error_and_the_job_is_left_alone(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    with pytest.raises(
        JobError, match=r"has not reported for 60 s, and may still start\. Remedy: .* run launch\.yml again"
    ):
        runner(store, FakeRuntime()).start(SPEC, "hash", "c", FOUND, "/jobs/digits")
    assert store.read_state()["state"] == "starting"


def test_stop_asks_the_supervisor_and_waits(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    store.prepare(SPEC, {"state": "running"})
    fake = Time()

    def sleep(seconds: float) -> None:
        assert (store.path / "stop").exists()
        store.write_state({"state": "stopped", "reason": "on request"})

    runtime = FakeRuntime()
    JobRunner(store, runtime, sleep=sleep, clock=fake.clock).stop("running", FOUND, "/jobs/digits")
    assert store.read_state() == {"state": "stopped", "reason": "on request"}
    assert runtime.launched == []


def test_stop_of_a_lost_job_sweeps_its_container(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    store.prepare(SPEC, {"state": "running"})
    runtime = FakeRuntime(exit_code=0)
    runner(store, runtime).stop("lost", FOUND, "/jobs/digits")
    assert runtime.launched == [("id1", ["python3", "-B", "/jobs/digits/supervisor.pyz", "/jobs/digits", "--sweep"])]
    assert store.read_state()["state"] == "stopped"
    gone = FakeRuntime()
    runner(store, gone).stop("lost", None, "/jobs/digits")
    assert gone.launched == []


def test_stop_says_when_processes_do_not_end(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    store.prepare(SPEC, {"state": "running"})
    with pytest.raises(JobError, match="processes of the lost job are still alive in container id1: check `docker top"):
        runner(store, FakeRuntime()).stop("lost", FOUND, "/jobs/digits")


def test_read_log(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    assert store.read_log(5, 100, True) == (b"", 0, 0)
    store.path.mkdir()
    (store.path / "launcher.log").write_bytes(b"one\ntwo\nthr")
    assert store.read_log(0, 100, False) == (b"one\ntwo\n", 8, 11)
    assert store.read_log(8, 100, False) == (b"", 8, 11)
    assert store.read_log(8, 100, True) == (b"thr", 11, 11)
    assert store.read_log(99, 100, True) == (b"", 11, 11)
    assert store.read_log(-5, 100, True) == (b"thr", 11, 11)
    assert store.read_log(-99, 5, False) == (b"one\n", 4, 11)


def test_a_damaged_state_is_one_clear_error(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), "digits")
    store.path.mkdir()
    (store.path / "state.json").write_text("{")
    with pytest.raises(JobError, match=r"state\.json cannot be read: .*stop\.yml -e deepspeed_launch_name="):
        store.read_state()
    (store.path / "state.json").write_text("[]")
    with pytest.raises(JobError, match="does not hold a mapping"):
        store.read_state()


def test_a_missing_jobs_dir_is_one_clear_error(tmp_path: Path) -> None:
    missing = RunStore(str(tmp_path / "none"), "digits")
    with pytest.raises(JobError, match=r"jobs_dir: .* cannot be used: No such file or directory\."), missing.lock():
        pass
    with RunStore(str(tmp_path), "digits").lock():
        pass
    assert list(tmp_path.iterdir()) == []  # the lock leaves nothing behind
