# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An attacker on the path between two supervisors that have proved themselves can read and cut, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.wire import FRAME_TIME

from tests.adversary.channel import Job, lines

END = {"t": "end", "state": "stopped", "reason": "on request", "grace": 20}
LISTEN = {"t": "list", "folder": "/checkpoints"}
FORGED = b'{"t":"stop","reason":"forged"}'
FORGED_END = b'{"t":"bye","state":"failed","reason":"forged"}'


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job().together()
    yield made
    made.close()


def say(job: Job, *texts: str) -> None:
    """The follower sends one message after another, each a chunk of its own for who is on the path."""
    for text in texts:
        job.link.send(lines(text))
        job.turns(4)
    job.turns(6)


def received(job: Job) -> list[str]:
    return [message["lines"][0][1] if message["t"] == "lines" else message["t"] for _node, message in job.to_leader]


def test_untouched_all_is_received(job: Job) -> None:
    say(job, "one", "two", "three")
    job.hub.send("lab2", END)
    job.until(lambda: job.to_follower == [END])
    assert received(job) == ["one", "two", "three"]
    assert job.noted == []


class Hand:
    """What the attacker does with the messages of one direction, by their number from when it begins."""

    def __init__(self, how: str) -> None:
        self.how, self.seen = how, list[bytes]()

    def __call__(self, chunk: bytes) -> list[bytes]:
        self.seen.append(chunk)
        change = HOWS[self.how].get(len(self.seen))
        return change(self.seen) if change else [chunk]


HOWS: dict[str, dict[int, Callable[[list[bytes]], list[bytes]]]] = {
    "alter": {1: lambda seen: [seen[0].replace(b"accuracy 0.98", b"accuracy 0.02")]},
    "drop": {1: lambda _seen: []},
    "replay": {1: lambda seen: [seen[0], seen[0]]},
    "reorder": {1: lambda _seen: [], 2: lambda seen: [seen[1], seen[0]]},
    "truncate": {1: lambda seen: [seen[0][:-3]]},
    "shift": {1: lambda seen: [seen[0][1:]]},
    "extend": {1: lambda seen: [seen[0] + b"\n"]},
}


@pytest.mark.parametrize("how", HOWS)
def test_to_the_leader(job: Job, how: str) -> None:
    job.proxy.to_leader = Hand(how)
    sent = ["accuracy 0.98", "two", "three"]
    say(job, *sent)
    assert received(job) == sent[: len(received(job))] and len(received(job)) < 3, received(job)
    job.clock.now += FRAME_TIME + 1  # of what was cut, the rest never comes
    job.turns(4)
    job.proxy.to_leader = job.proxy.pass_on
    job.goes_on()
    assert job.link.greeted == 2, "it had to authenticate again"
    assert job.beside.greeted == 1, "no other member lost a connection"
    assert [subject for subject, _text in job.noted if subject != "strangers"] == ["lab2"]


@pytest.mark.parametrize("how", HOWS)
def test_to_the_follower(job: Job, how: str) -> None:
    job.proxy.to_follower = Hand(how)
    sent: list[dict[str, Any]] = [{**END, "reason": "accuracy 0.98"}, LISTEN, {**END, "reason": "three"}]
    for message in sent:
        job.hub.send("lab2", message)
        job.turns(4)
    assert job.to_follower == sent[: len(job.to_follower)] and len(job.to_follower) < 3
    job.clock.now += FRAME_TIME + 1
    job.turns(4)
    job.proxy.to_follower = job.proxy.pass_on
    job.goes_on()
    assert job.link.greeted == 2


def test_what_the_leader_sent_is_not_believed_by_the_leader(job: Job) -> None:
    job.proxy.to_follower = lambda chunk: job.proxy.inject(to_leader=chunk) or []  # type: ignore[func-returns-value]
    job.hub.send("lab2", END)
    job.turns()
    assert job.to_leader == []
    job.proxy.to_follower = job.proxy.pass_on
    job.goes_on()


def test_what_a_follower_sent_is_not_believed_by_that_follower(job: Job) -> None:
    job.proxy.to_leader = lambda chunk: job.proxy.inject(to_follower=chunk) or []  # type: ignore[func-returns-value]
    job.link.send({"t": "stop", "reason": "on request"})
    job.turns()
    assert job.to_follower == []
    job.proxy.to_leader = job.proxy.pass_on
    job.goes_on()


@pytest.mark.parametrize(
    "data",
    [
        FORGED + b"\n",
        len(FORGED).to_bytes(4, "big") + bytes(32) + FORGED,
        (1 << 31).to_bytes(4, "big") + bytes(32),
        b"[" * 70000 + b"\n",
    ],
    ids=["a line", "a frame", "a huge frame", "deep nesting"],
)
def test_nothing_can_be_put_in_for_the_leader(job: Job, data: bytes) -> None:
    job.proxy.inject(to_leader=data)
    job.turns()
    assert job.to_leader == []
    assert [subject for subject, _text in job.noted] == ["lab2"]
    job.goes_on()


@pytest.mark.parametrize("data", [FORGED_END + b"\n", len(FORGED_END).to_bytes(4, "big") + bytes(32) + FORGED_END])
def test_nothing_can_be_put_in_for_the_follower(job: Job, data: bytes) -> None:
    job.proxy.inject(to_follower=data)
    job.turns()
    assert job.to_follower == []
    job.goes_on()


def test_a_channel_cannot_be_taken_over(job: Job) -> None:
    # The follower is cut off, its connection to the leader kept and spoken on.
    job.proxy.to_leader = lambda _chunk: []
    job.proxy.inject(to_leader=FORGED + b"\n")
    job.turns()
    assert job.to_leader == []
    assert job.hub.connected() == ["lab3"]


def test_what_was_said_on_an_earlier_connection_is_not_heard_again(job: Job) -> None:
    recorded: list[bytes] = []
    job.proxy.to_leader = lambda chunk: recorded.append(chunk) or [chunk]  # type: ignore[func-returns-value]
    say(job, "one")
    job.proxy.cut()
    job.proxy.to_leader = job.proxy.pass_on
    job.until(lambda: not job.link.welcome and job.hub.connected() == ["lab3"])
    job.goes_on()
    job.to_leader.clear()
    job.proxy.inject(to_leader=recorded[0])
    job.turns()
    assert job.to_leader == []
    job.goes_on()


def test_a_frame_that_never_ends_does_not_mute_a_follower(job: Job) -> None:
    job.proxy.to_leader = lambda chunk: [b"\x00\x0f\xff\xff" + chunk[4:]]  # the length says a megabyte
    say(job, "one", "two")
    job.proxy.to_leader = job.proxy.pass_on
    job.clock.now += FRAME_TIME + 1
    job.turns()
    assert "a message did not come whole within 5 s" in job.noted[0][1]
    job.goes_on()


def test_bytes_of_an_attacker_are_no_sign_of_life(job: Job) -> None:
    job.proxy.to_leader = lambda _chunk: []
    before = job.hub.last_seen["lab2"]
    job.clock.now += 1
    job.proxy.inject(to_leader=b"\x00")
    job.turns()
    assert job.hub.last_seen["lab2"] == before


class Flip:
    """Changes one bit, somewhere in what goes by."""

    def __init__(self, rand: random.Random) -> None:
        self.at, self.bit, self.seen = rand.randrange(500), 1 << rand.randrange(8), 0

    def __call__(self, chunk: bytes) -> list[bytes]:
        begin, self.seen = self.seen, self.seen + len(chunk)
        if begin <= self.at < self.seen:
            place = self.at - begin
            return [chunk[:place] + bytes([chunk[place] ^ self.bit]) + chunk[place + 1 :]]
        return [chunk]


@pytest.mark.parametrize("seed", range(12))
def test_whichever_bit_is_changed_nothing_false_is_received(seed: int) -> None:
    rand = random.Random(seed)
    job = Job()
    try:
        to_leader, to_follower = Flip(rand), Flip(rand)
        job.proxy.to_leader, job.proxy.to_follower = to_leader, to_follower
        for number in range(12):
            job.link.send(lines(f"line {number}"))
            job.hub.send("lab2", {**LISTEN, "folder": f"/{number}"})
            job.turns(3)
            job.clock.now += 0.7
        job.clock.now += FRAME_TIME + 1
        job.turns(6)
        numbers = [int(text.split()[1]) for text in received(job)]
        folders = [int(message["folder"][1:]) for message in job.to_follower]
        for found in (numbers, folders):
            assert found == sorted(set(found))
            assert set(found) <= set(range(12))
        assert to_leader.seen > to_leader.at or to_follower.seen > to_follower.at
        job.proxy.to_leader = job.proxy.to_follower = job.proxy.pass_on
        job.goes_on()
    finally:
        job.close()
