# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""site.yml beside ``ansible -m setup`` of the same hosts: a run with nothing to do, of one role, and the first one."""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
import time
from pathlib import Path

from tests.bench.registry import REGISTRY, Row
from tests.playbook_run import INVENTORY, ROOT, command, environment, site

SETUP = "ansible -m setup"
MOST_ROUNDS = 3
"""Of what takes a quarter of an hour with the default number of them."""
SHOWN = 12
"""Tasks of a first run that are listed one by one."""
TASK = re.compile(r"^(?:swarmspeed\.cluster\.(\w+) : )?(.+?) -+ (\d+\.\d+)s$", re.M)
"""A line of ansible.posix.profile_tasks."""


def setup() -> float:
    """Seconds to gather facts by Ansible's own means."""
    words = ["ansible", "cluster", "-i", str(INVENTORY), "-m", "ansible.builtin.setup"]
    began = time.monotonic()
    subprocess.run(words, cwd=ROOT, env=environment(), check=True, capture_output=True, timeout=300)
    return time.monotonic() - began


def nothing_to_do(*arguments: str) -> float:
    """Seconds of a site.yml that changes nothing."""
    began = time.monotonic()
    site(*arguments).done(change=False)
    return time.monotonic() - began


def profile(output: str) -> list[tuple[str, str, float]]:
    """Role, task and seconds of each task in what profile_tasks prints at the end, longest first."""
    recap = output.rpartition("TASKS RECAP")[2]
    return [(role or "", task, float(seconds)) for role, task, seconds in TASK.findall(recap)]


@REGISTRY.add("first", on_request=True)
def first_site(rounds: int) -> list[Row]:
    """The first run, from bare nodes to the end of the job: the lab is re-created once, whatever the rounds."""
    del rounds
    subprocess.run(["make", "lab-down", "lab"], cwd=ROOT, check=True, capture_output=True, timeout=900)
    profiled = {"ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks", "PROFILE_TASKS_TASK_OUTPUT_LIMIT": "all"}
    began = time.monotonic()
    environ = {**environment(), **profiled}
    answer = subprocess.run(
        command("site"), cwd=ROOT, env=environ, capture_output=True, text=True, timeout=3600, check=False
    )
    seconds = time.monotonic() - began
    if answer.returncode:
        raise RuntimeError(answer.stdout[-4000:])
    tasks = profile(answer.stdout)
    roles: dict[str, float] = {}
    for role, dummy, took in tasks:
        roles[role or "the playbook itself"] = roles.get(role or "the playbook itself", 0.0) + took
    return [
        Row("site.yml, first run", [seconds]),
        *(Row(f"role {role}", [took]) for role, took in sorted(roles.items(), key=lambda item: -item[1])),
        *(Row(f"task {task}", [took], note=role) for role, task, took in tasks[:SHOWN]),
    ]


def tree(root: int) -> set[int]:
    """A process and all that descend from it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            parents[int(path.parent.name)] = int(path.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def memory(pids: set[int]) -> float:
    """MiB that these processes hold together: their proportional set size, which counts shared pages once (proc(5))."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            found = re.search(r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8"), re.M)
            total += int(found[1]) if found else 0
    return total / 1024


@REGISTRY.add("controller", on_request=True)
def controller(rounds: int) -> list[Row]:
    """What site.yml --check takes of the controller; bare nodes are enough, so LAB_NODES=64 fits on one machine."""
    del rounds
    began, peak = time.monotonic(), 0.0
    with subprocess.Popen(
        command("site", "--check"), cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout
        reader = threading.Thread(target=process.stdout.read)  # so that it never waits for a full pipe
        reader.start()
        while process.poll() is None:
            peak = max(peak, memory(tree(process.pid)))
            time.sleep(0.2)
        reader.join()
    if process.returncode:
        raise RuntimeError("site.yml --check failed")
    return [
        Row("site.yml --check", [time.monotonic() - began]),
        Row("memory, with all that it has started", [peak], unit="MiB"),
    ]


@REGISTRY.add("site")
def second_site(rounds: int) -> list[Row]:
    """A second run, all of it."""
    again, gathered = [], []
    for dummy in range(rounds):
        again.append(nothing_to_do())
        gathered.append(setup())
    return [Row("site.yml, nothing to change", again, floor=SETUP), Row(SETUP, gathered)]


@REGISTRY.add("tags")
def one_role(rounds: int) -> list[Row]:
    """A second run of each role alone."""
    roles = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
    times: dict[str, list[float]] = {role: [] for role in roles}
    gathered = []
    for dummy in range(min(rounds, MOST_ROUNDS)):
        for role in roles:
            times[role].append(nothing_to_do("--tags", role))
        gathered.append(setup())
    return [*(Row(f"--tags {role}", values, floor=SETUP) for role, values in times.items()), Row(SETUP, gathered)]
