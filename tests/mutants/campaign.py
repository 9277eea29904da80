# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Runs the mutants: two copies of the checkout, a worker in each, and for each mutant the tests that can notice it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.mutants.checkout import copy
from tests.mutants.mutant import Mutant
from tests.mutants.results import KILLED, SURVIVED, Result
from tests.mutants.targets import Target

AT_ONCE = 2
LEAST_LIMIT, MOST_LIMIT, SLOWER = 30.0, 300.0, 5.0
"""Seconds: a mutant has so many times those that its tests take without it, but no fewer and no more than these."""

Job = TypeVar("Job")
Answer = TypeVar("Answer")


class CampaignError(Exception):
    """The tests fail without any mutant, or could not be run at all."""


@dataclass(frozen=True)
class Reached:
    """What tests do unmutated: how long each takes, which lines it reaches, and which start a Python."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    starting: set[str]
    failing: list[str] = field(default_factory=list)

    def tests(self, mutant: Mutant, own: Collection[str]) -> list[str]:
        """The tests that can notice a mutant, the fastest first. ``own`` are the files of its target.

        Those that execute its statement, wherever they are, and those of its target that start a Python; of what is
        executed when the module is imported, those that execute anything of it, and of a module of constants all of its
        target.
        """
        lines = self.lines.get(mutant.module, {})
        found = lines.get(mutant.line, set()) if mutant.line else set().union(*lines.values())
        others = self.starting if lines or mutant.line else self.seconds
        return self._in_order(found | {test for test in others if test.partition("::")[0] in own})

    def add(self, other: Reached) -> None:
        """Take in what other tests do."""
        self.seconds.update(other.seconds)
        self.starting.update(other.starting)
        self.failing.extend(other.failing)
        for module, lines in other.lines.items():
            known = self.lines.setdefault(module, {})
            for line, tests in lines.items():
                known.setdefault(line, set()).update(tests)

    def limit(self, tests: Iterable[str]) -> float:
        return min(MOST_LIMIT, max(LEAST_LIMIT, SLOWER * sum(self.seconds[test] for test in tests)))

    def _in_order(self, tests: Iterable[str]) -> list[str]:
        return sorted((test for test in tests if test in self.seconds), key=lambda test: (self.seconds[test], test))


class Worker:
    """A copy of the checkout, and the process that runs tests in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        copy(root)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.worker"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, act: str, **request: Any) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps({"act": act, **request}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise CampaignError("The process that runs the tests has ended. Remedy: see its output above.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def shared(
    workers: Sequence[Worker],
    jobs: Sequence[Job],
    work: Callable[[Worker, Job], Answer],
    tell: Callable[[Answer], None],
) -> list[Answer]:
    """Let the workers do the jobs, each the next one; return the answers in the order of the jobs."""
    waiting: queue.SimpleQueue[tuple[int, Job]] = queue.SimpleQueue()
    for numbered in enumerate(jobs):
        waiting.put(numbered)
    answers: dict[int, Answer] = {}
    troubles: list[BaseException] = []

    def run(worker: Worker) -> None:
        while not troubles:
            try:
                number, job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                answers[number] = work(worker, job)
                tell(answers[number])
            except BaseException as error:
                troubles.append(error)

    threads = [threading.Thread(target=run, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]
    return [answers[number] for number in sorted(answers)]


def _reach(worker: Worker, modules: Sequence[str], path: str) -> Reached:
    found = worker.ask("reach", modules=modules, tests=[path])
    if found["late"] or "failed" not in found:
        raise CampaignError(f"{path} cannot be run. Output:\n{found['output']}")
    worker.ask("warm", names=found["imported"])
    lines = {
        module: {int(line): set(tests) for line, tests in by_line.items()} for module, by_line in found["lines"].items()
    }
    return Reached(found["passed"], lines, set(found["starting"]), found["failed"])


def attempt(
    ask: Callable[..., dict[str, Any]], target: str, mutant: Mutant, reached: Reached, own: Collection[str]
) -> Result:
    """Run the tests that can notice a mutant."""
    tests = reached.tests(mutant, own)
    if not tests:
        return Result(target, mutant.kind, mutant.name, SURVIVED, "", 0, 0.0)
    found = ask("mutant", module=mutant.module, source=mutant.source.decode(), tests=tests, limit=reached.limit(tests))
    by = noticed(found)
    result = KILLED if by else SURVIVED
    return Result(target, mutant.kind, mutant.name, result, by, len(tests), round(found["wall"], 1))


def noticed(found: dict[str, Any]) -> str:
    """Return which test noticed a mutant, and how where it did not simply fail; empty where none did."""
    running = found["running"] or "the import of the tests"
    if found["late"]:
        return f"{running} (time limit)"
    if found.get("failed"):
        return str(found["failed"])
    if "failed" not in found and found["running"]:
        return f"{running} (its process ended)"
    if not found.get("collected"):
        raise CampaignError(f"Tests could not be run with a mutant. Output:\n{found['output']}")
    return ""


def campaign(
    chosen: Sequence[tuple[Target, Mutant]], say: Callable[[str], None], despite: bool = False
) -> list[Result]:
    """Try the mutants; return what came of each, in their order. Raises ``CampaignError``.

    Tests that fail without any mutant end it, or with ``despite`` are left out.
    """
    targets = list(dict.fromkeys(target for target, _mutant in chosen))
    modules = sorted({mutant.module for _target, mutant in chosen})
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        workers: list[Worker] = []
        try:
            for number in range(AT_ONCE):
                workers.append(Worker(Path(name, str(number))))
            own = {target.name: set(target.test_paths(workers[0].root)) for target in targets}
            paths = sorted(set().union(*own.values()))
            reached = Reached({}, {}, set())
            for found in shared(workers, paths, lambda worker, path: _reach(worker, modules, path), lambda _one: None):
                reached.add(found)
            if reached.failing and not despite:
                raise CampaignError(
                    "\n".join([*reached.failing, "fail without any mutant. Remedy: correct that first."])
                )
            say(f"{len(reached.seconds)} tests of {len(paths)} files pass without a mutant")

            def try_one(worker: Worker, job: tuple[Target, Mutant]) -> Result:
                target, mutant = job
                return attempt(worker.ask, target.name, mutant, reached, own[target.name])

            return shared(workers, chosen, try_one, lambda result: say(line(result)))
        finally:
            for worker in workers:
                worker.close()


def line(result: Result) -> str:
    return f"{result.result:9} {result.seconds:6.1f} s  {result.mutant}" + (f"  [{result.by}]" if result.by else "")
