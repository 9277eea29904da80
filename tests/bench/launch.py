# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From Enter to the first step, on a cluster that is up: launch.yml beside DeepSpeed's launcher typed by hand."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterable
from typing import Any

from tests.bench.registry import REGISTRY, Row
from tests.playbook_run import JOBS, NODES, ROOT, command, container, environment, on, playbook, ssh, variables

JOB: dict[str, Any] = {
    "workspace_source": str(ROOT / "tests" / "bench" / "job"),
    "deepspeed_launch_name": "first-step",
    "deepspeed_launch_script": "first_step.py",
    "deepspeed_launch_args": [],
    "deepspeed_launch_logs_dir": str(ROOT / ".cache" / "bench"),
    "deepspeed_launch_rerun": True,
}
STEP = re.compile(r"first step at (\d+\.\d+)")
TYPED = re.compile(r"typed at (\d+\.\d+)")
SEEN = "launch.yml: the first step's line on the console"
HAND = "by hand: deepspeed with pdsh"


def timed(lines: Iterable[str], began: float) -> tuple[float, float]:
    """Seconds until the step was done, and until its line was to be seen."""
    reported, found = [], None
    for line in lines:
        reported.append(line)
        if enter := TYPED.match(line):  # whoever types is logged in already
            began = float(enter.group(1))
        step = STEP.search(line)
        if step and not found:
            found = (float(step.group(1)) - began, time.time() - began)
    if not found:
        raise RuntimeError(f"no first step:\n{''.join(reported)[-4000:]}")
    return found


def watched(words: list[str]) -> tuple[float, float]:
    """Run a command to its end, as a user watches it."""
    began = time.time()
    with subprocess.Popen(
        words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        return timed(process.stdout, began)


def launched(transport: str) -> tuple[float, float]:
    return watched(command("launch", *variables(**JOB, deepspeed_launch_transport=transport)))


def typed(name: str, port: int, *how: str) -> list[str]:
    """The command of one node, in its container, as one would type it there."""
    words = ["deepspeed", "--hostfile", "/etc/swarmspeed/hostfile", *how, "--master_addr", container("lab1")]
    words += ["--master_port", str(port), "first_step.py", "--deepspeed_config", "/etc/swarmspeed/ds_config.json"]
    inside = f"cd /workspace && exec sh /etc/swarmspeed/entrypoint.sh run {shlex.join(words)}"
    exec_ = shlex.join(["docker", "exec", container(name), "sh", "-c", inside])
    return ssh(name, f"date '+typed at %s.%N'; {exec_}")


def by_hand_everywhere(port: int) -> float:
    """A launcher a node, typed at the same time into as many terminals."""
    others = [
        subprocess.Popen(
            typed(name, port, "--no_ssh", "--node_rank", str(rank)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank, name in enumerate(NODES)
        if rank
    ]
    seconds = watched(typed("lab1", port, "--no_ssh", "--node_rank", "0"))[0]
    for process in others:
        process.wait(timeout=60)
    return seconds


@REGISTRY.add("launch")
def launch(rounds: int) -> list[Row]:
    """Four ways to start one job, each to its end."""
    playbook("launch", *variables(**JOB)).done(change=True)
    direct: list[float] = []
    seen: list[float] = []
    pdsh: list[float] = []
    hand: list[float] = []
    everywhere: list[float] = []
    for number in range(rounds):
        step, line = launched("direct")
        direct.append(step)
        seen.append(line)
        hand.append(watched(typed("lab1", 29700 + number))[0])
        pdsh.append(launched("pdsh")[0])
        everywhere.append(by_hand_everywhere(29800 + number))
    for name in NODES:
        on(name, f"rm -rf {JOBS}/first-step")
    return [
        Row("launch.yml, transport direct", direct, floor=HAND),
        Row(SEEN, seen, floor=HAND),
        Row("launch.yml, transport pdsh", pdsh, floor=HAND),
        Row(HAND, hand),
        Row("by hand: deepspeed --no_ssh on every node", everywhere),
    ]
