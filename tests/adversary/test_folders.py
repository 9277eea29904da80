# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root in a container attacks the host through /jobs: one attack a test, made with the files that it can write there.

The victim of each is a file or folder beside the shared one, which only the host has. The engine is a stand-in.
The workspace's attacks are in test_folders_workspace.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils import _job_table, _node_io
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_info_io import JobsReader
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_io import HostRuntime, Store
from ansible_collections.swarmspeed.cluster.plugins.module_utils._job_logs_io import Copy, NodeFolder
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


@pytest.fixture(autouse=True)
def within_seconds() -> Iterator[None]:
    """An attack that makes the host wait for ever fails."""

    def late(_number: int, _frame: object) -> None:
        raise AssertionError("the host waits for the container")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "host" / "secret"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The folder that is /jobs in the container, with a job that the host has started."""
    path = tmp_path / "cluster" / "jobs"
    (path / "digits").mkdir(parents=True)
    (path / "digits" / "state.json").write_text(json.dumps(STATE))
    (path / "digits" / "spec.json").write_text(json.dumps({"spec": SPEC}))
    return path


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
        **{"resume_args": [], "checkpoints": None, "restarts": 3, "shrink": False, "versions": {}, "rerun": False},
        **{"observe": False, "log_offset": 0, "log_limit": 65536},
    }
    return Call({**params, **change}, False, {"container": engine, "host": HostRuntime()}).run()


def look(jobs: Path, tail: int = 5) -> dict[str, Any]:
    reader = JobsReader(str(jobs), {"container": Engine(), "host": HostRuntime()}, lambda: 5.0)
    return reader.look("digits", tail)


def one_line(caught: pytest.ExceptionInfo[JobError], *words: str) -> None:
    text = str(caught.value)
    assert text.isprintable() and all(word in text for word in (*words, "emedy: "))


# --- host root runs nothing from such a folder


@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_the_host_runs_no_supervisor_of_the_container(jobs: Path, tmp_path: Path, state: str) -> None:
    owned = tmp_path / "owned"
    (jobs / "digits" / "supervisor.py").write_text(f"open({str(owned)!r}, 'w')\n")
    forge(jobs, runtime="host", container=None, heartbeat=time.time() - 60, container_started_at=HostRuntime.here().started_at)
    with contextlib.suppress(JobError):
        call(jobs, Engine(Container("id1", "t0", True, {"/jobs": str(jobs)})), state=state, container="c")
    assert not owned.exists()


def test_a_forged_runtime_is_one_error_and_nothing_counts_as_stopped(jobs: Path) -> None:
    forge(jobs, runtime="host")
    with pytest.raises(JobError) as caught:
        call(jobs, Engine())
    one_line(caught, f"{jobs}/digits/state.json", "says that the job runs on the host", "state: absent")
    assert look(jobs)["state"] == "unreadable"


def test_no_other_container_is_entered(jobs: Path) -> None:
    """The record names a container of somebody else's, in which /jobs is another folder."""
    other = Container("id2", "t0", True, {"/jobs": "/srv/other/jobs"})
    forge(jobs, container="other", container_id="id2")
    engine = Engine(other)
    with pytest.raises(JobError) as caught:
        call(jobs, engine)
    one_line(caught, "names container other", "Nothing was run there")
    assert engine.launched == []
    own = Engine(other, Container("id1", "t0", True, {"/jobs": str(jobs)}))
    assert call(jobs, own, container="c")["job"]["state"] == "stopped"  # by the operator's variable
    assert [container for container, dummy in own.launched] == ["id1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("change", [lambda path: path.chmod(0o777), lambda path: os.chown(path, 65534, 65534)])
def test_a_place_that_others_can_write_starts_nothing_on_the_host(jobs: Path, change: Callable[[Path], None]) -> None:
    place = jobs.parent / "host_jobs"
    place.mkdir(mode=0o700)
    change(place)
    with pytest.raises(JobError) as caught:
        call(jobs, Engine(), state="started", runtime="host", name="other")
    one_line(caught, f"{place} must be a folder of root")


# --- what is read


HOSTILE: list[Any] = [
    *("../../../etc", "-oProxyCommand=id", "a\nb", "\x1b]0;x\x07", "{{ 7*7 }}", "x" * 10_000_000, float("nan"), float("inf")),
    *(-1, 10**30, 1.5, True, [], [[]], ["x"], {}, {"x": [1]}, [{"name": 1}], [{"name": "a", "slots": ["../x"]}]),
]
READ = (
    *("state", "reason", "run", "run_id", "container", "container_id", "container_started_at", "heartbeat", "members"),
    *("hosts", "figures", "first_failure", "channel_port", "started_at", "finished_at", "runtime", "spec_hash"),
    *("restarts", "ranks", "shrunk_from", "leader", "tail", "traceback", "versions", "exit_code"),
)


@pytest.mark.parametrize("field", READ)
def test_a_field_of_another_kind_is_told_or_harmless(jobs: Path, field: str) -> None:
    engine = Engine(Container("id1", "t0", True, {"/jobs": str(jobs)}))
    for value in HOSTILE:
        forge(jobs, **{field: value})
        seen = look(jobs)
        lines = _job_table.table({"gpu1": {"jobs": [seen]}})
        assert all(line.isprintable() and len(line) < 100_000 for line in lines)
        try:
            job = call(jobs, engine, observe=True)["job"]
        except JobError as error:
            assert str(error).isprintable() and "state: absent" in str(error)
            assert seen["state"] == "unreadable"
            continue
        assert isinstance(job["run"], (int, type(None))) and str(job["container"]).isascii()
        assert all(isinstance(line, str) for line in [*job["hosts"], *job["tail"], *job["traceback"]])
        assert json.loads(json.dumps(job, allow_nan=False)) == job


@pytest.mark.parametrize("text", ['{"state": "running"}', "{}", '{"state": "running", "container": "c", "run": 1}'])
def test_missing_fields_are_one_error(jobs: Path, text: str) -> None:
    (jobs / "digits" / "state.json").write_text(text)
    with pytest.raises(JobError) as caught:
        call(jobs, Engine())
    one_line(caught, "digits/state.json is damaged", "missing")
    stops = _job_table.to_stop({"gpu1": {"jobs": [look(jobs)]}}, "digits")
    assert not stops["anything"] and "does not run" not in " ".join(stops["lines"])
    assert stops["unreadable"][0].startswith("gpu1: job digits: ")


def test_a_stop_that_failed_is_not_told_as_stopped() -> None:
    running = {"name": "digits", "state": "running", "leader": True, "run": 1, "log_path": "/l"}
    stops = _job_table.to_stop({"gpu1": {"jobs": [running]}}, "digits")
    failed = [{"item": {"name": "digits", "node": "gpu1"}, "failed": True, "msg": "state.json is damaged"}]
    told = _job_table.stopped(stops, {"gpu1": failed}, previewed=False)
    assert told["lines"] == [] and "state.json is damaged" in told["problems"][0]
    assert _job_table.stopped(stops, {}, previewed=False)["lines"] == []  # it did not answer at all


DEEP = b'{"state": "running", "tail": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
NEVER_LOST = b'{"state": "running", "run": 1, "container": "c", "container_id": "id1", "heartbeat": NaN}'


@pytest.mark.parametrize("data", [DEEP, b"\xff\xfe{", b"null", b'"running"', b'{"state": ["running"]}', b"{" * 50])
def test_what_is_no_state_hides_no_other_job(jobs: Path, data: bytes) -> None:
    (jobs / "digits" / "state.json").write_bytes(data)
    assert _node_io.job_facts(str(jobs)) == {"digits": "unreadable"}
    assert look(jobs)["state"] == "unreadable"
    assert NodeFolder(str(jobs), "digits", "gpu1", 1 << 20).run() in ({}, dict.fromkeys(("run", "run_id", "started_at")))


def test_a_heartbeat_that_is_no_number_does_not_keep_a_job_alive(jobs: Path) -> None:
    (jobs / "digits" / "state.json").write_bytes(NEVER_LOST)
    engine = Engine(Container("id1", "t0", True, {"/jobs": str(jobs)}))
    with pytest.raises(JobError, match="heartbeat is not a time"):
        call(jobs, engine, observe=True)


def plant(place: Path, what: str, victim: Path) -> None:
    place.unlink(missing_ok=True)
    if what == "link":
        place.symlink_to(victim)
    elif what == "pipe":
        os.mkfifo(place)
    else:
        with place.open("wb") as file:
            file.truncate(1 << 30)


READERS: dict[str, Callable[[Path], Any]] = {
    "node_facts": lambda jobs: _node_io.job_facts(str(jobs)),
    "read_state": lambda jobs: Store(str(jobs), "digits").read_state(),
    "read_spec": lambda jobs: Store(str(jobs), "digits").read_spec(),
    "read_log": lambda jobs: Store(str(jobs), "digits").read_log(0, 65536, True),
    "training_job": lambda jobs: call(jobs, Engine(), observe=True),
    "training_job_info": look,
    "job_logs": lambda jobs: NodeFolder(str(jobs), "digits", "gpu1", 1 << 20).run(),
}


@pytest.mark.parametrize("what", ["link", "pipe", "sparse"])
@pytest.mark.parametrize("name", ["state.json", "spec.json", "summary.json", "launcher.log"])
def test_no_reader_follows_waits_or_fills_the_memory(jobs: Path, victim: Path, name: str, what: str) -> None:
    victim.write_text(json.dumps({**STATE, "state": "failed", "reason": SECRET, "spec": {"environment": {"A": SECRET}}}))
    plant(jobs / "digits" / name, what, victim)
    begun = time.monotonic()
    for read in READERS.values():
        try:
            said = repr(read(jobs))
        except JobError as error:
            said = str(error)
            assert said.isprintable() and "emedy: " in said
        assert SECRET not in said and len(said) < 1 << 20
    assert time.monotonic() - begun < 2


def test_names_that_no_job_can_have_are_not_told(jobs: Path) -> None:
    for name in ("\x1b[2J", "a\nb", "{{ 7*7 }}", "-x", "x" * 200):
        (jobs / name).mkdir()
        (jobs / name / "state.json").write_text(json.dumps(STATE))
    assert list(_node_io.job_facts(str(jobs))) == ["digits"]
    assert JobsReader(str(jobs), {}).names() == ["digits"]


def test_no_control_character_reaches_the_console(jobs: Path) -> None:
    evil = "\x1b]0;owned\x07\u202e\x9b2J"
    forge(jobs, state="failed", reason=evil, first_failure={"node": "gpu1", "cause": evil, "remedy": evil})
    (jobs / "digits" / "launcher.log").write_text(f"{evil}\n")
    seen = look(jobs)
    shown = _job_table.table({"gpu1": {"jobs": [seen]}})
    assert all("\x1b" not in line and "\x9b" not in line and "\u202e" not in line for line in shown)
    assert "\x1b" not in json.dumps(call(jobs, Engine(), observe=True)["job"], ensure_ascii=False)


def test_a_summary_with_other_kinds_of_values_breaks_no_table(jobs: Path) -> None:
    ended = {**STATE, "state": "failed"}
    forge(jobs, state="failed")
    for change in ({"members": ["x"]}, {"figures": [1]}, {"first_failure": "x"}, {"first_failure": {"cause": []}}):
        (jobs / "digits" / "summary.json").write_text(json.dumps({**ended, **change}))
        assert _job_table.table({"gpu1": {"jobs": [look(jobs)]}})


# --- what is written


def link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def prepare(jobs: Path) -> None:
    Store(str(jobs), "digits").prepare(SPEC, {"state": "starting"})


WRITERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "the new state's temporary name": (
        "digits/state.json.new",
        lambda jobs: Store(str(jobs), "digits").write_state({"state": "stopped"}),
    ),
    "the state itself": ("digits/state.json", lambda jobs: Store(str(jobs), "digits").write_state({"state": "stopped"})),
    "a request to stop": ("digits/stop", lambda jobs: Store(str(jobs), "digits").ask_to_stop()),
    "the specification": ("digits/spec.json.new", prepare),
    "the supervisor, made between": ("digits/_job_part.py.new", prepare),
    "an earlier run": ("digits/runs/0001/launcher.log", prepare),
}


@pytest.mark.parametrize("row", WRITERS)
def test_nothing_is_written_through_a_link(jobs: Path, victim: Path, row: str) -> None:
    path, write = WRITERS[row]
    (jobs / path).unlink(missing_ok=True)
    (jobs / "digits" / "launcher.log").write_text("log")
    for target in (victim, victim.parent / "new"):
        with contextlib.suppress(FileNotFoundError):
            (jobs / path).unlink()
        link(jobs / path, target)
        with contextlib.suppress(JobError):
            write(jobs)
    assert victim.read_text() == SECRET and sorted(victim.parent.iterdir()) == [victim]


@pytest.mark.parametrize("place", ["digits", "digits/runs", "digits/runs/0001"])
def test_no_folder_is_made_or_written_through_a_link(jobs: Path, victim: Path, place: str) -> None:
    (jobs / "digits" / "launcher.log").write_text("log")
    if place == "digits":
        (jobs / "digits").rename(jobs / "moved")
    link(jobs / place, victim.parent)
    mode = victim.parent.stat().st_mode
    with pytest.raises(JobError) as caught:
        prepare(jobs)
    one_line(caught, f"{jobs}/{place} is a link")
    assert sorted(victim.parent.iterdir()) == [victim] and victim.parent.stat().st_mode == mode


def test_removing_a_job_goes_through_no_link_and_any_depth(jobs: Path, victim: Path) -> None:
    inner = jobs / "digits"
    handle = os.open(inner, os.O_RDONLY)
    for dummy in range(1500):
        os.mkdir("d", dir_fd=handle)  # noqa: PTH102  # deeper than a path can be long
        deeper = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = deeper
    os.symlink(victim.parent, "out", dir_fd=handle)  # noqa: PTH211
    os.close(handle)
    (inner / "out").symlink_to(victim.parent)
    Store(str(jobs), "digits").remove()
    assert list(jobs.iterdir()) == [] and victim.read_text() == SECRET


def test_a_lock_that_the_container_holds_keeps_nobody_waiting(jobs: Path) -> None:
    handle = os.open(jobs, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with Store(str(jobs), "digits").lock():
        pass
    os.close(handle)


def test_a_number_of_a_run_makes_no_other_folder(tmp_path: Path) -> None:
    copy = Copy(str(tmp_path / "here"), "digits", "gpu1")
    copy.path.mkdir(parents=True)
    for run in ("../../../x", -1, 10**30, [1], float("nan")):
        (copy.path / "state.json").write_text(json.dumps({"run": run, "run_id": "a", "started_at": "t"}))
        copy.turn({"run": 2, "run_id": "b", "started_at": "t"})
        names = sorted(path.name for path in (copy.path / "runs").iterdir())
        assert names == ["0000"] and sorted(path.name for path in tmp_path.iterdir()) == ["here"]
