# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A mutant in a module of its own small checkout: which tests run, which one notices, and what is not noticed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.documents import ROOT
from tests.mutants.campaign import LEAST_LIMIT, CampaignError, Reached, attempt, noticed, shared
from tests.mutants.checkout import Mutated
from tests.mutants.kinds import all_mutants
from tests.mutants.mutant import RAISE, Mutant
from tests.mutants.results import KILLED, SURVIVED
from tests.mutants.watch import PROBE, probed

MODULE = """\
def checked(number):
    if number < 0:
        raise ValueError(number)
    if number == 13:
        raise LookupError(number)
    return number


def waits():
    if checked(1) == 2:
        return
    raise EOFError
"""
TESTS = """\
import pytest
from guards import checked, waits

def test_negative():
    with pytest.raises(ValueError):
        checked(-1)

def test_unlucky_is_only_tried():
    try:
        checked(13)
    except LookupError:
        pass

def test_waits():
    while True:
        try:
            waits()
        except EOFError:
            break
"""

OWN = ["test_guards.py"]

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "guards.py").write_text(MODULE)
    (tmp_path / "test_guards.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = -p no:cacheprovider\n")
    return tmp_path


@pytest.fixture
def ask(checkout: Path) -> Iterator[Ask]:
    """A worker in the checkout."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.mutants.worker"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(act: str, **request: Any) -> dict[str, Any]:
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps({"act": act, **request}) + "\n")
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer

    yield ask
    process.kill()
    process.communicate()


def raises() -> list[Mutant]:
    return [mutant for mutant in all_mutants("guards.py", MODULE.encode()) if mutant.kind == RAISE]


def test_the_test_that_reaches_a_mutant_notices_it_and_one_that_looks_away_does_not(ask: Ask, checkout: Path) -> None:
    found = ask("reach", modules=["guards.py"], tests=["test_guards.py"])
    assert found["failed"] == []
    lines = {"guards.py": {int(line): set(tests) for line, tests in found["lines"]["guards.py"].items()}}
    reached = Reached(found["passed"], lines, set(found["starting"]))
    negative, unlucky, endless = raises()
    assert reached.tests(negative, OWN) == ["test_guards.py::test_negative"]
    killed = attempt(ask, "guards", negative, reached, OWN)
    assert (killed.result, killed.by, killed.tests) == (KILLED, "test_guards.py::test_negative", 1)
    survived = attempt(ask, "guards", unlucky, reached, OWN)
    assert (survived.result, survived.by, survived.tests) == (SURVIVED, "", 1)
    late = ask(
        "mutant",
        module="guards.py",
        source=endless.source.decode(),
        tests=["test_guards.py::test_waits"],
        limit=3.0,
    )
    assert noticed(late) == "test_guards.py::test_waits (time limit)"
    assert (checkout / "guards.py").read_text() == MODULE


def test_a_module_has_its_source_and_its_time_again(checkout: Path) -> None:
    module = checkout / "guards.py"
    before, times = module.stat().st_mtime, set()
    for _number in range(3):
        with Mutated(module, b"x = 1\n"):
            times.add(int(module.stat().st_mtime))
    assert module.stat().st_mtime == before and len(times) == 3 and int(before) not in times
    assert module.read_text() == MODULE


def test_what_runs_when_a_module_is_imported_is_noticed_by_any_test_of_it() -> None:
    reached = Reached({"a": 2.0, "b": 1.0, "c": 0.1}, {"m.py": {7: {"a"}, 9: {"b"}}}, set())
    constant = Mutant("m.py", "LIMIT", RAISE, "one", 0, b"")
    assert reached.tests(constant, ()) == ["b", "a"]
    unreached = Mutant("m.py", "f", RAISE, "one", 3, b"")
    assert reached.tests(unreached, ["a"]) == []
    assert attempt(_no_run, "guards", unreached, reached, ["a"]).result == SURVIVED


def test_what_is_in_a_module_of_constants_is_noticed_by_the_tests_of_its_target() -> None:
    reached = Reached({"a::x": 2.0, "b::y": 1.0, "c::z": 0.1}, {"m.py": {}}, set())
    constant = Mutant("m.py", "LIMIT", RAISE, "one", 0, b"")
    assert reached.tests(constant, ["a", "b"]) == ["b::y", "a::x"]


def _no_run(*_arguments: Any, **_more: Any) -> dict[str, Any]:
    raise AssertionError("there is nothing to run")


def test_the_line_of_a_mutant_is_that_of_its_statement() -> None:
    source = (
        "X = os.O_CREAT | os.O_EXCL\n\n\ndef f(a, b=os.O_CREAT | os.O_EXCL):\n    g(a,\n      os.O_CREAT | os.O_EXCL)\n"
    )
    found = all_mutants("m.py", source.encode())
    assert sorted({mutant.line for mutant in found}) == [0, 5]


def test_tests_that_start_processes_are_among_the_first() -> None:
    reached = Reached({"a": 2.0, "b": 1.0}, {"m.py": {7: {"a"}}}, {"b"})
    mutant = Mutant("m.py", "f", RAISE, "one", 7, b"")
    assert reached.tests(mutant, ["b"]) == ["b", "a"] and reached.tests(mutant, ["a"]) == ["a"]
    assert reached.limit(["a", "b"]) == LEAST_LIMIT


@pytest.mark.parametrize(
    ("found", "by"),
    [
        ({"late": False, "running": "a", "failed": "a", "collected": True}, "a"),
        ({"late": False, "running": "a", "failed": "", "collected": True}, ""),
        ({"late": True, "running": ""}, "the import of the tests (time limit)"),
        ({"late": False, "running": "a"}, "a (its process ended)"),
    ],
)
def test_how_a_mutant_was_noticed(found: dict[str, Any], by: str) -> None:
    assert noticed(found) == by


def test_tests_that_cannot_be_run_are_no_kill() -> None:
    with pytest.raises(CampaignError, match="no such file"):
        noticed({"late": False, "running": "", "output": "no such file"})


def test_an_error_of_one_worker_ends_the_campaign() -> None:
    def work(_worker: Any, job: int) -> int:
        if job == 2:
            raise CampaignError("gone")
        return job

    workers: Any = [None, None]
    assert shared(workers, [3, 1], work, lambda _answer: None) == [3, 1]
    with pytest.raises(CampaignError, match="gone"):
        shared(workers, [1, 2, 3], work, lambda _answer: None)


def test_each_statement_of_a_function_tells_that_it_is_reached() -> None:
    source = (
        b'X = 1\n\ndef f(a):\n    """Words."""\n    if a:\n        return 1\n    elif X:\n'
        b"        def g():\n            return 2\n    return g()\n"
    )
    reported: list[int] = []
    space: dict[str, Any] = {PROBE: lambda _module, line: reported.append(line)}
    exec(compile(probed(source, "m.py"), "m.py", "exec"), space)
    assert (space["f"](0), reported) == (2, [5, 7, 8, 10, 9])
    assert space["f"].__doc__ == "Words."


def test_what_the_files_of_tests_reach_is_put_together() -> None:
    reached = Reached({"a": 1.0}, {"m.py": {7: {"a"}}}, {"a"})
    reached.add(Reached({"b": 2.0}, {"m.py": {7: {"b"}, 8: {"b"}}, "n.py": {}}, set()))
    assert reached == Reached({"a": 1.0, "b": 2.0}, {"m.py": {7: {"a", "b"}, 8: {"b"}}, "n.py": {}}, {"a"})
