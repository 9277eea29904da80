# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the tests of scenario ``faults`` share: a training job, ways to break a node, what must hold afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tests.engines import is_running
from tests.playbook_run import (
    JOBS,
    NODES,
    ROOT,
    Run,
    container,
    inside,
    lab_inventory,
    node,
    on,
    playbook,
    site,
    ssh,
    variables,
)

STEPS: dict[str, Any] = {
    "workspace_source": str(ROOT / "molecule" / "faults" / "scripts"),
    "deepspeed_launch_script": "steps.py",
    "deepspeed_launch_args": [],
    "deepspeed_launch_config_argument": "",
    "deepspeed_launch_name": "fault",
    "deepspeed_launch_logs_dir": str(ROOT / ".cache" / "faults"),
}
"""A job that only runs steps, and on one rank makes the requested fault."""
CHECKPOINTS = "/workspace/checkpoints/fault"
DIGITS: dict[str, Any] = {
    "deepspeed_launch_name": "fault",
    "deepspeed_launch_logs_dir": STEPS["deepspeed_launch_logs_dir"],
    "deepspeed_launch_args": ["--epochs", "8", "--target", "0.9", "--checkpoints", CHECKPOINTS],
    "deepspeed_launch_checkpoints": CHECKPOINTS,
    "deepspeed_launch_resume": "auto",
    "deepspeed_launch_resume_args": ["--resume", "@tag@"],
    "deepspeed_launch_ds_config": {
        "train_micro_batch_size_per_gpu": 16,
        "checkpoint": {"use_node_local_storage": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 2.0e-3, "weight_decay": 0.01, "torch_adam": True}},
    },
}
"""A job with checkpoints on disks that the nodes do not share, which resumes from them."""
NO_JOB = variables(deepspeed_launch_script="")
TRANSPORTS = ("direct", "pdsh")
FOLDER = f"{JOBS}/fault"
PROMISE = 30.0
"""Seconds within which a job has ended on every node, from when its fault was noticed."""
SILENCE = 15.0
"""Seconds that may pass before a fault is noticed: a node that says nothing counts as gone only after 10."""
STALL = 60
"""Seconds of silence after which a job counts as stalled here: on a busy machine importing torch is silent for long."""
TABLE = ROOT / ".cache" / "faults.md"


def launch(**values: Any) -> Run:
    return playbook("launch", *variables(**{**STEPS, **values}))


def state(name: str = "lab1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(on(name, f"cat {FOLDER}/state.json"))
    return found


def log() -> str:
    """The merged log; empty until something is printed."""
    return on("lab1", f"cat {FOLDER}/launcher.log 2>/dev/null; true")


def alive(name: str) -> list[str]:
    """Processes of the job on a node, in its container or not: ranks, launchers, supervisors."""
    ranks = "grep -lsz '^SWARMSPEED_JOB=/jobs/fault$' /proc/[0-9]*/environ"
    return on(name, f"{ranks}; pgrep -f '[j]obs/fault/supervisor.pyz'; true").split()


def wait(what: Callable[[], bool], seconds: float) -> float:
    """Seconds until something was so."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, on("lab1", f"cd {FOLDER} && tail -n 20 *.json *.log; true")
        time.sleep(0.5)
    return time.monotonic() - began


def training(**values: Any) -> None:
    """Start the job and wait until it trains."""
    launch(**{"deepspeed_launch_follow": False, **values}).done(change=True)
    wait(lambda: "rank 0: step " in log(), 120)


def ended(fault: str, transport: str, since: float, nodes: tuple[str, ...] = NODES) -> dict[str, Any]:
    """Wait for the job's end on all nodes; note when it was noticed and when nothing was left, in seconds.

    ``since``: when the fault was made (``time.time()``; the lab's nodes have this machine's clock).
    """
    wait(lambda: state()["state"] != "running" or state()["heartbeat"] < time.time() - 30, 120)
    wait(lambda: not any(alive(name) for name in nodes), 60)
    over = time.time() - since
    found = state()
    assert found["state"] == "failed", found
    noticed = max(0.0, datetime.fromisoformat(found["first_failure"]["at"]).timestamp() - since)
    note(f"| {fault} | {transport} | {noticed:.0f} s | {over:.0f} s | {found['reason']} |")
    assert noticed < SILENCE + found_stall(found), found
    assert over - noticed < PROMISE, found
    clean(found["master_port"], nodes)
    return found


def found_stall(found: dict[str, Any]) -> float:
    """Seconds of silence of its ranks after which this job counts as stalled, where that is what ended it."""
    return float(STALL) if "deepspeed_launch_stall_timeout" in found["reason"] else 0.0


def clean(port: int, nodes: tuple[str, ...] = NODES) -> None:
    """Assert that no process of the job, and no listener on its port, is left."""
    for name in nodes:
        assert alive(name) == []
        if is_running(name, container(name)):
            assert inside(name, f"ss -Hlnt 'sport = :{port}'") == ""


def note(row: str) -> None:
    """Add a row to the table of times."""
    new = not TABLE.exists()
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("a", encoding="utf-8") as table:
        if new:
            table.write("| fault | transport | noticed after | nothing left after | said |\n|---|---|---|---|---|\n")
        table.write(f"{row}\n")


def forget() -> None:
    """Stop the job if an earlier test left it running, and remove its state."""
    if any(alive(name) for name in NODES):
        playbook("stop", *variables(**STEPS)).done()
    for name in NODES:
        on(name, f"cd /srv/swarmspeed/swarmspeed/workspace && rm -rf {FOLDER} made checkpoints/fault")


def pid_of(name: str, pattern: str) -> str:
    """A process of the job on a node, as the node sees it."""
    return on(name, f"pgrep -o -f {pattern!r}").strip()


def rank_on(name: str) -> str:
    return pid_of(name, "python3 -u steps.py")


def made(name: str) -> float:
    """When the script made its own fault on that node."""
    wait(lambda: on(name, "cat /srv/swarmspeed/swarmspeed/workspace/made 2>/dev/null; true") != "", 30)
    return float(on(name, "cat /srv/swarmspeed/swarmspeed/workspace/made"))


def repair(tags: str = "training_container") -> Run:
    """Repair the cluster as its messages say, without a job."""
    return site("--tags", tags, *NO_JOB).done()


@contextmanager
def cut(name: str) -> Iterator[None]:
    """No packet between a node and the others; the controller still reaches it."""
    hosts = lab_inventory()["_meta"]["hostvars"]
    others = [hosts[other]["ansible_host"] for other in NODES if other != name]
    rules = [f"INPUT -s {address} -j DROP" for address in others]
    rules += [f"OUTPUT -d {address} -j DROP" for address in others]
    for rule in rules:
        on(name, f"iptables -I {rule}")
    try:
        yield
    finally:
        for rule in rules:
            on(name, f"iptables -D {rule}")
        everybody_known()


def everybody_known() -> None:
    """Wait until the overlay's DNS knows every node everywhere: after a node was away that takes a while."""
    for name in NODES:
        for wanted in NODES:
            ask = f"until getent hosts {container(wanted)}; do sleep 1; done"
            on(name, f"docker exec {container(name)} timeout 120 sh -c '{ask}'")


def machine(name: str, *words: str) -> None:
    """Do something to a whole node from outside, as its power switch would."""
    # A kept connection would wait for a node that no longer knows it.
    kept = f"ControlPath={node(name).backend.controlpath}"
    subprocess.run(["ssh", "-O", "exit", "-o", kept, name], check=False, capture_output=True, timeout=60)
    where = f"{os.environ.get('LAB_NAME', 'swarmspeed')}-{name}"
    subprocess.run(["docker", *words, where], check=True, capture_output=True, timeout=180)


def back(name: str, seconds: float = 120) -> None:
    """Wait until a node that was restarted accepts connections."""
    began = time.monotonic()
    while subprocess.run(ssh(name, "true"), check=False, capture_output=True, timeout=60).returncode != 0:
        assert time.monotonic() - began < seconds, f"{name} did not come back"
        time.sleep(1)
