# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Playbooks that are started, watched and killed. Output and events of each go to files, so that nothing waits."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.playbooks import tree
from tests.chaos.plan import Scope
from tests.chaos.verdict import Event, Verdict, current_task, judge
from tests.playbook_run import ROOT, command, environment, variables

NO_JOB = variables(deepspeed_launch_script="")
"""The cluster without its job: what most rounds are about."""
PATIENCE = 900.0
"""Seconds within which any playbook here ends; the longest takes two minutes, and an image that is built more."""
EXPECTED = {"site": 75.0, "verify": 25.0, "teardown": 30.0, "launch": 60.0, "transfer": 60.0}
"""Seconds of each kind of run until one has been measured."""


@dataclass(frozen=True)
class Ended:
    """A run that has ended. ``rc`` is None for one that had to be cut off, and negative for one that was killed."""

    rc: int | None
    output: str
    events: Sequence[Event]
    seconds: float

    def verdict(self, nodes: Sequence[str]) -> Verdict:
        return judge(self.rc, self.output, self.events, nodes)


class Running:
    """A playbook in a process group of its own."""

    def __init__(self, log: Path, name: str, *arguments: str) -> None:
        self.log, self.record = log, log.with_suffix(".events")
        self.record.unlink(missing_ok=True)
        words = command(name, *arguments)
        environ = {
            **environment(),
            "ANSIBLE_CALLBACKS_ENABLED": "chaos_events",
            "ANSIBLE_CALLBACK_PLUGINS": str(Path(__file__).with_name("callback")),
            "CHAOS_EVENTS": str(self.record),
        }
        self.began = time.monotonic()
        with log.open("w", encoding="utf-8") as file:
            file.write(f"$ {shlex.join(words)}\n".replace(str(ROOT), "."))
            file.flush()
            self.process = subprocess.Popen(
                words,
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.killed: dict[int, str] = {}

    def ended_within(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds))
        return self.process.poll() is not None

    def events(self) -> list[dict[str, Any]]:
        lines = self.record.read_text(encoding="utf-8").splitlines() if self.record.exists() else []
        found = []
        for line in lines:
            with contextlib.suppress(json.JSONDecodeError):  # the last one of a run that was killed
                found.append(json.loads(line))
        return found

    def output(self) -> str:
        """Return what it has printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def task(self) -> str:
        """Return the task that runs now."""
        return current_task(self.events()) or "before the first task"

    def kill(self, scope: Scope) -> None:
        """SIGKILL the main process alone, or all that it has started with it."""
        self.killed = {pid: started for pid in tree(self.process.pid) if (started := _started(pid))}
        # The main process first: none of the others is to be replaced by it.
        for pid in [self.process.pid, *(self.killed.keys() - {self.process.pid} if scope == "tree" else ())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def sweep(self) -> None:
        """End what outlived the main process, and nothing that has got one of the numbers since."""
        for pid, started in self.killed.items():
            if _started(pid) == started:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.killed = {}

    def finish(self, timeout: float = PATIENCE) -> Ended:
        """Wait for the end; a run that takes longer is cut off."""
        in_time = self.ended_within(timeout)
        if not in_time:
            self.kill("tree")
        seconds = time.monotonic() - self.began
        return Ended(self.process.returncode if in_time else None, self.output(), self.events(), seconds)


def _started(pid: int) -> str:
    """Return when a process began, in the kernel's ticks; empty where there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    return ""


@dataclass
class Durations:
    """Seconds that each kind of run takes, as the last complete one took; kept beside the rounds."""

    path: Path
    known: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.known = json.loads(self.path.read_text(encoding="utf-8"))

    def expected(self, kind: str) -> float:
        return self.known.get(kind, EXPECTED[kind])

    def learn(self, kind: str, seconds: float) -> None:
        self.known[kind] = round(seconds, 1)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.known, indent=1, sort_keys=True), encoding="utf-8")
        part.replace(self.path)


class Runs:
    """The runs of one round, each with a log of its own, in the order in which they were started."""

    def __init__(self, folder: Path, durations: Durations, given: tuple[str, ...] = ()) -> None:
        self.folder, self.durations, self.given = folder, durations, given
        self.started: list[Running] = []
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, label: str, name: str, *arguments: str) -> Running:
        log = self.folder / f"{len(self.started) + 1:02}-{label}.log"
        running = Running(log, name, *self.given, *arguments)
        self.started.append(running)
        return running

    def complete(self, label: str, name: str, *arguments: str, patience: float = PATIENCE) -> Ended:
        return self.start(label, name, *arguments).finish(patience)

    def sweep(self) -> None:
        """End whatever is left of the runs, also of those that a Ctrl-C has interrupted."""
        for running in self.started:
            if running.process.poll() is None:
                running.kill("tree")
            running.sweep()
