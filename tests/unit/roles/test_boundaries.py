# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Accepted boundary values: the scenario boundaries tries each variable, or there is a reason; each is accepted."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import judge
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.kinds import KINDS as ALL_KINDS

from tests.boundaries.programs import ON_THE_CONTROLLER, SCRIPTS, written
from tests.boundaries.values import (
    CONSTRAINTS,
    DAEMON,
    ELSEWHERE,
    KINDS,
    NODES,
    OPTIONS,
    RULES,
    SETS,
    derived,
    given,
    kinds_of,
    values_of,
)

VALUES = [(kind, written(value)) for kind, values in KINDS.items() for value in values]
BY_CONSTRAINT = frozenset({"boolean", "choice", "number", "whole_number", "yes_or_no", "pattern", "mapping"})
"""Kinds whose boundary is with the variable: its range, its choices, its own pattern."""


def tried_by_program(name: str) -> bool:
    kinds = kinds_of(CONSTRAINTS[name])
    return bool(kinds) and kinds <= set(KINDS)


def text(value: Any) -> str:
    """Return a value as it is compared: 0 and 0.0 are one, false is not 0."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{float(value):g}" if number else str(value)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_variable_is_in_a_set_or_of_a_kind_that_is_tried_or_there_is_a_reason(name: str) -> None:
    assert name in ELSEWHERE or values_of(name) or tried_by_program(name), name


@pytest.mark.parametrize("name", sorted(name for name in RULES if name not in ELSEWHERE and derived(name)))
def test_the_ends_of_its_constraint_are_tried_or_there_is_a_reason(name: str) -> None:
    found = {text(value) for value in values_of(name)}
    if not found and tried_by_program(name):
        return
    missing = [end for end in derived(name) if text(end) not in found and f"{name}={end}" not in ELSEWHERE]
    assert not missing, (name, missing)


def test_a_reason_is_for_what_is_not_tried() -> None:
    for item, why in ELSEWHERE.items():
        name, end = f"{item}=".split("=")[:2]
        assert name in RULES and len(why) > 10, item
        found = values_of(name)
        if "=" in item:
            assert end in map(str, derived(name)), item
            assert text(end) not in map(text, found), item
        else:
            assert not found, item


@pytest.mark.parametrize("name", sorted(SETS))
def test_the_constraints_accept_the_sets(name: str) -> None:
    for node, values in zip(NODES, given(name), strict=True):
        faults = {
            variable: fault.text
            for variable, value in values.items()
            if (fault := judge(variable, RULES[variable], OPTIONS[variable], value))
        }
        assert not faults, node


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(VALUES)])
def test_the_kind_accepts_its_values(kind: str, value: Any) -> None:
    assert ALL_KINDS[kind].accepts(value)


def test_every_kind_has_values_and_a_program() -> None:
    assert set(KINDS) == {*SCRIPTS, *ON_THE_CONTROLLER}
    assert all(len(values) >= 2 for values in KINDS.values())
    used = set().union(*(kinds_of(part) for part in CONSTRAINTS.values()))
    assert used - set(KINDS) - BY_CONSTRAINT == {"kernel", "pgp_key", "script"}


def test_the_keys_of_daemon_json_have_their_ends() -> None:
    name = "docker_daemon_config"
    assert set(DAEMON) == set(CONSTRAINTS[name]["keys"])
    for key, values in DAEMON.items():
        for value in values:
            assert judge(name, RULES[name], OPTIONS[name], {key: value}) is None, (key, value)


@pytest.mark.parametrize("name", sorted(name for name, rule in RULES.items() if rule.least is not None))
def test_beyond_a_range_is_refused(name: str) -> None:
    rule = RULES[name]
    assert rule.least is not None
    beyond = [rule.least - 1, *([rule.most + 1] if rule.most is not None else [])]
    assert not [value for value in beyond if value not in rule.words and rule.accepts(value)]
