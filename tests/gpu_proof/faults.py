# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is reported when a job fails on a GPU, when it is not started because of one, and of GPUs that compute.

The jobs are launched as users launch them. The names of failures are those of docs/diagnosis.md; the merged log of each
is left below the proof's folder, so that it can become a fixture of the unit tests.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

from tests.gpu_proof.commands import JOB, PYTHON, attempt, run
from tests.gpu_proof.environment import variables
from tests.gpu_proof.jobs import CLUSTER, PLAYBOOK, Job, attempted, launch, playbook
from tests.gpu_proof.parts import Failed

EXPECTED = {
    "allocator": "gpu-memory",
    "cublas": "gpu-memory",
    "ordinal": "gpu-ordinal",
    "index": "index-on-gpu",
    "address": "gpu-address",
    "twice": "gpu-twice",
    "interface": "nccl-interface",
    "none": "gpu-none",
    "toolkit": "cuda-toolkit",
    "pinned": "pinned-refused",
    "precision": "input-precision",
    "letter": "arch-list",
    "architecture": "gpu-architecture",
}
"""Ways to fail of job/failing.py, and the entry of the table that is to explain each."""
REHEARSED = {"own": "script-exception"}
"""On a machine without a GPU."""
JOBS = CLUSTER / "host_jobs"
"""Where those of deepspeed_launch_runtime: host are."""
_BUSY_PERCENT = 50.0
_STATUS_TRIES = 6
_ROW = re.compile(r"^\W*gpu:0\s+computing\s+(\d+) %.*$", re.MULTILINE)
_NCCL = re.compile(r"NCCL has connected (\d+) of (\d+) ranks[^\"\n]*")


def failure(how: str, expected: str, accelerator: str, plain: Callable[[str], str], limit: float) -> dict[str, Any]:
    """Let a job fail; return what its first cause was found to be. Raises Failed where it is another one."""
    name = f"failing-{how}"
    job = Job(name, JOB / "failing.py", ["--how", how], variables={"nccl_env_debug": "WARN"})
    code, printed = attempted(job, accelerator, limit)
    if not code:
        raise Failed("the job did not fail")
    state = JOBS / name / "state.json"
    if not state.is_file():
        raise Failed(f"the job was not started: {_message(printed)}")
    first = json.loads(state.read_text(encoding="utf-8")).get("first_failure") or {}
    # the cause, too, may name a file of the machine
    texts = {key: plain(str(first.get(key) or "")) for key in ("id", "kind", "cause", "remedy", "line")}
    found = {**texts, "rank": first.get("rank")}
    if first.get("id") != expected:
        raise Failed(f"the first cause is {first.get('id') or 'not known'}, and not {expected}: {found['line']}", found)
    if str(first["cause"]).rstrip(".") not in _words(printed):
        raise Failed("the playbook does not print the cause", found)
    return found


def refused_slots(accelerator: str, plain: Callable[[str], str], limit: float) -> dict[str, Any]:
    """Request more slots than there are GPUs; the launch is refused."""
    job = Job("refused", JOB / "computing.py", ["--seconds", "1"], variables={"gpu_slots": 64})
    return _refused(job, r"nvidia-smi lists only \d+ GPU", accelerator, plain, limit)


def refused_memory(accelerator: str, plain: Callable[[str], str], limit: float) -> dict[str, Any]:
    """Let another process hold memory of the GPU; the launch is refused and names it."""
    command = [PYTHON, str(JOB / "holding.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=variables()
    ) as holding:
        try:
            if holding.stdout is None or "holding" not in holding.stdout.readline():
                raise Failed("the process that is to hold memory of the GPU did not start")
            job = Job("refused", JOB / "computing.py", ["--seconds", "1"])
            return _refused(job, r"GPU 0 is in use.*?MiB of its memory", accelerator, plain, limit)
        finally:
            holding.kill()


def _refused(job: Job, pattern: str, accelerator: str, plain: Callable[[str], str], limit: float) -> dict[str, Any]:
    code, printed = attempted(job, accelerator, limit)
    message = _message(printed)
    if not code or (JOBS / job.name / "state.json").exists():
        raise Failed("the job was started")
    matched = re.search(pattern, _words(printed))
    if matched is None:
        raise Failed(f"refused for another reason: {message}")
    return {"message": plain(matched[0])}


def status(accelerator: str, plain: Callable[[str], str], limit: float) -> dict[str, Any]:
    """Read what status.yml shows of a GPU that computes, and of what NCCL has connected; then stop the job."""
    until = time.monotonic() + limit
    arguments = ["--seconds", str(int(limit))]
    more = {"deepspeed_launch_follow": False, "nccl_env_debug": "INFO"}
    launch(Job("computing", JOB / "computing.py", arguments, variables=more), accelerator, limit)
    try:
        for dummy in range(_STATUS_TRIES):
            printed = run(playbook("status.yml", accelerator), max(10.0, until - time.monotonic()), **PLAYBOOK)
            row, connected = _ROW.search(_lines(printed)), _NCCL.search(printed)
            if row and connected and float(row[1]) >= _BUSY_PERCENT:
                return {"row": " ".join(row[0].split()), "nccl": plain(connected[0])}
        missing = "no GPU that computes" if not row or float(row[1]) < _BUSY_PERCENT else "nothing of NCCL"
        raise Failed(f"status.yml shows {missing}", {"row": plain(row[0]) if row else ""})
    finally:
        stop = [*playbook("stop.yml", accelerator), "-e", "deepspeed_launch_name=computing"]
        attempt(stop, 60.0, **PLAYBOOK)


def _words(printed: str) -> str:
    """Return the output with each run of white space as one blank, and without the escapes of JSON."""
    return " ".join(printed.replace("\\n", " ").replace('\\"', '"').split())


def _lines(printed: str) -> str:
    """Return the output with one line for each item of a list."""
    return "\n".join(line.strip().strip('",') for line in printed.replace("\\n", "\n").splitlines())


def _message(printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.startswith(("fatal:", "[ERROR]", "ERROR"))]
    return (lines or ["it printed no error"])[0].strip()[:300]
