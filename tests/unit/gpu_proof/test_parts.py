# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Parts of a proof: their limits, what becomes of errors, and what is never written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.gpu_proof.commands import final_lines
from tests.gpu_proof.parts import Failed, Part, Proof, Skipped


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def part(clock: Clock, name: str, takes: float, outcome: Any = None, limit: float = 300) -> Part:
    """Return a part that takes so long, and what it was given."""

    def run(seconds: float) -> dict[str, Any]:
        clock.now += takes
        if isinstance(outcome, Exception):
            raise outcome
        return {"limit": seconds}

    return Part(name, limit, run)


def ran(clock: Clock, *parts: Part, **more: Any) -> list[dict[str, Any]]:
    return list(Proof(clock=clock, **more).run(iter(parts)))


def test_each_part_has_its_own_limit_within_that_of_all() -> None:
    clock = Clock()
    found = ran(clock, part(clock, "a", 250), part(clock, "b", 50), part(clock, "c", 1), limit=400)
    assert [result["found"]["limit"] for result in found] == [300, 150, 100]
    assert [result["seconds"] for result in found] == [250, 50, 1]


def test_nothing_is_begun_when_the_time_is_over() -> None:
    clock = Clock()
    found = ran(clock, part(clock, "a", 395), part(clock, "b", 1), limit=400)
    assert (found[1]["state"], found[1]["reason"], found[1]["seconds"]) == ("failed", "no time was left", 0)


@pytest.mark.parametrize(
    ("outcome", "state", "reason", "found"),
    [
        (Failed("the loss rose", {"losses": [1, 2]}), "failed", "the loss rose", {"losses": [1, 2]}),
        (Skipped("there is no nvcc"), "skipped", "there is no nvcc", {}),
        (ValueError("what\nis this"), "failed", "ValueError: what is this", {}),
    ],
)
def test_what_one_part_does_not_manage_does_not_end_the_others(
    outcome: Exception, state: str, reason: str, found: dict[str, Any]
) -> None:
    clock = Clock()
    proof = Proof(clock=clock)
    first, second = proof.run(iter([part(clock, "a", 1, outcome), part(clock, "b", 1)]))
    assert (first["state"], first["reason"], first["found"]) == (state, reason, found)
    assert (second["state"], second["reason"]) == ("passed", "")
    assert (proof.state("a"), proof.state("b"), proof.state("never ran")) == (state, "passed", "skipped")


def test_a_later_part_may_ask_how_an_earlier_one_ended() -> None:
    clock = Clock()
    proof = Proof(clock=clock)

    def parts() -> Any:
        yield part(clock, "a", 1, Skipped("no compiler"))
        seen: Callable[[float], dict[str, Any]] = lambda dummy: {"a": proof.state("a")}  # noqa: E731
        yield Part("b", 1, seen)

    assert list(proof.run(parts()))[1]["found"] == {"a": "skipped"}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("no file /home/ann/src/x.py on gpu7.example.com", "no file …/x.py on …"),
        ("see https://example.com/a/b", "see https://example.com/a/b"),
        ("10.1.0.11 refused GPU-11111111-2222-3333", "… refused …"),
        ("driver 580.159.04, torch 2.11.0", "driver 580.159.04, torch 2.11.0"),
        ("a\n  b", "a b"),
        ("x" * 600, "x" * 500),
    ],
)
def test_texts_do_not_name_the_machine(text: str, plain: str) -> None:
    assert Proof(secrets=("gpu7.example.com", "gpu7", "")).plain(text) == plain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\nRuntimeError: no GPU\nb\n", "RuntimeError: no GPU"),
        ("TASK\nfatal: [gpu]: FAILED!\nPLAY RECAP\n", "fatal: [gpu]: FAILED!"),
        ("a\nb\n\n", "b"),
        ("", "nothing"),
    ],
)
def test_last_words(text: str, words: str) -> None:
    assert final_lines(text) == words
