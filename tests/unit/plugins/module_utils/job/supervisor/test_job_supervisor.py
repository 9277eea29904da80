# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The supervisor for real, as a process of its own, beside stand-ins for the launcher: short shell scripts that print
the lines of DeepSpeed's launch.py."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.base import PROGRAM
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.local_run import (
    environments,
    rank_pids,
    survivors,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor_archive import supervisor_archive

LAUNCH = "[2026-11-20 10:00:00,000] [INFO] [launch.py:1:main] "
START = "".join(f"echo '{LAUNCH}nnodes=2, num_local_procs=1, node_rank={rank}'; " for rank in (0, 1))
WORLD = f"echo '{LAUNCH}dist_world_size=2'; "
DONE = 2 * f"echo '{LAUNCH}Process 9 exits successfully.'; "
WAIT = "sleep 60 & wait; "


class Job:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        (folder / PROGRAM).write_bytes(supervisor_archive())
        (folder / "state.json").write_text(json.dumps({"state": "starting", "run": 4, "container": "c"}))

    def start(
        self, command: list[str], chdir: str | None = None, grace: float = 5.0, ds_config: Path | None = None
    ) -> Job:
        environment = {"FROM_SPEC": "yes", "PYTHONPATH": str(self.folder.parent / "python")}
        spec = {"command": command, "chdir": chdir, "environment": environment, "world_size": 2, "nodes": 2}
        spec["ds_config"] = str(ds_config) if ds_config else None
        (self.folder / "spec.json").write_text(json.dumps({"spec": spec}))
        options = ["--poll", "0.02", "--grace", str(grace), "--failure-grace", str(grace), "--after-failure", "0.2"]
        self.process = subprocess.Popen(
            [sys.executable, "-B", str(self.folder / PROGRAM), str(self.folder), *options],
            env={"PATH": os.environ["PATH"]},
        )
        return self

    def shell(self, script: str, **kwargs: Any) -> Job:
        return self.start(["bash", "-c", script], **kwargs)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return found

    def until(self, seen: str) -> None:
        log, deadline = self.folder / "launcher.log", time.monotonic() + 60
        while not (log.exists() and seen in log.read_text()):
            assert time.monotonic() < deadline, f"{seen!r} never came"
            time.sleep(0.02)

    def end(self) -> dict[str, Any]:
        assert self.process is not None
        self.process.wait(timeout=60)
        assert survivors(self.folder) == []
        return self.state()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path / "digits")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
    for pid in survivors(made.folder):
        os.kill(pid, signal.SIGKILL)


def test_success(job: Job) -> None:
    state = job.shell(START + WORLD + 'echo "env $FROM_SPEC in $PWD"; ' + DONE, chdir="/tmp").end()
    assert (state["state"], state["exit_code"], state["reason"]) == ("succeeded", 0, "")
    assert (state["world_size_seen"], state["nodes_seen"], state["tail"]) == (2, 2, [])
    assert (state["run"], state["container"]) == (4, "c")  # what the module wrote stays
    assert "env yes in /tmp" in (job.folder / "launcher.log").read_text()
    assert (job.folder / "launcher.log").stat().st_mode & 0o077 == 0


def test_wrong_world_size_ends_the_launcher_at_once(job: Job) -> None:
    began = time.monotonic()
    state = job.shell(START + f"echo '{LAUNCH}dist_world_size=1'; " + WAIT).end()
    assert time.monotonic() - began < 15
    assert (state["state"], state["world_size_seen"]) == ("failed", 1)
    assert "world size of 1, expected 2" in state["reason"]


def test_fallback_to_one_node_is_ended_before_it_trains(job: Job) -> None:
    line = "Unable to find hostfile, will proceed with training with local resources only."
    state = job.shell(f"echo '[WARNING] [runner.py:1:fetch_hostfile] {line}'; sleep 60; echo trained").end()
    assert state["state"] == "failed"
    assert "did not find its hostfile" in state["reason"]
    assert "trained" not in (job.folder / "launcher.log").read_text()


def test_exit_0_after_a_signal_is_a_failure(job: Job) -> None:
    # as DeepSpeed does: its child dies of a signal, itself exits 0
    state = job.shell(START + WORLD + "bash -c 'kill -9 $$'; exit 0").end()
    assert (state["state"], state["exit_code"]) == ("failed", 0)
    assert "only 0 of 2 ranks ended successfully" in state["reason"]


@pytest.mark.slow
def test_a_launcher_that_says_nothing_is_no_success(job: Job) -> None:
    state = job.start(["true"]).end()
    assert (state["state"], state["exit_code"]) == ("failed", 0)
    assert "never logged a world size" in state["reason"]


def test_crash_with_traceback(job: Job) -> None:
    crash = "printf 'Traceback (most recent call last):\\n  File \"t.py\", line 1\\nKeyError: 1\\n' >&2; exit 3"
    state = job.shell(START + WORLD + crash).end()
    assert (state["state"], state["exit_code"]) == ("failed", 3)
    assert state["traceback"][-1] == "KeyError: 1"
    assert state["tail"][-1] == "KeyError: 1"
    assert state["reason"].startswith("the launcher ended with exit code 3: KeyError: 1")


@pytest.mark.slow
def test_a_failed_rank_ends_ranks_that_wait_for_it(job: Job) -> None:
    failed = f"echo \"{LAUNCH.replace('INFO', 'ERROR')}['x'] exits with return code = -9\"; "
    state = job.shell(START + WORLD + failed + WAIT).end()
    assert state["state"] == "failed"
    assert "SIGKILL" in state["reason"]


def test_stop_file(job: Job) -> None:
    job.shell(START + WORLD + "trap 'echo signalled; exit 1' TERM; echo ready; " + WAIT).until("ready")
    assert job.state()["state"] == "running"
    (job.folder / "stop").touch()
    state = job.end()
    assert (state["state"], state["reason"]) == ("stopped", "on request")
    assert "signalled" in (job.folder / "launcher.log").read_text()


@pytest.mark.slow
def test_sigterm_to_the_supervisor_stops_the_job(job: Job) -> None:
    job.shell(START + WORLD + "echo ready; " + WAIT).until("ready")
    assert job.process is not None
    job.process.send_signal(signal.SIGTERM)
    state = job.end()
    assert (state["state"], state["reason"]) == ("stopped", "its supervisor was asked to end (SIGTERM)")


@pytest.mark.slow
def test_a_launcher_deaf_to_sigterm_is_killed_after_the_grace(job: Job) -> None:
    job.shell("trap '' TERM; echo ready; while :; do sleep 0.1; done", grace=0.3).until("ready")
    (job.folder / "stop").touch()
    state = job.end()
    assert (state["state"], state["exit_code"]) == ("stopped", -signal.SIGKILL)


@pytest.mark.slow
def test_what_left_the_process_group_is_ended_too(job: Job) -> None:
    state = job.shell(START + WORLD + DONE + "setsid sleep 60 > /dev/null 2>&1 &").end()  # end() looks for survivors
    assert state["state"] == "succeeded"


def test_leftovers_of_a_killed_supervisor_are_swept(job: Job) -> None:
    job.shell("echo ready; " + WAIT).until("ready")
    assert job.process is not None
    job.process.kill()
    job.process.wait()
    assert survivors(job.folder)
    before = job.state()
    command = [sys.executable, "-B", str(job.folder / PROGRAM), str(job.folder), "--sweep", "--grace", "3"]
    assert subprocess.call(command) == 0
    assert survivors(job.folder) == []
    assert job.state() == before  # sweeping reports nothing


@pytest.mark.parametrize(("command", "chdir"), [(["/nonexistent/deepspeed"], None), (["true"], "/nonexistent")])
def test_a_launcher_that_cannot_start(job: Job, command: list[str], chdir: str | None) -> None:
    state = job.start(command, chdir=chdir).end()
    assert (state["state"], state["exit_code"]) == ("failed", 127)
    assert "/nonexistent" in state["reason"]
    assert "Check command and chdir" in state["reason"]


@pytest.mark.slow
def test_a_bug_of_its_own_is_reported(job: Job) -> None:
    assert job.process is None
    (job.folder / "spec.json").write_text(json.dumps({"spec": {"command": ["true"], "world_size": 1, "nodes": 1}}))
    done = subprocess.run([sys.executable, "-B", str(job.folder / PROGRAM), str(job.folder)], check=False)
    assert done.returncode == 1
    assert job.state()["state"] == "failed"
    assert "the supervisor failed: KeyError('environment')" in job.state()["reason"]
    assert "KeyError" in (job.folder / "supervisor.log").read_text()


@pytest.fixture
def deepspeed(tmp_path: Path) -> Path:
    """A stand-in for the package deepspeed: it refuses what holds "wrong", and never returns from "slow". The real
    one is asked in tests/differential/test_job_check.py."""
    home = tmp_path / "python/deepspeed"
    (home / "runtime").mkdir(parents=True)
    (home / "__init__.py").write_text("__version__ = '0.0.7'\nprint('a banner on stdout', flush=True)\n")
    (home / "comm.py").write_text("get_rank = get_world_size = None\n")
    (home / "runtime/__init__.py").write_text("")
    (home / "runtime/config.py").write_text(
        "import json, time\n"
        "from deepspeed import comm\n"
        "def DeepSpeedConfig(config):\n"
        "    text = json.dumps(config) if isinstance(config, dict) else open(config).read()\n"
        "    assert 'wrong' not in text, f'{text} is wrong for {comm.get_world_size()} ranks'\n"
        "    while 'slow' in text: time.sleep(1)\n"
    )
    return home


def config_file(folder: Path, text: str) -> Path:
    path = folder / "ds_config.json"
    path.write_text(text)
    return path


def test_a_configuration_that_deepspeed_takes(job: Job, deepspeed: Path, tmp_path: Path) -> None:
    state = job.shell(START + WORLD + DONE, ds_config=config_file(tmp_path, '{"train_batch_size": 4}')).end()
    assert (state["state"], state["deepspeed_version"]) == ("succeeded", "0.0.7")
    assert "a banner on stdout" in (job.folder / "launcher.log").read_text()


def test_a_configuration_that_deepspeed_refuses_starts_nothing(job: Job, deepspeed: Path, tmp_path: Path) -> None:
    path = config_file(tmp_path, '{"a": "wrong"}')
    state = job.shell("touch " + str(tmp_path / "started"), ds_config=path).end()
    assert state["state"] == "failed"
    assert state["reason"] == (
        f"DeepSpeed 0.0.7 in this image refuses {path} for 2 rank(s): "
        'AssertionError: {"a": "wrong"} is wrong for 2 ranks'
    )
    assert not (tmp_path / "started").exists()


@pytest.mark.slow
def test_what_deepspeed_has_accepted_is_not_asked_again(job: Job, deepspeed: Path, tmp_path: Path) -> None:
    path = config_file(tmp_path, '{"train_batch_size": 4}')
    before = {"state": "starting", "run": 4, "versions": {"deepspeed": "0.0.7"}, "container_id": "c1"}

    def run(**changes: Any) -> dict[str, Any]:
        (job.folder / "state.json").write_text(json.dumps({**before, **changes}))
        return job.shell(START + WORLD + DONE, ds_config=path).end()

    assert run()["state"] == "succeeded"
    (deepspeed / "__init__.py").write_text("import asked_again\n")
    again = run()
    assert (again["state"], again["deepspeed_version"]) == ("succeeded", "0.0.7")
    not_imported = f"DeepSpeed could not be imported to check {path}. The end of the log says why."
    assert run(container_id="c2")["reason"] == not_imported
    assert run(versions={"deepspeed": "0.0.8"})["reason"] == not_imported
    assert run(versions={})["reason"] == not_imported
    path.write_text('{"train_batch_size": 8}')
    assert run()["reason"] == not_imported


@pytest.mark.slow
def test_values_that_an_integration_fills_in_are_no_fault(job: Job, deepspeed: Path, tmp_path: Path) -> None:
    path = config_file(tmp_path, '{"train_batch_size": "auto", "b": "wrong"}')
    reason = job.shell("true", ds_config=path).end()["reason"]
    assert reason.endswith('{"b": "wrong", "train_micro_batch_size_per_gpu": 1} is wrong for 2 ranks')


@pytest.mark.slow
def test_a_python_without_deepspeed_checks_nothing(job: Job, tmp_path: Path) -> None:
    state = job.shell(START + WORLD + DONE, ds_config=config_file(tmp_path, "{}")).end()
    assert (state["state"], state["deepspeed_version"]) == ("succeeded", None)


@pytest.mark.slow
def test_a_deepspeed_that_cannot_be_imported(job: Job, deepspeed: Path, tmp_path: Path) -> None:
    (deepspeed / "__init__.py").write_text("import libcuda_that_is_missing\n")
    path = config_file(tmp_path, "{}")
    state = job.shell("true", ds_config=path).end()
    assert state["reason"] == f"DeepSpeed could not be imported to check {path}. The end of the log says why."
    assert "No module named 'libcuda_that_is_missing'" in "\n".join(state["tail"])


@pytest.mark.slow
def test_stop_while_the_configuration_is_read(job: Job, deepspeed: Path, tmp_path: Path) -> None:
    job.shell("true", ds_config=config_file(tmp_path, '{"a": "slow"}'))
    job.until("a banner")
    (job.folder / "stop").touch()
    state = job.end()
    assert (state["state"], state["reason"]) == ("stopped", "on request")


def test_of_two_jobs_on_one_node_each_has_its_own_ranks(tmp_path: Path) -> None:
    started = []
    try:
        for job in ("one", "two"):
            for rank in ("0", "1"):
                # The rank, and a data loader that inherits what it is called.
                command = ["sh", "-c", "sleep 60 & sleep 60"]
                marks = {"PATH": os.environ["PATH"], "SWARMSPEED_JOB": str(tmp_path / job), "RANK": rank}
                started.append(subprocess.Popen(command, env=marks, start_new_session=True))
        deadline = time.monotonic() + 10
        while len(environments(tmp_path / "two")) < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
        pids = [process.pid for process in started]
        assert rank_pids(environments(tmp_path / "one")) == {0: pids[0], 1: pids[1]}
        assert rank_pids(environments(tmp_path / "two")) == {0: pids[2], 1: pids[3]}
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    deadline = time.monotonic() + 10  # a killed data loader may outlive the rank for a moment
    while environments(tmp_path / "one") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert environments(tmp_path / "one") == {}
    odd = {7: {b"RANK": b"x"}, 8: {b"RANK": b"9" * 30}, 9: {}}
    assert rank_pids(odd) == {}
