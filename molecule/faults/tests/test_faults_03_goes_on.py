"""What a job outlives, and how it goes on: containers and nodes that restart, a controller that goes away."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from typing import Any

import pytest

from tests.fault_runs import (
    CHECKPOINTS,
    DIGITS,
    STEPS,
    alive,
    back,
    clean,
    everybody_known,
    forget,
    log,
    machine,
    note,
    state,
    wait,
)
from tests.playbook_run import NODES, ROOT, command, container, environment, inside, on, playbook, variables

LAST = "digits: epoch 8/8"


def steps_done() -> int:
    """Optimizer steps that the checkpoint of the last epoch knows of."""
    file = f"{CHECKPOINTS}/epoch08/mp_rank_00_model_states.pt"
    read = f"import torch; print(torch.load('{file}', weights_only=False)['global_steps'])"
    return int(inside("lab1", f'python3 -c "{read}"').split()[-1])


def final_lines() -> str:
    """Loss and accuracy of the last epoch."""
    return str(re.findall(rf"{LAST} (.*)", log())[-1])


@pytest.fixture(scope="module")
def undisturbed() -> tuple[int, str]:
    """Steps and last figures of a run that nothing happens to."""
    forget()
    playbook("launch", *variables(**DIGITS)).done(change=True)
    return steps_done(), final_lines()


def trains(**values: Any) -> None:
    """Start digits, and wait for the second epoch."""
    requested = {**DIGITS, "deepspeed_launch_follow": False, **values}
    playbook("launch", *variables(**requested)).done(change=True)
    wait(lambda: "rank 0: digits: epoch 2/8" in log(), 300)


def went_on(fault: str, undisturbed: tuple[int, str], since: float) -> None:
    """Wait until the job has succeeded after one restart, having done as many steps as without."""
    wait(lambda: state()["state"] == "succeeded", 400)
    took = time.time() - since
    found = state()
    assert len(found["restarts"]) == 1, found["restarts"]
    assert found["restarts"][0]["resumed_from"].startswith("epoch")
    assert "digits: going on after epoch" in log()
    assert (steps_done(), final_lines()) == undisturbed
    note(f"| {fault} | direct | | succeeded after {took:.0f} s | {found['restarts'][0]['reason']} |")
    clean(found["master_port"])


@pytest.mark.parametrize("where", ["lab2", "lab1"])
def test_a_container_that_is_restarted(where: str, undisturbed: tuple[int, str]) -> None:
    trains()
    since = time.time()
    on(where, f"docker restart -t 1 {container(where)}")
    went_on(f"the container of {where} is restarted", undisturbed, since)


@pytest.mark.parametrize("how", ["rebooted", "switched off and on"])
def test_the_manager_and_node_of_rank_0_is(how: str, undisturbed: tuple[int, str]) -> None:
    trains()
    since = time.time()
    if how == "rebooted":
        machine("lab1", "restart", "--time", "90")
    else:
        machine("lab1", "kill")
        time.sleep(5)
        machine("lab1", "start")
    back("lab1")
    went_on(f"the manager, with rank 0, is {how}", undisturbed, since)


def test_a_node_that_stays_away_is_left_out() -> None:
    forget()
    config = {**DIGITS["deepspeed_launch_ds_config"], "gradient_accumulation_steps": 2}
    trains(deepspeed_launch_ds_config_preset="zero0", deepspeed_launch_ds_config=config, deepspeed_launch_shrink=True)
    since = time.time()
    machine("lab3", "kill")
    try:
        wait(lambda: state()["state"] == "succeeded", 700)
        took = time.time() - since
        found = state()
    finally:
        machine("lab3", "start")
        back("lab3")
    assert found["shrunk_from"] == {"world_size": 3, "nodes": 3, "left_out": ["lab3"]}
    assert found["world_size_expected"] == found["world_size_seen"] == 2
    reported = (
        "lab3 did not come back within 300 s. The job goes on without: 2 instead of 3 ranks: "
        "gradient_accumulation_steps 2 becomes 3, so train_batch_size stays 96 and the micro batch 16"
    )
    assert reported in log()
    assert "digits: going on after epoch" in log() and LAST in log()
    why = found["restarts"][0]["reason"]
    note(f"| lab3 is switched off and stays so | direct | | succeeded without it after {took:.0f} s | {why} |")
    everybody_known()
    clean(found["master_port"], ("lab1", "lab2"))
    # Back too late: its supervisor looks for a leader that has ended, for as long as that could take to reboot.
    wait(lambda: alive("lab3") == [], 400)


def on_a_terminal(until: str, *arguments: str) -> tuple[int, str]:
    """Run launch.yml on a terminal of its own, press Ctrl-C when it prints that text; return how it ended."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", *command("launch", *arguments)],
        cwd=ROOT,
        env=environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    printed, pressed, deadline = b"", False, time.monotonic() + 600  # on a busy machine
    try:
        while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            printed += os.read(ours, 65536)
            if not pressed and until.encode() in printed:
                os.write(ours, b"\x03")
                pressed = True
    except OSError:  # what Linux reports when no process has the other end any more
        pass
    os.close(ours)
    try:
        code = process.wait(timeout=60)
    finally:
        process.kill()
    assert pressed, printed.decode()
    return code, printed.decode()


def test_ctrl_c_ends_the_view_and_not_the_job() -> None:
    job = variables(**STEPS | {"deepspeed_launch_args": ["--steps", "250"]})
    code, shown = on_a_terminal("step 5/250", *job)
    assert code != 0, shown
    assert "Traceback" not in shown, shown
    assert "Ctrl-C ends only this view" in " ".join(shown.split())
    left = state()
    assert left["state"] == "running"
    again = playbook("launch", *job).done()  # what it changes: logs come to the controller
    assert f"Job fault is running since {left['started_at']}" in again.text
    assert "Job fault succeeded: 3 rank(s) on 3 node(s)." in again.text
    assert "step 250/250" in again.output
    after = state()
    assert (after["state"], after["pid"], after["started_at"]) == ("succeeded", left["pid"], left["started_at"])
    assert not any(alive(name) for name in NODES)
