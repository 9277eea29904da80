# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Root in a container attacks the host through /jobs: one attack a test, made with the files that it can write there.

The victim of each is a file or folder beside the shared one, which only the host has. The engine is a stand-in. Attacks
by what is read are in test_folders_read.py, those through the workspace in test_folders_workspace.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.log_files_io import Copy
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.resource import Container, JobError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runner_io import RunStore
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.runtimes import HostRuntime

from tests.adversary.job_attacks import SECRET, SPEC, Engine, call, forge, gather, one_line

# --- host root runs nothing from such a folder


@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_the_host_runs_no_supervisor_of_the_container(jobs: Path, tmp_path: Path, state: str) -> None:
    owned = tmp_path / "owned"
    (jobs / "digits" / "supervisor.pyz").write_text(f"open({str(owned)!r}, 'w')\n")
    forge(
        jobs,
        runtime="host",
        container=None,
        heartbeat=time.time() - 60,
        container_started_at=HostRuntime.here().started_at,
    )
    with contextlib.suppress(JobError):
        call(jobs, Engine(Container("id1", "t0", True, {"/jobs": str(jobs)})), state=state, container="c")
    assert not owned.exists()


def test_a_forged_runtime_is_one_error_and_nothing_runs_on_the_host(jobs: Path) -> None:
    forge(jobs, runtime="host")
    with pytest.raises(JobError) as caught:
        call(jobs, Engine(), observe=True)
    one_line(caught, f"{jobs}/digits/state.json", "says that the job runs on the host", "stop.yml")
    assert gather(jobs)["state"] == "unreadable"
    # Stopped, it is swept in the container that has its folder, and in no other place.
    inside = Engine(Container("id1", "t0", True, {"/jobs": str(jobs)}))
    assert call(jobs, inside, container="c")["job"]["state"] == "absent"
    assert [where for where, dummy in inside.launched] == ["id1"]


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


# --- what is written


def link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def prepare(jobs: Path) -> None:
    RunStore(str(jobs), "digits").prepare(SPEC, {"state": "starting"})


WRITERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "the new state's temporary name": (
        "digits/state.json.new",
        lambda jobs: RunStore(str(jobs), "digits").write_state({"state": "stopped"}),
    ),
    "a request to stop": ("digits/stop", lambda jobs: RunStore(str(jobs), "digits").ask_to_stop()),
    "the specification": ("digits/spec.json.new", prepare),
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
        os.mkdir("d", dir_fd=handle)  # deeper than a path can be long
        deeper = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = deeper
    os.symlink(victim.parent, "out", dir_fd=handle)
    os.close(handle)
    (inner / "out").symlink_to(victim.parent)
    try:
        RunStore(str(jobs), "digits").remove()
        assert list(jobs.iterdir()) == [] and victim.read_text() == SECRET
    finally:  # pytest's own cleaning up does not go so deep
        subprocess.run(["rm", "-rf", str(inner)], check=True)


def test_a_lock_that_the_container_holds_keeps_no_one_waiting(jobs: Path) -> None:
    handle = os.open(jobs, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with RunStore(str(jobs), "digits").lock():
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
