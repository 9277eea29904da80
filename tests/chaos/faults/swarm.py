# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What somebody with access to the swarm does to its nodes."""

from __future__ import annotations

from tests.chaos.faults.base import Attempt, Fault
from tests.chaos.faults.engine import SWARM_GONE
from tests.playbook_run import LEAVE_SWARM, container


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


# In both directions, whichever end has the port: no gossip passes, and everything else does.
GOSSIP = """
rules() {
    for chain in INPUT OUTPUT; do
        for protocol in tcp udp; do
            for end in sport dport; do
                iptables --wait --$1 $chain --protocol $protocol --$end 7946 --jump DROP
            done
        done
    done
}
trap 'rules delete' EXIT
rules insert
sleep 60
"""


def gossip_cut(attempt: Attempt) -> None:
    """For a minute, after which the others have given the node up (moby#53141)."""
    attempt.lab.run(attempt.target, GOSSIP, timeout=200)


def names_unknown(attempt: Attempt) -> str:
    """Ask the manager's container for that of the node, by the swarm's own names."""
    where, name = container(attempt.lab.manager), container(attempt.target)
    lookup = f"docker exec {where} getent hosts {name} >/dev/null || echo {name} is unknown in {where}"
    return attempt.lab.run(attempt.lab.manager, lookup).strip()


SWARM = (
    Fault("swarm-drained", "a node drained", drained, left=still_drained),
    Fault("swarm-promoted", "a worker promoted to manager", promoted, among="worker", left=still_promoted),
    Fault(
        "swarm-gossip-cut",
        "the gossip of a worker's engine (port 7946) dropped for a minute",
        gossip_cut,
        among="worker",
        left=names_unknown,
    ),
    Fault("swarm-left-worker", "a worker made to leave the swarm by force", left, among="worker"),
    Fault(
        "swarm-left-manager",
        "the only manager made to leave the swarm by force, which ends it",
        left,
        among="manager",
        refusal=SWARM_GONE,
    ),
)
