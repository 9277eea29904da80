# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whole nodes that go away in the middle of ``site.yml``, and one that comes back under another address."""

from __future__ import annotations

import time

from tests.chaos.faults.base import Attempt, Fault

NOTICED = 60.0
"""Seconds within which a playbook ends when a node has died and stays away."""
FROZEN = 45.0
STARTING = r"state pending|does not have a leader|wait a minute"
"""An engine that has just been started may not be back in its swarm yet."""


def node_rebooted(attempt: Attempt) -> None:
    attempt.during_site(
        lambda: attempt.lab.power(["restart", "-t", "20"], attempt.target), attempt.target, patience=300
    )
    attempt.lab.wait_for(attempt.target)


def node_power_cut(attempt: Attempt) -> None:
    """It stays away until the run has ended, which must be soon."""
    try:
        attempt.during_site(lambda: attempt.lab.power(["kill"], attempt.target), attempt.target, patience=NOTICED)
    finally:
        if attempt.lab.state(attempt.target) != "running":
            attempt.lab.power(["start"], attempt.target)
    attempt.lab.wait_for(attempt.target)


def all_power_cut(attempt: Attempt) -> None:
    nodes = attempt.lab.nodes
    try:
        attempt.during_site(lambda: attempt.lab.power(["kill"], *nodes), *nodes, patience=NOTICED)
    finally:
        attempt.lab.power(["start"], *(name for name in nodes if attempt.lab.state(name) != "running"))
    attempt.lab.wait_for(*nodes)


def node_frozen(attempt: Attempt) -> None:
    def freeze() -> None:
        attempt.lab.power(["pause"], attempt.target)
        try:
            time.sleep(FROZEN)
        finally:
            attempt.lab.power(["unpause"], attempt.target)

    attempt.during_site(freeze, attempt.target, patience=300)
    attempt.lab.wait_for(attempt.target)


def address_changed(attempt: Attempt) -> None:
    """The inventory follows, as its administrator sees to; what else depends on the address is the collection's."""
    address = attempt.lab.other_address(attempt.target)
    attempt.lab.readdress(attempt.target, address)
    attempt.lab.follow(attempt.target, address, attempt.runs.folder / "address.json")


def address_back(attempt: Attempt) -> None:
    attempt.lab.arguments = ()
    attempt.lab.readdress(attempt.target, attempt.lab.hosts[attempt.target]["ansible_host"])
    attempt.lab.wait_for(attempt.target)


POWER = (
    Fault("node-rebooted", "a node rebooted during `site.yml`", node_rebooted, refusal=STARTING),
    Fault(
        "node-power-cut",
        "a node's power cut during `site.yml`, back after the run has ended",
        node_power_cut,
        refusal=STARTING,
    ),
    Fault(
        "all-power-cut",
        "the power of all nodes cut during `site.yml`",
        all_power_cut,
        among="all",
        refusal=STARTING,
    ),
    Fault("node-frozen", f"a node frozen for {FROZEN:.0f} s during `site.yml`", node_frozen, refusal=STARTING),
    Fault(
        "address-changed",
        "a node has another address, and the inventory says so; later its old one again",
        address_changed,
        refusal=r"address|underlay|reach",
        undo=address_back,
    ),
)
