# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a round is judged by, with runs that are made up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.chaos import recovery
from tests.chaos.faults.base import Attempt, Fault
from tests.chaos.lab import Lab, LabError
from tests.chaos.plan import Round
from tests.chaos.recovery import recover
from tests.chaos.runs import NO_JOB, Durations, Ended, Running, Runs

NODES = ("lab1", "lab2")
ROUND = Round(1, "x", "lab2", 0.5, 0.5, "tree")
FOREIGN = "lab2: is in another Docker swarm. Remedy: set swarm_allow_leave_foreign: true to make it leave that swarm."
FULL = "lab2: the disk is full. Remedy: make room there, and run again."
STUCK = "lab2: is half out of a swarm. Remedy: run `systemctl restart docker` there."


def good(changed: int = 0) -> Ended:
    output = "".join(f"{name}  : ok=3 changed={changed} unreachable=0 failed=0\n" for name in NODES)
    events: list[dict[str, Any]] = [{"event": "changed", "host": "lab1", "task": "Join"}] * changed
    return Ended(0, output, [*events, {"event": "recap", "hosts": {name: {} for name in NODES}}], 5.0)


def bad(text: str) -> Ended:
    failed = {"event": "failed", "host": "lab2", "task": "x", "texts": [text], "ignored": False}
    return Ended(2, "", [failed, {"event": "recap", "hosts": {"lab2": {"failures": 1}}}], 5.0)


class FakeLab:
    """Remembers what was run on nodes."""

    nodes = NODES
    arguments: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []
        self.problem = ""

    def as_user(self, name: str, command: str, timeout: float = 0) -> str:
        del timeout
        if self.problem:
            raise LabError(self.problem)
        self.ran.append((name, command))
        return ""


class FakeAttempt(Attempt):
    """Ends each playbook as the test says, and remembers how it was started."""

    ends: list[Ended]
    requested: list[tuple[str, ...]]

    def start(self, label: str, name: str, *arguments: str) -> Running:
        del label
        self.requested.append((name, *arguments))
        ended = self.ends.pop(0)

        class Done:
            def finish(self, timeout: float = 0) -> Ended:
                del timeout
                return ended

        return cast(Running, Done())


@pytest.fixture
def attempt(tmp_path: Path) -> FakeAttempt:
    lab = cast(Lab, FakeLab())
    made = FakeAttempt(lab, ROUND, Runs(tmp_path, Durations(tmp_path / "durations.json")), "lab2")
    made.requested = []
    return made


def fault(**values: Any) -> Fault:
    return Fault("x", "x", lambda dummy: None, **values)


def recovered(attempt: FakeAttempt, ends: Iterable[Ended], **values: Any) -> recovery.Recovery:
    attempt.ends = list(ends)
    return recover(attempt, fault(**values))


def test_converged_nothing_to_do_verified(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [good(3), good(), good()])
    assert (found.why, found.refusals, found.followed) == ("", [], [])
    assert attempt.requested == [("site", *NO_JOB), ("site", *NO_JOB), ("verify", *NO_JOB)]


def test_a_second_run_that_changes_something_is_a_failure(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [good(3), good(1)])
    assert found.why == "a second site.yml changed something: lab1: Join"


def test_a_verify_that_fails_is_a_failure(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [good(3), good(), bad(FULL)])
    assert found.why.startswith("verify.yml did not succeed: lab2: the disk is full. Remedy: make room")


def test_what_is_left_of_the_fault_is_a_failure(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [good(), good(), good()], left=lambda dummy: "lab2 is drain in the swarm")
    assert found.why == "site.yml and verify.yml succeeded, and yet lab2 is drain in the swarm"


def test_a_refusal_is_followed_by_the_variable_that_it_names(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [bad(FOREIGN), good(3), good(), good()], refusal="another Docker swarm")
    assert found.why == ""
    assert found.refusals == [FOREIGN.rstrip(".")]
    assert found.followed == ["variable swarm_allow_leave_foreign"]
    # Given to the very next run, and to no other.
    assert attempt.requested[1] == ("site", *NO_JOB, "--extra-vars", '{"swarm_allow_leave_foreign": true}')
    assert attempt.requested[2] == ("site", *NO_JOB)


def test_a_refusal_is_followed_by_the_command_that_it_names(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [bad(STUCK), good(), good(), good()], refusal="half out")
    assert found.why == ""
    assert cast(FakeLab, attempt.lab).ran == [("lab2", "systemctl restart docker")]


def test_a_remedy_that_does_not_work_is_a_failure(attempt: FakeAttempt) -> None:
    cast(FakeLab, attempt.lab).problem = "exit status 1"
    found = recovered(attempt, [bad(STUCK)], refusal="half out")
    assert found.why == "the remedy did not succeed: exit status 1"


def test_a_remedy_for_a_person_is_done_as_the_fault_says(attempt: FakeAttempt) -> None:
    done: list[str] = []
    found = recovered(
        attempt, [bad(FULL), good(), good(), good()], refusal="is full", by_hand=lambda one: done.append(one.target)
    )
    assert (found.why, done) == ("", ["lab2"])
    assert found.followed == ["by hand: make room there, and run again"]


def test_a_remedy_that_no_one_can_follow_is_a_failure(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [bad(FULL)], refusal="is full")
    assert "its remedy is nothing that can be done literally" in found.why


def test_a_refusal_where_it_must_converge_is_a_failure(attempt: FakeAttempt) -> None:
    assert "refused what it is to repair" in recovered(attempt, [bad(FULL)]).why
    attempt.requested.clear()
    assert "refused what it is to repair" in recovered(attempt, [bad(FULL)], refusal="another Docker swarm").why


def test_refusals_without_end_are_a_failure(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [bad(FOREIGN)] * 4, refusal="another Docker swarm")
    assert found.why.startswith("site.yml still refused after 3 remedies: ")


def test_an_error_without_remedy_is_a_failure(attempt: FakeAttempt) -> None:
    found = recovered(attempt, [bad("lab2: oh")], refusal="oh")
    assert found.why.startswith("site.yml: lab2: an error without the form")


def test_what_the_lab_takes_back_is_followed_by_another_run(attempt: FakeAttempt) -> None:
    undone: list[str] = []
    ends = [good(), good(), good(), bad("lab2: oh")]
    found = recovered(attempt, ends, undo=lambda one: undone.append(one.target))
    assert undone == ["lab2"]
    assert found.why.startswith("after the lab had put its own part back, site.yml: ")


def test_a_playbook_that_a_remedy_names_must_succeed(attempt: FakeAttempt) -> None:
    text = "lab2: is odd. Remedy: ansible-playbook site.yml --tags docker"
    found = recovered(attempt, [bad(text), good(), good(), good(), good()], refusal="odd")
    assert found.why == ""
    assert attempt.requested[1] == ("site", "--tags", "docker")
    found = recovered(attempt, [bad(text), bad(FULL)], refusal="odd")
    assert found.why.startswith("the remedy (site.yml) did not succeed: lab2: the disk is full")
