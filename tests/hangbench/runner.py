# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Run one case: start its ranks, wait until it hangs or pauses, ask the doctor or verify the truth, end everything."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import faults, score, verify
from .catalogue import Case
from .ranks import Launcher, Ranks

NUMBERS = itertools.count(1)
POLL = 0.1
PROGRESS = re.compile(r"\[rank\d+\] ")
"""What the scripts print; torch's own lines begin otherwise."""


class Failed(Exception):
    """The case did not do what it is to do."""


@dataclass
class Options:
    out: Path
    python: str
    doctor: str | None = None
    when: str = "hang"
    patience: float = 120
    environment: dict[str, str] = field(default_factory=dict)
    launcher: Launcher | None = None


@dataclass
class Doctor:
    """The doctor command, started with a request; it answers with JSON on its output."""

    command: str
    request: Path
    begun: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.answers = self.request.with_name("answer.json")
        with self.answers.open("wb") as out, self.request.with_name("doctor.log").open("wb") as errors:
            words = [*shlex.split(self.command), str(self.request)]
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, start_new_session=True
            )

    def ended(self) -> bool:
        return self.process.poll() is not None

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()

    def answer(self) -> dict[str, Any] | None:
        """Return what it has answered: the last line that is an object, or the whole."""
        text = self.answers.read_text(encoding="utf-8", errors="replace").strip()
        for part in (text, text.rpartition("\n")[2]):
            with contextlib.suppress(ValueError):
                found = json.loads(part)
                if isinstance(found, dict):
                    return found
        return None


class Run:
    def __init__(self, case: Case, options: Options) -> None:
        self.case, self.options = case, options
        self.run = f"hb{os.getpid()}n{next(NUMBERS)}"
        # Not named by the case: a doctor sees the paths of logs.
        self.folder = options.out / "runs" / self.run
        self.begun = time.monotonic()
        self.begins: float | None = None
        self.moved = self.begun
        self.doctor: Doctor | None = None
        self.answered: float | None = None
        self.marks = 0

    def result(self) -> dict[str, Any]:
        """Run the case; return what came of it, for the file of results."""
        case = self.case
        found: dict[str, Any] = {"id": case.id, "kind": case.kind, "healthy": case.healthy}
        if reason := faults.missing(case.needs, case.network):
            return {**found, "skipped": reason}
        found["folder"] = str(self.folder)
        (self.folder / "private").mkdir(parents=True)
        try:
            with contextlib.ExitStack() as stack:
                self._prepare(stack)
                found.update(self._healthy() if case.healthy else self._hang())
        except (Failed, OSError, subprocess.SubprocessError) as error:
            found.pop("verified", None)
            found["failed"] = f"{type(error).__name__}: {error}"
        if self.begins is not None:
            found["begins_after"] = round(self.begins - self.begun, 1)
        return {**found, "seconds": round(time.monotonic() - self.begun, 1)}

    def _prepare(self, stack: contextlib.ExitStack) -> None:
        case, options = self.case, self.options
        private = self.folder / "private"
        environment = dict(options.environment)
        if not options.doctor:
            environment["HANGBENCH_VERIFY"] = "1"
        self.ranks = Ranks(case, self.folder, self.run, options.python, environment=environment)
        self.ranks.launcher = options.launcher
        # Entered first, so ended last: what was throttled or frozen runs again before.
        stack.callback(self.ranks.end)
        stack.callback(self._stop_doctor)
        if case.network:
            self.ranks.network = stack.enter_context(faults.network(self.run, case.world, private))
        cgroups = {}
        for need in case.needs:
            if need == "fuse":
                environment["HANGBENCH_FUSE"] = str(stack.enter_context(faults.fuse(private / "fuse")))
            else:
                cgroups[need] = stack.enter_context(faults.cgroup(need, self.run))
        if "memory" in cgroups:
            faults.limit_memory(cgroups["memory"], 64 << 20)
            environment["HANGBENCH_MEMORY_CGROUP"] = str(cgroups["memory"])
        self.place = faults.Place(
            self.ranks.pids,
            case.parameters.get("rank", 0),
            case.parameters.get("peer", 0),
            self.ranks.network,
            cgroups,
        )
        self.timeline = stack.enter_context((self.folder / "lines.jsonl").open("w", encoding="utf-8"))
        self.ranks.start()
        if options.doctor and options.when == "start":
            self.doctor = self._ask()

    def _answer(self) -> dict[str, Any] | None:
        """Give the doctor its time, during which it sees what the ranks print."""
        assert self.doctor
        deadline = time.monotonic() + self.options.patience
        while not self.doctor.ended() and time.monotonic() < deadline:
            time.sleep(POLL)
            self._watch()
        self.answered = self.answered or time.monotonic()
        return self.doctor.answer() if self.doctor.ended() else None

    def _stop_doctor(self) -> None:
        if self.doctor:
            self.doctor.stop()

    def _ask(self) -> Doctor:
        assert self.options.doctor
        network = self.ranks.network
        request = {
            "world_size": self.case.world,
            "started": time.time() - (time.monotonic() - self.begun),
            "lines": str(self.folder / "lines.jsonl"),
            "ranks": [
                {
                    "rank": rank,
                    "pid": self.ranks.pids[rank],
                    "log": str(self.ranks.log(rank)),
                    "namespace": f"/run/netns/{network.namespace(rank)}" if network else None,
                    "address": network.address(rank) if network else "127.0.0.1",
                }
                for rank in self.case.ranks
            ],
        }
        path = self.folder / "request.json"
        path.write_text(json.dumps(request, indent=1), encoding="utf-8")
        return Doctor(self.options.doctor, path)

    # --- waiting -------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Note what has moved, inject a fault that is due, note when the hang has begun."""
        now = time.monotonic()
        for rank, line in self.ranks.lines():
            self.timeline.write(json.dumps([round(time.time(), 2), rank, line]) + "\n")
            self.timeline.flush()
            # A library that warns while it tries again makes no progress.
            if PROGRESS.match(line):
                self.moved = now
        marks = sum(1 for dummy in self.ranks.private.iterdir())
        if self.ranks.moved() or marks != self.marks:
            self.moved, self.marks = now, marks
        if self.doctor and self.answered is None and self.doctor.ended():
            self.answered = now
        injected = self.ranks.private / "injected"
        if self.case.inject and not injected.exists() and self.ranks.marks("inject"):
            faults.FAULTS[self.case.inject](self.place)
            injected.touch()
            self.begins = self.moved = now
        if self.begins is None and (self.ranks.marks("begins") or (self.case.absent and self._all_wait())):
            self.begins = self.moved = now

    def _all_wait(self) -> bool:
        """Return whether all that are to wait have at least begun to join the others."""
        assert self.case.truth
        return set(self.case.truth["waiting"]["ranks"]) <= set(self.ranks.marks("joining"))

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = self.begun + self.case.limit
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"not within {self.case.limit} s: {what}")
            time.sleep(POLL)
            self._watch()

    def _finished(self) -> bool:
        return len(self.ranks.marks("finished")) == self.case.world

    # --- hangs ---------------------------------------------------------------------------------------------------

    def _quiet(self) -> bool:
        if self._finished():
            raise Failed("it finished, although it was to hang")
        quiet = time.monotonic() - self.moved > self.case.quiet
        return quiet and self.begins is not None and self._all_wait()

    def _hang(self) -> dict[str, Any]:
        self._until(self._quiet, "the hang")
        if not self.options.doctor:
            evidence = verify.hang(self.case, self.ranks, self.place)
            return {"verified": evidence["problems"] == [], **evidence}
        if self.doctor is None:
            self.doctor = self._ask()
        answer = self._answer()
        since = self.begins if self.options.when == "start" and self.begins else self.doctor.begun
        after = (self.answered or since) - since
        # An alarm before the hang began is a false one.
        scores = score.hang(self.case.truth or {}, answer if after >= 0 else None)
        return {"answer": answer, "answered_after": round(after, 1), "scores": scores}

    # --- healthy runs --------------------------------------------------------------------------------------------

    def _paused(self) -> bool:
        """Return whether a rank is in the middle of the pause that it has announced."""
        pauses = [json.loads(value) for value in self.ranks.marks("pause").values()]
        return self._finished() or any(time.time() > one["begins"] + one["seconds"] / 2 for one in pauses)

    def _healthy(self) -> dict[str, Any]:
        if self.options.doctor and self.options.when == "hang":
            self._until(self._paused, "the pause")
            self.doctor = self._ask()
        self._until(lambda: self._finished() or self._broken(), "the end")
        if not self._finished():
            raise Failed("a rank ended before it had finished")
        if not self.options.doctor:
            return {"verified": True, "longest_silence": round(verify.longest_silence(self.folder / "lines.jsonl"), 1)}
        assert self.doctor
        answer = self._answer() if self.options.when == "hang" or self.doctor.ended() else None
        return {"answer": answer, "scores": score.healthy(answer)}

    def _broken(self) -> bool:
        return any(not self.ranks.alive(rank) and rank not in self.ranks.marks("finished") for rank in self.case.ranks)
