# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Changes, and the plan that is folded from the plans of roles: over invented planners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import Problem
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.changes import (
    ADD,
    CHANGE,
    REMOVE,
    Change,
    Changes,
    Consent,
    Counts,
    Inputs,
    PlanError,
    RolePlan,
    Unknown,
    sealed,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.fold import Facts, Plan, Wishes, fold
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.outcome import outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

INPUTS = Inputs()

UNKNOWN_HOST = "the planner of one speaks of b, whose facts it was not given"


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        (None, 1, ADD),
        (None, Unknown("apt chooses"), ADD),
        (None, sealed("x", "k"), ADD),
        (1, None, REMOVE),
        (1, 2, CHANGE),
        (1, True, CHANGE),
        (1, 1.0, CHANGE),
        ([1], [True], CHANGE),
        ("1", Unknown("apt chooses"), CHANGE),
        (sealed("x", "k"), sealed("y", "k"), CHANGE),
    ],
)
def test_the_sign_follows_from_before_and_after(before: Any, after: Any, action: str) -> None:
    changes = Changes("docker", "gpu1")
    assert changes.add("it", before, after) == Change("docker", "gpu1", "it", action, before, after)
    for wrong in {ADD, CHANGE, REMOVE} - {action}:
        with pytest.raises(PlanError, match="does not lead from before to after"):
            Change("docker", "gpu1", "it", wrong, before, after)


@pytest.mark.parametrize("value", [None, 1, "x", [1, {"a": 2}], Unknown("u"), sealed("x", "k")])
def test_what_stays_as_it_is_is_no_change(value: Any) -> None:
    with pytest.raises(PlanError, match="would become what it is"):
        Changes("docker", "gpu1").add("it", value, value)


def test_a_seal_holds_no_secret_and_differs_with_the_key() -> None:
    assert "hunter2" not in repr(sealed("hunter2", "k"))
    assert sealed("hunter2", "k") == sealed("hunter2", "k") != sealed("hunter2", "other")
    assert sealed("hunter2", "k") != sealed("hunter3", "k")


def test_a_consent_that_is_given_is_not_missing() -> None:
    for given_ in (True, False):
        consent = Consent("docker_allow_restart", "the engine must be restarted", given_, "stop the containers first")
        change = Change("docker", "gpu1", "service", CHANGE, 1, 2, consent=consent)
        assert change.missing_consent == (None if given_ else consent)
    assert consent.remedy == "set docker_allow_restart: true to allow it, or stop the containers first"
    assert Consent("x_y", "it stops", False).remedy == "set x_y: true to allow it"
    assert Consent("x_y", "it stops", False, value="if_needed").remedy == "set x_y: if_needed to allow it"


class Install:
    """An invented role: installs what is wished and not there, and counts what the roles before it have left."""

    def __init__(self, role: str) -> None:
        self.role = role

    def files(self, wishes: Mapping[str, Any]) -> Sequence[str]:
        return ()

    def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
        changes = []
        after: dict[str, Mapping[str, Any]] = {}
        for host, found in facts.items():
            missing = [name for name in wishes[host].get(self.role, []) if name not in found["there"]]
            changes += [Change(self.role, host, name, ADD, None, True) for name in missing]
            if missing:
                after[host] = {**found, "there": [*found["there"], *missing]}
        acts = {host: {"seen": list(found["there"])} for host, found in facts.items()}
        refusals = [
            Problem(host, "is cursed", "bless it", role=self.role) for host, f in facts.items() if f.get("cursed")
        ]
        return RolePlan(changes, refusals, acts, after)


def test_a_role_plans_on_what_the_roles_before_it_leave() -> None:
    facts: dict[str, dict[str, Any]] = {"b": {"there": []}, "a": {"there": ["x"], "cursed": True}}
    wishes = {"a": {"one": ["x", "y"], "two": ["y", "z"]}, "b": {"two": ["x"]}}
    plan = fold([Install("one"), Install("two")], facts, wishes, INPUTS)
    assert (plan.roles, plan.hosts) == (("one", "two"), ("b", "a"))
    # By host in the order given, then in the order of roles.
    assert [(change.host, change.role, change.what) for change in plan.changes] == [
        ("b", "two", "x"),
        ("a", "one", "y"),
        ("a", "two", "z"),
    ]
    assert plan.acts["a"] == {"one": {"seen": ["x"]}, "two": {"seen": ["x", "y"]}}
    assert plan.facts["a"]["there"] == ["x", "y", "z"] and facts["a"]["there"] == ["x"]
    assert plan.counts == Counts(add=3) and plan.counts.total == 3
    assert [one.sentence for one in plan.refused("two", "a")] == ["is cursed. Remedy: bless it"]
    assert plan.pending("one", "a") and not plan.pending("one", "b")


def test_a_refusal_alone_is_pending() -> None:
    plan = fold([Install("one")], {"a": {"there": [], "cursed": True}}, {"a": {}}, INPUTS)
    assert plan.pending("one", "a") and plan.changes == ()


def test_tags_restrict_what_is_shown_and_nothing_that_is_planned() -> None:
    facts: dict[str, dict[str, Any]] = {"a": {"there": [], "cursed": True}}
    plan = fold([Install("one"), Install("two")], facts, {"a": {"one": ["x"], "two": ["x", "y"]}}, INPUTS)
    part = plan.only(["two", "swarm"])
    # Role two finds x, which role one would have installed.
    assert [(change.role, change.what) for change in part.changes] == [("two", "y")]
    assert (part.roles, part.acts, len(part.refusals)) == (
        ("two",),
        {"a": {"two": {"seen": ["x"]}}},
        1,
    )
    assert plan.only(plan.roles) == plan


NAMES = st.sampled_from(["p", "q", "r", "s"])
LISTS = st.lists(NAMES, unique=True, max_size=4)
HOSTS = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.fixed_dictionaries({"there": LISTS}), max_size=3)


@settings(deadline=None, derandomize=True, max_examples=examples(200))
@given(HOSTS, st.fixed_dictionaries(dict.fromkeys(("one", "two", "three"), LISTS)))
def test_once_all_is_done_nothing_is_left_to_do(hosts: dict[str, Any], wished: dict[str, list[str]]) -> None:
    planners = [Install(role) for role in wished]
    wishes = dict.fromkeys(hosts, wished)
    plan = fold(planners, hosts, wishes, INPUTS)
    assert {(change.host, change.what) for change in plan.changes} == {
        (host, name)
        for host in hosts
        for names in wished.values()
        for name in names
        if name not in hosts[host]["there"]
    }
    assert plan.counts.total == len(plan.changes) == len({(change.host, change.what) for change in plan.changes})
    assert fold(planners, plan.facts, wishes, INPUTS).changes == ()
    assert sum(len(plan.of(role, host)) for role in plan.roles for host in plan.hosts) == len(plan.changes)
    assert sum(plan.only([role]).counts.total for role in plan.roles) == plan.counts.total


class Fixed:
    """A planner with a fault."""

    role = "one"

    def __init__(self, made: RolePlan) -> None:
        self.made = made

    def files(self, wishes: Mapping[str, Any]) -> Sequence[str]:
        return ()

    def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
        return self.made


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (RolePlan([Change("two", "a", "x", ADD, None, 1)]), "the planner of one speaks of two on a"),
        (
            RolePlan([Change("one", "b", "x", ADD, None, 1)]),
            UNKNOWN_HOST,
        ),
        (
            RolePlan(refusals=[Problem("b", "x", "y", role="one")]),
            UNKNOWN_HOST,
        ),
        (RolePlan(acts={"b": {}}), UNKNOWN_HOST),
        (RolePlan(facts={"b": {}}), UNKNOWN_HOST),
        (
            RolePlan([Change("one", "a", "x", ADD, None, 1), Change("one", "a", "x", ADD, None, 2)]),
            "the planner of one changes x of a twice",
        ),
    ],
)
def test_a_planner_with_a_fault_is_named(made: RolePlan, text: str) -> None:
    with pytest.raises(PlanError, match=f"^{text}$"):
        fold([Fixed(made)], {"a": {}}, {"a": {}}, INPUTS)


def test_a_plan_of_nothing() -> None:
    assert fold([], {"a": {}}, {}, INPUTS) == Plan((), ("a",), acts={"a": {}}, facts={"a": {}})


def test_what_a_planner_says_of_the_cluster_those_after_it_find() -> None:
    seen: list[dict[str, Any]] = []

    class Speaker:
        def __init__(self, role: str, **reported: Any) -> None:
            self.role, self.reported = role, reported

        def files(self, wishes: Mapping[str, Any]) -> Sequence[str]:
            return ()

        def plan(self, facts: Facts, wishes: Wishes, inputs: Inputs) -> RolePlan:
            seen.append(dict(inputs.cluster))
            return RolePlan(cluster=self.reported)

    made = fold([Speaker("a", image="x:1"), Speaker("b"), Speaker("c", more=1)], {}, {}, Inputs({"hosts": []}))
    assert seen == [{"hosts": []}, {"hosts": [], "image": "x:1"}, {"hosts": [], "image": "x:1"}]
    assert made.cluster == made.only([]).cluster == {"hosts": [], "image": "x:1", "more": 1}
    assert outcome(made, "run", [])["image"] == "x:1"


def test_verify_does_not_fail_at_what_is_tolerated() -> None:
    changes = Changes("docker", "gpu1")
    changes.add("an old thing", True, None, tolerated=True)
    changes.add("a new thing", None, 1)
    found = outcome(Plan(("docker",), ("gpu1",), tuple(changes.found)), "run", ["docker"])
    assert found["drift"] == {"gpu1": {"docker": ["a new thing is missing"]}}
    assert found["document"]["counts"] == {"add": 1, "change": 0, "remove": 1}
