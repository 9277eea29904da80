# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which fault is made in which round, when, and to which node: a pure function of the seed.

A cycle holds every fault as many times as it says, in an order of chance; the rounds are as many cycles as are needed.
What is drawn for a round depends on the seed and its number alone, so a shorter plan is the beginning of a longer one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

Among = Literal["any", "manager", "worker", "all"]
Scope = Literal["tree", "main"]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Entry:
    """A fault as the plan sees it: how many rounds of a cycle it has, and whom it may hit."""

    fault: str
    times: int = 1
    among: Among = "any"


@dataclass(frozen=True)
class Round:
    """One round: what is drawn before anything is known of how long a playbook takes."""

    number: int
    fault: str
    target: str
    """A node; empty where all are hit."""
    moment: float
    """When, as a part of the time that the playbook is expected to take: 0 is its start, 1 its end."""
    second: float
    """The same for faults that strike twice."""
    scope: Scope
    """What SIGKILL meets: the controller with every process below it, or its main process alone."""

    def line(self) -> str:
        who = self.target or "all nodes"
        kills = f"  kills {self.scope}" if self.fault.startswith("kill-") else ""
        return f"{self.number:4}  {self.fault:22}  {who:9}  at {self.moment:.2f}, {self.second:.2f}{kills}"


def plan(seed: int, rounds: int, entries: Sequence[Entry], nodes: Sequence[str]) -> list[Round]:
    """Return the rounds 1 to ``rounds``. The first node is the manager, as in the lab's inventory."""
    if not entries or not nodes or any(entry.times < 1 for entry in entries):
        raise ValueError("a plan needs nodes, and faults with a round each")
    found: list[Round] = []
    cycle = 0
    while len(found) < rounds:
        share = [entry for entry in entries for dummy in range(entry.times)]
        order = _shuffled(random.Random(f"{seed}:cycle:{cycle}"), share)
        for entry in order[: rounds - len(found)]:
            found.append(_drawn(seed, len(found) + 1, entry, nodes))
        cycle += 1
    return found


def rounds_of(fault: str, count: int, seed: int, entries: Sequence[Entry], nodes: Sequence[str]) -> list[Round]:
    """Return the first ``count`` rounds of one fault, with the numbers they have in the whole plan."""
    (times,) = [entry.times for entry in entries if entry.fault == fault]
    cycles = -(-count // times)
    whole = plan(seed, cycles * sum(entry.times for entry in entries), entries, nodes)
    return [one for one in whole if one.fault == fault][:count]


def cycle_length(entries: Iterable[Entry]) -> int:
    return sum(entry.times for entry in entries)


def _drawn(seed: int, number: int, entry: Entry, nodes: Sequence[str]) -> Round:
    chance = random.Random(f"{seed}:round:{number}")
    moment, second, whom, scope = (chance.random() for dummy in range(4))
    candidates = {"any": nodes, "manager": nodes[:1], "worker": nodes[1:] or nodes[:1], "all": [""]}[entry.among]
    return Round(
        number=number,
        fault=entry.fault,
        target=candidates[int(whom * len(candidates))],
        moment=round(moment, 4),
        second=round(second, 4),
        scope="tree" if scope < 0.5 else "main",
    )


def _shuffled(chance: random.Random, items: Sequence[Item]) -> list[Item]:
    """Only random() is promised to be the same in every release of Python, so shuffle() is not used."""
    return [item for dummy, item in sorted(((chance.random(), item) for item in items), key=lambda pair: pair[0])]
