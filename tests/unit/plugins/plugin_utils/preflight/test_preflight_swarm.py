# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which swarm is this cluster's. The facts are invented, in the shape that node_facts gives them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.swarm.foreign import check_foreign_swarm
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

NONE = {"running": True, "swarm": {"state": "inactive", "node_id": None, "manager": False, "nodes": [], "labels": {}}}
STOPPED = {
    "running": False,
    "swarm": {"state": "inactive"},
    "error": "no answer from the Docker engine at /var/run/docker.sock",
}
LEAVE = "Remedy: set swarm_allow_leave_foreign: true to make it leave that swarm"


def manager(node_id: str, *nodes: str, label: str | None = "demo", cluster_id: str = "c1") -> dict[str, Any]:
    swarm = {
        "state": "active",
        "node_id": node_id,
        "manager": True,
        "cluster_id": cluster_id,
        "labels": {} if label is None else {"swarmspeed.cluster": label},
        "nodes": [{"id": name} for name in (node_id, *nodes)],
    }
    return {"running": True, "swarm": swarm}


def worker(node_id: str) -> dict[str, Any]:
    return {
        "running": True,
        "swarm": {
            "state": "active",
            "node_id": node_id,
            "manager": False,
            "cluster_id": None,
            "labels": {},
            "nodes": [],
        },
    }


def stuck(state: str, error: str | None = None) -> dict[str, Any]:
    return {"running": True, "swarm": {"state": state, "node_id": "n", "manager": False, "error": error}}


def lines(docker: dict[str, Any], managers: str = "a", *, leave: bool = False, adopt: bool = False) -> list[str]:
    found = check_foreign_swarm(docker, managers=list(managers), cluster_name="demo", leave_foreign=leave, adopt=adopt)
    return [problem.line() for problem in found]


def other(host: str, role: str) -> str:
    return f"{host}: is in another Docker swarm, as {role}. {LEAVE}, or take the host out of the inventory."


@pytest.mark.parametrize(
    ("docker", "managers"),
    [
        ({"a": NONE, "b": NONE}, "a"),
        ({"a": STOPPED, "b": STOPPED}, "a"),
        ({"a": manager("1")}, "a"),
        ({"a": manager("1", "2"), "b": worker("2"), "c": NONE}, "a"),
        ({"a": manager("1", "2"), "b": manager("2", "1", "3"), "c": worker("3")}, "abc"),
        ({"b": worker("2")}, "a"),  # unknown without the first manager's facts
        ({"b": worker("2")}, ""),
    ],
)
def test_nothing_to_complain_about(docker: dict[str, Any], managers: str) -> None:
    assert lines(docker, managers) == []


@pytest.mark.parametrize(
    ("docker", "expected"),
    [
        ({"a": NONE, "b": worker("2")}, [other("b", "a worker")]),
        ({"a": STOPPED, "b": manager("2")}, [other("b", "a manager")]),
        ({"a": manager("1", "2"), "b": worker("9")}, [other("b", "a worker")]),
        ({"a": manager("1", "2"), "b": manager("9", "8", cluster_id="c2")}, [other("b", "a manager")]),
        (
            {"a": worker("1"), "b": NONE},
            [f"a: is a worker of another Docker swarm, but is to be this cluster's first manager. {LEAVE}."],
        ),
        (
            {"a": manager("1", "2", label=None), "b": worker("2")},
            [
                "a: is a manager of a Docker swarm that is not cluster demo's: it does not bear the label "
                f"swarmspeed.cluster. {LEAVE}, or swarm_allow_adopt: true to use that swarm for this cluster.",
                other("b", "a worker"),
            ],
        ),
        (
            {"a": manager("1", label="other")},
            [
                "a: is a manager of a Docker swarm that is not cluster demo's: it bears the label "
                f"swarmspeed.cluster=other. {LEAVE}, or swarm_allow_adopt: true to use that swarm for this cluster."
            ],
        ),
    ],
)
def test_foreign(docker: dict[str, Any], expected: list[str]) -> None:
    assert lines(docker) == expected
    assert lines(docker, leave=True) == []


@pytest.mark.parametrize("label", [None, "other", "demo"])
def test_adopt_takes_the_first_managers_swarm_and_no_other(label: str | None) -> None:
    docker = {"a": manager("1", "2", label=label), "b": worker("2"), "c": worker("9")}
    assert lines(docker, adopt=True) == [other("c", "a worker")]


def test_adopt_needs_a_manager() -> None:
    assert lines({"a": worker("1")}, adopt=True) == [
        f"a: is a worker of another Docker swarm, but is to be this cluster's first manager. {LEAVE}."
    ]


@pytest.mark.parametrize("first", [NONE, worker("1"), manager("1", label=None, cluster_id="c9")])
def test_a_swarm_that_lives_on_in_another_manager_is_not_given_up_by_accident(first: dict[str, Any]) -> None:
    docker = {"a": first, "b": manager("2", "1", "3"), "c": manager("3", "1", "2"), "d": worker("9")}
    assert lines(docker, "abc") == [
        "b: is a manager of this cluster's swarm, but a, the first host of group managers, is not. "
        "Remedy: list b first in group managers; with swarm_allow_leave_foreign: true that swarm is given up instead.",
        other("d", "a worker"),
    ]
    assert lines(docker, "bac", leave=False)[-1] == other("d", "a worker")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            stuck("pending"),
            "b: is still being taken into a swarm (state pending). "
            "Remedy: wait a minute and run again; if it stays so, run `docker swarm leave --force` there.",
        ),
        (
            stuck("error", "rpc error: node is not\npart of a swarm."),
            "b: is in a swarm whose state is error: rpc error: node is not part of a swarm. "
            "Remedy: see `docker info` there; `docker swarm leave --force` takes the host out of that swarm.",
        ),
        (
            stuck("locked"),
            "b: is in a locked swarm. Remedy: run `docker swarm unlock` there, "
            "or `docker swarm leave --force` to take the host out of that swarm.",
        ),
        (
            {"running": False, "swarm": {"state": "inactive"}, "error": "The swarm does not have a leader."},
            "b: is in a swarm that does not work: The swarm does not have a leader. Remedy: bring back that swarm's "
            "other managers; where they are lost, `docker swarm init --force-new-cluster` there keeps the swarm with "
            "this one, and `docker swarm leave --force` gives it up.",
        ),
    ],
)
@pytest.mark.parametrize("leave", [False, True])
def test_a_swarm_that_does_not_work_is_reported_whatever_is_allowed(
    facts: dict[str, Any], expected: str, leave: bool
) -> None:
    assert lines({"a": NONE, "b": facts}, leave=leave) == [expected]


SWARM = st.builds(
    lambda state, node_id, is_manager, cluster_id, label, nodes: {
        "swarm": {
            "state": state,
            "node_id": node_id,
            "manager": is_manager,
            "cluster_id": cluster_id,
            "labels": {"swarmspeed.cluster": label},
            "nodes": nodes,
        }
    },
    st.sampled_from(["active", "inactive", None]),
    st.sampled_from(["1", "2", "3", None]),
    st.booleans(),
    st.sampled_from(["c1", "c2", None]),
    st.sampled_from(["demo", "other", None, 3]),
    st.lists(st.dictionaries(st.just("id"), st.sampled_from(["1", "2", "3", None]), max_size=1), max_size=3)
    | st.none(),
)


@settings(max_examples=examples(200), deadline=None)
@given(docker=st.dictionaries(st.sampled_from("abc"), SWARM), adopt=st.booleans())
def test_only_active_hosts_are_named_and_only_without_consent(docker: dict[str, Any], adopt: bool) -> None:
    found = lines(docker, "ab", adopt=adopt)
    active = {host for host, facts in docker.items() if facts["swarm"]["state"] == "active"}
    assert {line.split(":")[0] for line in found} <= active
    half_out = {host for host in active if not docker[host]["swarm"].get("node_id")}
    assert {line.split(":")[0] for line in lines(docker, "ab", adopt=adopt, leave=True)} == half_out
    if "a" in docker and not found:
        # Nothing to say: whoever is active is in the swarm of a manager that bears the label or is adopted.
        assert not active or (docker["a"]["swarm"]["manager"] and "a" in active)


def test_a_leave_that_hung_is_distinguished_from_another_swarm() -> None:
    half = {"running": True, "swarm": {"state": "active", "node_id": None, "manager": False}}
    expected = (
        "b: has an engine that is half out of a swarm (active without a node id). "
        "Remedy: run `systemctl restart docker` there, as a `docker swarm leave` has hung."
    )
    assert lines({"a": manager("1", "2"), "b": half}) == [expected]
    # Leaving is what hung: consent to leave does not fix it.
    assert lines({"a": manager("1", "2"), "b": half}, leave=True) == [expected]


def test_a_dead_swarm_that_is_recorded_as_this_clusters_is_not_another_one() -> None:
    docker = {"a": NONE, "b": worker("n2"), "c": worker("n3")}

    def refused(*own: str, **more: Any) -> list[str]:
        given = {**docker, **more}
        options: dict[str, Any] = {"cluster_name": "demo", "leave_foreign": False, "adopt": False}
        return [found.subject for found in check_foreign_swarm(given, managers=["a"], own=own, **options)]

    assert (refused(), refused("b"), refused("b", "c")) == (["b", "c"], ["c"], [])
    # As long as a manager lists it, it is not dead.
    assert refused("b", "c", c=manager("n3", "n2", label="other")) == ["b", "c"]
