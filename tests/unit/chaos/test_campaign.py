# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which rounds are made, what is recorded of them, and when the suite stops. The lab is a stand-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.chaos import __main__ as program
from tests.chaos import campaign
from tests.chaos.campaign import Campaign, Stopped, locked
from tests.chaos.faults.base import Attempt, Failed, Fault, Unsuited
from tests.chaos.faults.catalogue import ENTRIES as ALL
from tests.chaos.faults.catalogue import FAULTS
from tests.chaos.lab import Lab, LabError
from tests.chaos.plan import Round, plan
from tests.chaos.records import read
from tests.chaos.recovery import Recovery


class FakeLab:
    nodes = ("lab1", "lab2", "lab3")
    settled = 0

    def settle(self) -> None:
        self.settled += 1

    def description(self) -> str:
        return "debian 12, Docker 20.10.24"


Made = list[int]
ENTRIES = [FAULTS["disk-full"].entry]
ROUNDS = plan(17, 3, ENTRIES, FakeLab.nodes)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Rounds in a folder of the test's, with a fault and a recovery that do nothing."""
    found: Made = []
    monkeypatch.setattr(campaign, "FOLDER", tmp_path)
    monkeypatch.setattr(campaign, "ROUNDS", tmp_path / "rounds.jsonl")
    monkeypatch.setattr(Campaign, "_prepare", lambda self: None)
    monkeypatch.setattr(Campaign, "_whole", lambda self, label: None)
    monkeypatch.setattr(campaign, "recover", lambda attempt, fault: Recovery())
    monkeypatch.setattr(campaign, "digest", lambda root: "code")
    injected(monkeypatch, lambda attempt: found.append(attempt.round.number))
    return found


def injected(monkeypatch: pytest.MonkeyPatch, inject: Callable[[Attempt], None], **values: Any) -> None:
    fault = replace(FAULTS["disk-full"], inject=inject, **values)
    monkeypatch.setitem(FAULTS, "disk-full", fault)


def run(rounds: list[Round] = ROUNDS, keep_going: bool = False) -> int:
    return Campaign(cast(Lab, FakeLab()), 17, keep_going).run(rounds)


def recorded() -> list[tuple[int, str, str]]:
    return [(one.round, one.outcome, one.why) for one in read(campaign.ROUNDS)]


def test_rounds_are_made_once_and_go_on_where_they_were_left(made: Made) -> None:
    assert run(ROUNDS[:2]) == 0
    assert run() == run() == 0
    assert made == [1, 2, 3]
    assert [one[:2] for one in recorded()] == [(1, "converged"), (2, "converged"), (3, "converged")]


def test_a_corrected_collection_begins_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(campaign, "digest", lambda root: "corrected")
    run()
    assert made == [1, 2, 3, 1, 2, 3]


def test_an_interrupted_round_is_made_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(attempt: Attempt) -> None:
        made.append(attempt.round.number)
        if len(made) == 2:
            raise KeyboardInterrupt

    injected(monkeypatch, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert run() == 0
    assert made == [1, 2, 2, 3]


def test_the_first_failure_ends_it_unless_it_is_to_go_on(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(attempt: Attempt, fault: Fault) -> Recovery:
        return Recovery("verify.yml did not succeed") if attempt.round.number == 2 else Recovery()

    monkeypatch.setattr(campaign, "recover", fails)
    with pytest.raises(Stopped, match=r"^Round 2 \(disk-full\): failed\. Logs: .*KEEP_GOING=1"):
        run()
    assert recorded() == [(1, "converged", ""), (2, "failed", "verify.yml did not succeed")]
    # What failed is not tried again with the same code: it has been counted.
    assert run() == 0
    campaign.ROUNDS.unlink()
    assert run(keep_going=True) == 1
    assert made == [1, 2, 3, 1, 2, 3]


OUTCOMES: dict[str, tuple[Exception, str]] = {
    "a playbook failed before": (Failed("teardown.yml: oh"), "failed"),
    "the lab cannot have it": (Unsuited("no such engine"), "not made"),
    "the lab did not do it": (LabError("exit status 1"), "not made"),
}


@pytest.mark.parametrize(("error", "outcome"), OUTCOMES.values(), ids=OUTCOMES)
def test_a_fault_that_was_not_made_is_distinguished_from_a_failure(
    made: Made, monkeypatch: pytest.MonkeyPatch, error: Exception, outcome: str
) -> None:
    def raises(attempt: Attempt) -> None:
        raise error

    injected(monkeypatch, raises)
    assert run(ROUNDS[:1], keep_going=True) == (outcome == "failed")
    assert recorded() == [(1, outcome, str(error))]


def test_what_the_disturbed_run_did_wrong_is_a_failure_though_the_recovery_succeeds(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    injected(monkeypatch, lambda attempt: attempt.problems.append("it did not end in time"))
    assert run(ROUNDS[:1], keep_going=True) == 1
    assert recorded() == [(1, "failed", "it did not end in time")]


def test_a_fault_that_takes_too_long_is_a_failure(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    injected(monkeypatch, lambda attempt: None, limit=-1.0)
    assert run(ROUNDS[:1], keep_going=True) == 1
    assert "took 0 s of -1" in recorded()[0][2]


def test_a_refusal_is_an_outcome_of_its_own(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recovery("", ["lab1: is full. Remedy: make room"], ["by hand"])
    monkeypatch.setattr(campaign, "recover", lambda attempt, fault: found)
    run(ROUNDS[:1])
    (one,) = read(campaign.ROUNDS)
    assert (one.outcome, one.refusals, one.followed, one.nodes) == ("refused", found.refusals, ["by hand"], 3)


def test_files_that_change_meanwhile_end_it(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = iter(["code", "changed"])
    monkeypatch.setattr(campaign, "digest", lambda root: next(digests))
    with pytest.raises(Stopped, match="were changed meanwhile"):
        run()
    assert made == [1]


def test_a_second_suite_on_the_same_lab_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(Stopped, match="has a chaos suite already"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def no_lab() -> Lab:
    raise LabError("the lab 'x' is not up: run make lab LAB_NAME=x")


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(program, "Lab", no_lab)
    assert program.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FAULTS)
    assert program.main(["--dry-run", "--rounds", "4", "--seed", "3"]) == 0
    first = capsys.readouterr().out
    assert program.main(["--dry-run", "--rounds", "4", "--seed", "3"]) == 0
    assert capsys.readouterr().out == first and len(first.splitlines()) == 4
    assert program.main(["--dry-run", "--only", "disk-full"]) == 0
    assert capsys.readouterr().out.split()[1] == "disk-full"
    assert program.main([]) == 1
    assert capsys.readouterr().err == "the lab 'x' is not up: run make lab LAB_NAME=x\n"


def test_only_one_fault_means_its_next_rounds(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "digest", lambda root: "code")
    requested = program.arguments(["--only", "disk-full", "--rounds", "2"])
    numbers = []
    for dummy in range(2):
        rounds = program.rounds(requested, FakeLab.nodes)
        assert run(rounds) == 0
        numbers += [one.number for one in rounds]
    assert len(numbers) == len(set(numbers)) == 4 and made == numbers == sorted(numbers)
    every = plan(requested.seed, numbers[-1], ALL, FakeLab.nodes)
    assert [one.number for one in every if one.fault == "disk-full"] == numbers


@pytest.mark.parametrize("words", [["--only", "disk_ful"], ["--rounds", "0"], ["sing"]])
def test_a_wrong_command_line_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.arguments(words)
    assert ended.value.code == 2
