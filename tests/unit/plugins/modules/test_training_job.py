# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One call of training_job against a fake engine, a real folder and no supervisor."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.api_io import EngineError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runner_io import RunStore
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runtimes import HostRuntime
from ansible_collections.swarmspeed.cluster.plugins.modules import training_job
from ansible_collections.swarmspeed.cluster.plugins.modules.training_job import Call


class FakeRuntime:
    """A container whose supervisor reports ``becomes`` as soon as it is launched."""

    def __init__(self, jobs: Path, becomes: str = "running", present: bool = True) -> None:
        self.jobs, self.becomes = jobs, becomes
        self.found = Container("id1", "t0", True, {"/jobs": str(jobs)}) if present else None
        self.launched: list[list[str]] = []
        self.requested = 0

    def container(self, name: str) -> Container | None:
        self.requested += 1
        return self.found

    def launch(self, container: str, command: list[str]) -> str:
        self.launched.append(command)
        if "--sweep" not in command:
            write_state(self.jobs, state=self.becomes, heartbeat=time.time())
            (self.jobs / "digits" / "launcher.log").write_text("one\nhf_s3cret\n")
        return "handle"

    def exited(self, handle: str) -> int | None:
        return 0


def write_state(jobs: Path, **change: Any) -> None:
    path = jobs / "digits" / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


def params(jobs: Path, **change: Any) -> dict[str, Any]:
    return {
        "name": "digits",
        "state": "started",
        "container": "c",
        "jobs_dir": str(jobs),
        "container_jobs_dir": "/jobs",
        "command": ["deepspeed", "train.py"],
        "chdir": None,
        "environment": {"HF_TOKEN": "hf_s3cret"},
        "world_size": 3,
        "nodes": 3,
        "fingerprint": {"image": "sha256:1"},
        "ds_config": None,
        "launcher": "deepspeed",
        "transport": "pdsh",
        "runtime": "container",
        "members": None,
        "node": None,
        "leader": None,
        "secret_file": None,
        "visible_devices": None,
        "env_file": None,
        "master_port": 0,
        "stall_timeout": 0,
        "hang_after": 0,
        "on_hang": "report",
        "resume": "never",
        "resume_args": [],
        "checkpoints": None,
        "restarts": 3,
        "shrink": False,
        "versions": {},
        "code": None,
        "files": {},
        "digests": {},
        "image_built": False,
        "rerun": False,
        "observe": False,
        "log_offset": 0,
        "log_limit": 65536,
        **change,
    }


def call(runtime: FakeRuntime, check_mode: bool = False, **change: Any) -> dict[str, Any]:
    return Call(params(runtime.jobs, **change), check_mode, {"container": runtime, "host": HostRuntime()}).run()


def test_start_then_nothing_to_do(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    result = call(runtime)
    assert result["changed"] is True
    assert (result["job"]["state"], result["job"]["run"]) == ("running", 1)
    assert result["diff"]["before"] == {"state": "absent", "spec_hash": None}
    assert result["diff"]["after"] == {"state": "running", "spec_hash": result["job"]["spec_hash"]}
    again = call(runtime, rerun=True)  # running: there is nothing to run again
    assert again["changed"] is False
    assert again["diff"]["before"] == again["diff"]["after"]
    assert len(runtime.launched) == 1


def test_no_secret_in_what_is_returned(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    for result in (call(runtime), call(runtime, observe=True, environment={})):
        assert "hf_s3cret" not in json.dumps(result)
        assert result["log"] == "one\n********\n"
        assert result["log_offset"] == result["log_size"] == 14


@pytest.mark.parametrize(
    ("state", "rerun", "starts"),
    [("succeeded", False, 0), ("succeeded", True, 1), ("failed", False, 1), ("stopped", False, 1)],
)
def test_a_finished_job_with_the_same_specification(tmp_path: Path, state: str, rerun: bool, starts: int) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime)
    write_state(tmp_path, state=state)
    requested = runtime.requested
    assert call(runtime, check_mode=True, rerun=rerun)["changed"] is bool(starts)
    assert runtime.requested == requested  # the engine has nothing to say about a finished job
    result = call(runtime, rerun=rerun)
    assert result["changed"] is bool(starts)
    assert result["job"]["state"] == ("running" if starts else state)
    assert len(runtime.launched) == 1 + starts
    assert (tmp_path / "digits/runs/0001/launcher.log").exists() is bool(starts)


def test_another_specification_while_running_is_refused(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime)
    before = (tmp_path / "digits/spec.json").read_text()
    for check_mode in (True, False):
        with pytest.raises(JobError) as caught:
            call(runtime, check_mode=check_mode, world_size=4, environment={"HF_TOKEN": "hf_other"})
        assert "it is running in container c since" in str(caught.value)
        assert "differs: environment.HF_TOKEN, world_size" in str(caught.value)
        assert f"touch {tmp_path}/digits/stop" in str(caught.value)
        assert "hf_" not in str(caught.value)
    assert len(runtime.launched) == 1
    assert (tmp_path / "digits/spec.json").read_text() == before


def judged(runtime: FakeRuntime, **change: Any) -> tuple[str, str]:
    """What a call would do, and its warning."""
    made = Call(params(runtime.jobs, **change), True, {"container": runtime, "host": HostRuntime()})
    return made.run()["todo"], made.warning


@pytest.mark.parametrize("state", ["running", "succeeded"])
def test_a_job_of_another_release_is_the_same_in_the_image_that_this_one_builds(tmp_path: Path, state: str) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime)
    write_state(tmp_path, state=state)
    (tmp_path / "digits/supervisor.pyz").write_bytes(b"of another release")
    other = {"fingerprint": {"image": "sha256:2"}, "image_built": True}
    assert judged(runtime, **other) == (
        "none",
        "Job digits was started by another release of this collection, in image sha256:1, and counts as the same job. "
        "To run it in sha256:2, which this release builds, set deepspeed_launch_rerun: true",
    )
    assert judged(runtime, image_built=True) == ("none", "")  # nothing differs
    # Whoever asks for anything else, or has an image of their own, gets what they ask for.
    for requested in ({**other, "image_built": False}, {**other, "command": ["deepspeed", "other.py"]}):
        if state == "running":
            with pytest.raises(JobError, match="with another specification"):
                judged(runtime, **requested)
        else:
            assert judged(runtime, **requested) == ("start", "")
    assert judged(runtime, **other, rerun=True)[0] == ("none" if state == "running" else "start")


@pytest.mark.parametrize(("image_built", "resuming"), [(True, True), (False, False)])
def test_a_job_that_was_stopped_for_an_upgrade_goes_on(tmp_path: Path, image_built: bool, resuming: bool) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime, resume="auto")
    write_state(tmp_path, state="stopped")
    (tmp_path / "digits/supervisor.pyz").write_bytes(b"of another release")
    call(runtime, resume="auto", fingerprint={"image": "sha256:2"}, image_built=image_built)
    request = json.loads((tmp_path / "digits/spec.json").read_text())
    assert request["options"]["resuming"] is resuming
    assert request["spec"]["fingerprint"] == {"image": "sha256:2"}


def test_a_job_of_this_release_is_another_one_in_another_image(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime)
    with pytest.raises(JobError, match=r"differs: fingerprint\.image"):
        judged(runtime, fingerprint={"image": "sha256:2"}, image_built=True)


def test_a_lost_job_is_reported_and_started_again(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime)
    write_state(tmp_path, heartbeat=time.time() - 60)
    seen = call(runtime, observe=True)
    assert (seen["changed"], seen["job"]["state"]) == (False, "lost")
    assert "no sign of life" in seen["job"]["reason"]
    assert call(runtime)["job"]["run"] == 2


def test_check_mode_on_a_virgin_host_predicts_and_touches_nothing(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path / "none", present=False)
    result = call(runtime, check_mode=True)
    assert (result["changed"], result["job"]["state"]) == (True, "absent")
    assert result["diff"]["after"]["state"] == "running"
    assert call(runtime, state="absent")["changed"] is False
    assert call(runtime, state="stopped")["changed"] is False
    assert runtime.requested == 0
    assert not (tmp_path / "none").exists()


def test_stop_and_remove(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime)
    write_state(tmp_path, heartbeat=0)  # lost, so that no supervisor is waited for
    result = call(runtime, state="stopped")
    assert (result["changed"], result["job"]["state"]) == (True, "stopped")
    assert runtime.launched[-1][-1] == "--sweep"
    assert call(runtime, state="stopped")["changed"] is False
    assert call(runtime, state="absent", check_mode=True)["changed"] is True
    assert (tmp_path / "digits").exists()
    assert call(runtime, state="absent")["job"]["state"] == "absent"
    assert not (tmp_path / "digits").exists()
    assert call(runtime, state="absent")["changed"] is False


def on_host(jobs: Path, **change: Any) -> RunStore:
    """A record as the host's own supervisor would leave it."""
    jobs.mkdir(exist_ok=True)
    store = RunStore(str(jobs), "digits", on_host=True)
    known = {"started_at": "2026-11-22T09:00:05Z", "container": None, "container_id": "host", "spec_hash": "other"}
    store.prepare({"command": ["x"], "environment": {}}, {"state": "succeeded", **known, **change})
    return store


def test_a_job_of_the_host_that_runs_is_not_started_in_a_container(tmp_path: Path) -> None:
    runtime, here = FakeRuntime(tmp_path / "jobs"), HostRuntime.here()
    on_host(tmp_path / "jobs", state="running", heartbeat=time.time(), container_started_at=here.started_at)
    (tmp_path / "jobs/digits").mkdir()
    (tmp_path / "jobs/digits/state.json").write_text('{"state": "failed"}')  # the host's word goes before a container's
    assert call(runtime, observe=True)["job"]["state"] == "running"
    with pytest.raises(JobError, match="it is running in container None since"):
        call(runtime)
    assert runtime.launched == [] and runtime.requested == 0


def test_a_job_goes_from_the_host_into_a_container_and_its_record_with_it(tmp_path: Path) -> None:
    runtime, store = FakeRuntime(tmp_path / "jobs"), on_host(tmp_path / "jobs")
    result = call(runtime)
    assert (result["job"]["state"], result["job"]["runtime"]) == ("running", "container")
    assert runtime.launched == [["python3", "-B", "/jobs/digits/supervisor.pyz", "/jobs/digits"]]
    assert (store.path / "runs/0001/state.json").exists() and not store.recorded()
    assert RunStore.of(str(tmp_path / "jobs"), "digits").on_host is False
    assert not (tmp_path / "host_jobs/digits/supervisor.pyz").exists()


def _as_a_link(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/etc/passwd")


def _as_a_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    (path / "below").mkdir(parents=True)


WHOLE = {
    "state.json": json.dumps({"state": "succeeded", "run": 3, "container": "c", "container_id": "id1"}),
    "spec.json": json.dumps({"spec": {}}),
    "launcher.log": "one\n",
}
DAMAGE = {
    "garbage": lambda path: path.write_text("{"),
    "empty": lambda path: path.write_text(""),
    "a list": lambda path: path.write_text("[]"),
    "binary": lambda path: path.write_bytes(b"\xff\x00" * 50),
    "huge": lambda path: path.write_text("[" * 200_000),
    "a link": _as_a_link,
    "a folder": _as_a_folder,
}
FIELDS = {"a field": '{"state": "running", "run": "x"}', "missing": '{"state": "running"}', "no state": "{}"}
DAMAGED = [
    *(("state.json", damage) for damage in [*DAMAGE, *FIELDS]),
    *(("spec.json", damage) for damage in DAMAGE),
    *(("launcher.log", damage) for damage in ("a link", "a folder")),
]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(("name", "damage"), DAMAGED)
def test_stopping_a_job_with_damaged_files_ends_what_runs_and_puts_them_aside(
    name: str, damage: str, check_mode: bool, tmp_path: Path
) -> None:
    runtime, folder = FakeRuntime(tmp_path), tmp_path / "digits"
    folder.mkdir()
    for one, text in WHOLE.items():
        (folder / one).write_text(text)
    if damage in FIELDS:
        (folder / name).write_text(FIELDS[damage])
    else:
        DAMAGE[damage](folder / name)
    result = call(runtime, state="stopped", check_mode=check_mode)
    assert (result["changed"], result["todo"]) == (True, "stop")
    if check_mode:
        assert runtime.launched == [] and not (folder / "runs").exists()
        return
    assert runtime.launched == [["python3", "-B", "/jobs/digits/supervisor.pyz", "/jobs/digits", "--sweep"]]
    assert result["job"]["state"] == "absent" and not (folder / name).exists()
    assert call(runtime, state="stopped")["changed"] is False
    # What is no file of a job's is not kept; the rest lies where earlier runs do.
    (aside,) = (folder / "runs").iterdir()
    assert (aside / name).exists() is (damage not in ("a link", "a folder"))
    # And the job can be started, which none of it hinders.
    assert call(runtime)["job"]["state"] == "running"


def test_without_its_container_nothing_of_a_damaged_job_runs(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path, present=False)
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "state.json").write_text("{")
    assert call(runtime, state="stopped")["job"]["state"] == "absent"
    assert runtime.launched == []


def test_no_container_that_has_another_folder_is_entered_for_a_damaged_job(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    runtime.found = Container("id1", "t0", True, {"/jobs": "/else"})
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "state.json").write_text("{")
    call(runtime, state="stopped")
    assert runtime.launched == []


def test_a_damaged_folder_can_be_removed_and_nothing_else(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "state.json").write_text("{")
    with pytest.raises(JobError, match=r"stop\.yml -e deepspeed_launch_name=digits"):
        call(runtime)
    assert call(runtime, state="absent")["changed"] is True
    assert not (tmp_path / "digits").exists()


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "container: c does not exist on this host. Bring it up first"),
        (Container("id1", "t0", False, {}), "container: c does not run on this host. Bring it up first"),
        (Container("id1", "t0", True, {}), "is not what container c has at /jobs (no mount)"),
        (Container("id1", "t0", True, {"/jobs": "/else"}), "is not what container c has at /jobs (/else)"),
    ],
)
def test_a_container_that_cannot_hold_the_job(tmp_path: Path, found: Container | None, says: str) -> None:
    runtime = FakeRuntime(tmp_path)
    runtime.found = found
    with pytest.raises(JobError) as caught:
        call(runtime)
    assert says in str(caught.value)
    assert list(tmp_path.iterdir()) == []


MEMBERS = [{"name": name, "address": name, "slots": [0]} for name in ("gpu1", "gpu2", "gpu3")]


def test_versions_are_kept_and_make_no_other_job(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    call(runtime, versions={"python": "3.11.2", "torch": "2.13.0"})
    assert json.loads((tmp_path / "digits/state.json").read_text())["versions"]["torch"] == "2.13.0"
    assert call(runtime, versions={"torch": "2.14.0"})["changed"] is False


def test_a_job_that_may_shrink_reports_it_to_its_supervisor(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path)
    shrink: dict[str, Any] = {"shrink": True, "resume": "auto", "members": MEMBERS}
    shrink.update(secret_file="/key", transport="direct")
    assert call(runtime, **shrink, command=["deepspeed", "--hostfile", "@hostfile@", "train.py"])["changed"] is True
    assert json.loads((tmp_path / "digits/spec.json").read_text())["options"]["shrink"] is True
    assert [item["first_rank"] for item in call(runtime, observe=True)["job"]["members"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"resume": "never"}, "shrink: true is for a job that is started again. Set resume: auto, or shrink: false."),
        ({"members": None}, "shrink: true needs members, as nodes and batch change when a node is left out."),
        (
            {"command": ["deepspeed", "--hostfile", "/etc/hostfile"], "ds_config": "/c.json"},
            "shrink: true needs @hostfile@ and @ds_config@ as an argument of the command, as nodes",
        ),
        ({"launcher": "torchrun"}, "shrink: true needs @nodes@ as an argument of the command, as nodes"),
    ],
)
def test_a_job_that_cannot_shrink(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    given = {"shrink": True, "resume": "auto", "members": MEMBERS, "command": ["deepspeed", "@hostfile@"], **change}
    with pytest.raises(JobError) as caught:
        call(FakeRuntime(tmp_path), **given)
    assert str(caught.value).startswith(says)
    assert list(tmp_path.iterdir()) == []


def test_log_limit(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="log_limit: 0 is not within 1 and 1048576 bytes"):
        call(FakeRuntime(tmp_path), log_limit=0)


def run_main(capsys: pytest.CaptureFixture[str], args: dict[str, Any]) -> dict[str, Any]:
    with patch_module_args(args), pytest.raises(SystemExit):
        training_job.main()
    reply: dict[str, Any] = json.loads(capsys.readouterr().out)
    return reply


def test_main_hides_the_environment_and_names_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], invocation_requested: dict[str, Any]
) -> None:
    args = {"name": "digits", "jobs_dir": str(tmp_path), "environment": {"PLAIN": "s3cret"}}
    reply = run_main(capsys, {**args, **invocation_requested})
    assert reply["failed"] is True
    assert reply["msg"] == "To start a job, give also: container, command, world_size, nodes."
    assert reply["invocation"]["module_args"]["environment"] == {"PLAIN": "(not shown)"}
    assert "s3cret" not in json.dumps(reply)


def test_main_turns_errors_into_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = run_main(capsys, {"name": "A", "jobs_dir": str(tmp_path), "state": "stopped"})
    assert reply["msg"].startswith("training job A: name: 'A' is not a name for a job.")

    def down(*_args: object) -> None:
        raise EngineError("no answer from the Docker engine")

    monkeypatch.setattr(Call, "run", down)
    reply = run_main(capsys, {"name": "a", "jobs_dir": str(tmp_path), "state": "stopped"})
    assert reply["msg"] == "training job a: no answer from the Docker engine"


def test_a_job_keeps_the_code_and_the_files_that_it_was_started_with(tmp_path: Path) -> None:
    """Not as parts of its specification: a job that an earlier release has started is the same job."""
    runtime = FakeRuntime(tmp_path)
    etc = tmp_path / "etc"
    etc.mkdir()
    (etc / "hostfile").write_text("gpu1 slots=1\n")
    names = {"/etc/swarmspeed/hostfile": f"{etc}/hostfile", "/etc/swarmspeed/none": f"{etc}/none"}
    started = call(runtime, code="a" * 64, files=names, digests={"code": "a" * 64})
    (etc / "hostfile").write_text("a later job's")
    folder = runtime.jobs / "digits"
    assert (folder / "hostfile").read_text() == "gpu1 slots=1\n"
    request = json.loads((folder / "spec.json").read_text())
    assert request["options"]["files"] == {"/etc/swarmspeed/hostfile": "hostfile"}
    assert (request["options"]["code"], request["options"]["digests"]) == ("a" * 64, {"code": "a" * 64})
    assert "a" * 64 not in json.dumps(request["spec"])
    assert call(runtime)["todo"] == "none"
    assert call(runtime)["job"]["spec_hash"] == started["job"]["spec_hash"]
