# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which node is at fault where the overlay network is cut, and whether its engine may be restarted."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.faults import at_fault, verdict
from hypothesis import given
from hypothesis import strategies as st

NODES = ("gpu1", "gpu2", "gpu3")
CONTAINERS = {node: f"ai-{node}" for node in NODES}


def reached(*cut: tuple[str, str]) -> dict[str, Any]:
    """What each container found, where these pairs are cut in both directions."""
    lost = {pair for a, b in cut for pair in ((a, b), (b, a))}
    return {
        source: {
            target: {"stage": "connect", "error": "No route to host"}
            if (source, target) in lost
            else {"stage": "done", "error": ""}
            for target in NODES
            if target != source
        }
        for source in NODES
    }


def facts(jobs: dict[str, str] | None = None, others: dict[str, str] | None = None) -> dict[str, Any]:
    """gpu2 has these jobs and containers, the others nothing but their own container."""
    return {
        node: {
            "jobs": (jobs or {}) if node == "gpu2" else {},
            "docker": {
                "containers": {
                    CONTAINERS[node]: {"state": "running"},
                    **({name: {"state": state} for name, state in (others or {}).items()} if node == "gpu2" else {}),
                }
            },
        }
        for node in NODES
    }


def test_nothing_is_cut() -> None:
    assert verdict(reached(), facts(), CONTAINERS, ["gpu1"]) == {"cut": [], "restart": [], "refused": [], "message": ""}


def test_the_node_that_has_a_part_in_all_of_it_is_restarted() -> None:
    found = verdict(reached(("gpu1", "gpu2"), ("gpu2", "gpu3")), facts(), CONTAINERS, ["gpu1"])
    assert found["restart"] == ["gpu2"] and found["refused"] == []
    assert found["cut"] == [
        "gpu1 and gpu2 (connect: No route to host)",
        "gpu2 and gpu3 (connect: No route to host)",
    ]
    assert found["message"] == (
        "gpu2: the overlay network is cut between the containers of gpu1 and gpu2 (connect: No route to host); gpu2 "
        "and gpu3 (connect: No route to host). Remedy: restart the engine there (systemctl restart docker on gpu2) "
        "when nothing runs on it, then ansible-playbook site.yml --tags training_container; verify.yml reports more."
    )


@pytest.mark.parametrize(
    ("jobs", "others", "what"),
    [
        ({"digits": "running"}, {}, "job digits"),
        ({"digits": "starting"}, {}, "job digits"),
        ({}, {"database": "running"}, "container database on gpu2"),
    ],
)
def test_nothing_that_runs_is_disturbed(jobs: dict[str, str], others: dict[str, str], what: str) -> None:
    found = verdict(reached(("gpu1", "gpu2"), ("gpu2", "gpu3")), facts(jobs, others), CONTAINERS, ["gpu1"])
    assert (found["restart"], found["refused"]) == ([], [what])
    assert (
        f". The engine was not restarted, as {what} would be disturbed. Remedy: restart the engine" in found["message"]
    )


@pytest.mark.parametrize(("jobs", "others"), [({"digits": "succeeded"}, {}), ({}, {"database": "exited"})])
def test_what_has_ended_holds_nothing_up(jobs: dict[str, str], others: dict[str, str]) -> None:
    found = verdict(reached(("gpu2", "gpu3")), facts(jobs, others), CONTAINERS, ["gpu3"])
    assert found["restart"] == ["gpu2"]


def test_a_job_on_another_node_goes_over_the_network_too() -> None:
    found = verdict(reached(("gpu1", "gpu3")), facts({"digits": "running"}), CONTAINERS, ["gpu1"])
    assert (found["restart"], found["refused"]) == ([], ["job digits"])


@pytest.mark.parametrize(
    ("managers", "others", "expected"),
    [
        (["gpu1"], {}, ["gpu2"]),
        (["gpu2"], {}, ["gpu1"]),
        (["gpu1"], {"database": "running"}, ["gpu1"]),  # idle before worker
    ],
)
def test_of_two_the_one_whose_restart_disturbs_least(
    managers: list[str], others: dict[str, str], expected: list[str]
) -> None:
    found = verdict(reached(("gpu1", "gpu2")), facts(others=others), CONTAINERS, managers)
    assert found["restart"] == expected


@given(st.sets(st.sampled_from(list(permutations("abcdef", 2)))))
def test_those_at_fault_have_a_part_in_every_pair_and_each_in_one(pairs: set[tuple[str, str]]) -> None:
    chosen = at_fault(sorted(pairs), ["a"])
    assert all(set(pair) & set(chosen) for pair in pairs)
    assert all(any(node in pair for pair in pairs) for node in chosen)
    assert len(chosen) == len(set(chosen))
