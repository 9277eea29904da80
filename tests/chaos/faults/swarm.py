# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What somebody with access to the swarm does to its nodes."""

from __future__ import annotations

from tests.chaos.faults.base import Attempt, Fault
from tests.chaos.faults.engine import SWARM_GONE
from tests.playbook_run import LEAVE_SWARM


def drained(attempt: Attempt) -> None:
    attempt.lab.run(attempt.lab.manager, f"docker node update --availability drain {attempt.target}")


def still_drained(attempt: Attempt) -> str:
    found = attempt.lab.member(attempt.target).availability
    return "" if found == "active" else f"{attempt.target} is {found} in the swarm"


def promoted(attempt: Attempt) -> None:
    attempt.lab.run(attempt.lab.manager, f"docker node promote {attempt.target}")


def still_promoted(attempt: Attempt) -> str:
    found = attempt.lab.member(attempt.target).role
    return "" if found == "worker" else f"{attempt.target} is {found} in the swarm"


def left(attempt: Attempt) -> None:
    attempt.lab.run(attempt.target, LEAVE_SWARM, timeout=200)


SWARM = (
    Fault("swarm-drained", "a node drained", drained, left=still_drained),
    Fault("swarm-promoted", "a worker promoted to manager", promoted, among="worker", left=still_promoted),
    Fault("swarm-left-worker", "a worker made to leave the swarm by force", left, among="worker"),
    Fault(
        "swarm-left-manager",
        "the only manager made to leave the swarm by force, which ends it",
        left,
        among="manager",
        refusal=SWARM_GONE,
    ),
)
