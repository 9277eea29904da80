"""The job: started once for a specification, judged by what it did, detached from the playbook that started it."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import Any

import pytest

from tests.playbook_run import ETC, JOBS, NODES, ROOT, Run, job, on, playbook, site, start, variables, whole

# A job of its own name beside the lab's, so that the lab's stays as it is and the cluster stays whole.
SHORT: dict[str, Any] = {
    "deepspeed_launch_name": "short",
    "deepspeed_launch_args": ["--epochs", "1", "--target", "0", "--checkpoints="],
}
LONG: dict[str, Any] = {
    "deepspeed_launch_name": "long",
    "deepspeed_launch_args": ["--epochs", "100000", "--target", "0", "--checkpoints="],
}


def launch(**values: Any) -> Run:
    return playbook("launch", *variables(**values))


def wait_for(name: str, state: str, seconds: float = 60) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while (found := job(name))["state"] != state:
        assert time.monotonic() < deadline, found
        time.sleep(0.5)
    return found


def runs(name: str) -> list[str]:
    return on("lab1", f"ls {JOBS}/{name}/runs 2>/dev/null; true").split()


def test_another_argument_is_another_run_and_the_old_log_stays() -> None:
    on("lab1", f"rm -rf {JOBS}/short")  # where the tests run a second time on the same lab
    first = launch(**SHORT).done(change=True)
    assert "Job short succeeded: 3 rank(s) on 3 node(s)." in first.text
    # Its log was shown as it grew, each line with its node.
    assert re.search(r"^lab1 \| digits: epoch 1/1 ", first.output, re.M)
    again = launch(**SHORT).done(change=False)
    assert re.search(r"Job short succeeded at \S+: not started again\.", again.text)
    assert runs("short") == []
    launch(**{**SHORT, "deepspeed_launch_args": ["--epochs", "2", "--target", "0", "--checkpoints="]}).done(change=True)
    assert runs("short") == ["0001"]
    assert "digits: epoch 1/1" in on("lab1", f"cat {JOBS}/short/runs/0001/launcher.log")
    assert "digits: epoch 2/2" in on("lab1", f"cat {JOBS}/short/launcher.log")


def test_a_target_that_is_missed_fails_the_playbook() -> None:
    missed = {
        "deepspeed_launch_name": "missed",
        "deepspeed_launch_args": ["--epochs", "1", "--target", "1.01", "--checkpoints="],
    }
    launch(**missed).refused(
        "Training job missed failed", f"Log: lab1:{JOBS}/missed/launcher.log", "target 1.01 MISSED"
    )
    assert job("missed")["state"] == "failed"
    # All logs are on the controller, those of the other nodes too.
    gathered = ROOT / "jobs" / "missed"
    assert "MISSED" in (gathered / "lab1" / "launcher.log").read_text()
    assert (gathered / "lab3" / "ranks" / "rank-00002.log").is_file()
    assert json.loads((gathered / "summary.json").read_text())["state"] == "failed"


def test_a_configuration_that_only_deepspeed_can_refuse_starts_no_rank() -> None:
    # GPUDirect Storage needs CUDA, which is the image's matter: our own checks let it pass.
    launch(
        **{**SHORT, "deepspeed_launch_name": "gds"},
        deepspeed_launch_ds_config={"train_micro_batch_size_per_gpu": 16, "aio": {"use_gds": True}},
    ).refused(
        "Training job gds failed: DeepSpeed 0.19.8 in this image refuses /etc/swarmspeed/ds_config.json for 3 rank(s): "
        "AssertionError: GDS currently only supported for CUDA accelerator."
    )
    assert (job("gds")["deepspeed_version"], job("gds")["world_size_seen"]) == ("0.19.8", None)


def test_a_job_that_needs_another_image_is_not_started_in_this_one() -> None:
    values = {**SHORT, "deepspeed_launch_name": "other", "training_image_python_packages": ["scikit-learn", "tqdm"]}
    run = launch(**values).refused("Remedy: run site.yml with the same variables; it creates image and container.")
    for name in NODES:
        assert f"{name}: container swarmspeed-{name} runs swarmspeed/swarmspeed:" in run.text
    assert on("lab1", f"ls {JOBS}/other 2>/dev/null; true") == ""


def test_a_job_on_some_hosts_alone() -> None:
    on("lab2", f"rm -rf {JOBS}/some")
    run = launch(**{**SHORT, "deepspeed_launch_name": "some"}, deepspeed_launch_include="lab3@lab2:0").done(change=True)
    assert "Job some succeeded: 2 rank(s) on 2 node(s)." in run.text
    state = json.loads(on("lab2", f"cat {JOBS}/some/state.json"))
    assert state["hosts"] == ["lab2", "lab3"]
    # The hostfile is that of the cluster, whatever one launch uses of it.
    assert on("lab1", f"cat {ETC}/hostfile").split() == ["lab1", "slots=1", "lab2", "slots=1", "lab3", "slots=1"]


@pytest.fixture
def stopped_afterwards() -> Any:
    yield
    playbook("stop", *variables(**LONG)).done(change=True)
    assert job("long")["state"] == "stopped"
    for name in NODES:
        assert on(name, "grep -lsz '^SWARMSPEED_JOB=/jobs/long$' /proc/[0-9]*/environ; true") == ""
    playbook("stop", *variables(**LONG)).done(change=False)


@pytest.mark.usefixtures("stopped_afterwards")
def test_a_job_outlives_the_playbook_that_started_it() -> None:
    launch(**LONG, deepspeed_launch_follow=False).done(change=True)
    started = wait_for("long", "running")
    # Another specification does not push it aside.
    launch(**{**LONG, "deepspeed_launch_args": ["--epochs", "7"]}).refused("Nothing was changed. Stop it first")
    # A run that follows it attaches; killing that run leaves the job alone.
    process = start("launch", *variables(**LONG))
    assert process.stdout
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if "digits: epoch" in line:
                break
        assert any("Job long is running since" in line for line in lines), "".join(lines)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    time.sleep(3)  # longer than a heartbeat
    shown = playbook("status").done(change=False)
    assert re.search(r"long\s+running\s+1", shown.output), shown.output
    now = job("long")
    assert (now["state"], now["started_at"], now["pid"]) == ("running", started["started_at"], started["pid"])


def test_the_jobs_left_the_cluster_whole() -> None:
    # Configurations of others were written meanwhile; the lab's own is there again, and its job is not run again.
    site().done()
    whole()
    assert job("digits")["state"] == "succeeded"
