# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Parsers of lists and mappings: where they say that something is wrong, and their bounds."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleActionFail, AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.reported import (
    REMEDY,
    ReportedError,
    UnfitError,
    interface,
    port,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate import job, logs, node, shape
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.validate.filters import one_line
from hypothesis import given
from hypothesis import strategies as st

from tests.adversary.hostile import facts

PARSER = shape.mapping(
    {"name": interface},
    {"ports": shape.listing(port, 2), "kind": shape.one_of("a", "b"), "by": shape.by_name(interface, port)},
)


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ([], "it is a list of 0, not a mapping"),
        ({}, ".name is null, not left out"),
        ({"name": 1}, ".name is 1, not the name of a network interface"),
        ({"name": "a", 3: 1}, " (a name in it) is 3, not a name"),
        ({"name": "a", "ports": [1, 0]}, ".ports[1] is 0, not a whole number from 1 to 65535"),
        ({"name": "a", "ports": [1, 2, 3]}, ".ports is a list of 3, not a list of at most 2"),
        ({"name": "a", "kind": "c"}, ".kind is 'c', not one of a, b"),
        ({"name": "a", "by": {"-x": 1}}, ".by (a name in it) is '-x', not the name of a network interface"),
        ({"name": "a", "by": {"x": 0}}, ".by[x] is 0, not a whole number from 1 to 65535"),
        ({"name": "a", "more": {"deep": [float("nan")]}}, ".more.deep[0] is nan, not a finite number"),
        ({"name": "a", "more\n": float("inf")}, ".more\\n is inf, not a finite number"),
        ({"name": "a", "more": {1, 2}}, ".more is a set, not plain data"),
    ],
)
def test_the_place_is_named(value: Any, reported: str) -> None:
    with pytest.raises(UnfitError) as caught:
        PARSER(value)
    assert str(caught.value) == reported


def test_what_fits_stays() -> None:
    value = {"name": "eth0", "ports": [22], "kind": "a", "by": {"x": 1}, "more": {"a": [None, True, 1.5, "x"]}}
    assert PARSER(value) == value
    assert shape.optional(port)(None) is None


def test_data_has_bounds() -> None:
    deep: Any = 0
    for dummy in range(shape.DEEPEST + 2):
        deep = [deep]
    for value in (deep, "x" * (shape.LONGEST + 1), [0] * (shape.MOST_ENTRIES + 1), 10**400, {("a",): 1}, {True: 1}):
        with pytest.raises(UnfitError):
            shape.data(value)
    with pytest.raises(UnfitError):
        shape.data(["x" * shape.LONGEST] * 33)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e18, 1e18) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
)


@given(JSON)
def test_plain_data_is_taken_as_it_is(value: Any) -> None:
    assert shape.data(value) == value


def test_honest_facts_are_taken_as_they_are() -> None:
    assert node.node_facts("gpu1", facts()) == facts()


@pytest.mark.parametrize("name", ["a b", "A", "a\nb", "../x", ""])
def test_folders_that_are_no_jobs_are_none_of_this_collection(name: str) -> None:
    """Whoever is root in a container can make one; it must not keep the node out."""
    found = facts()
    found["jobs"] = {name: "running", "digits": "running"}
    kept = node.node_facts("gpu1", found)["jobs"]
    assert kept == {"digits": "running", **({name: "running"} if name == "A" else {})}


@given(JSON)
def test_whatever_a_node_says_of_its_jobs_ends_in_jobs_or_one_message(value: Any) -> None:
    found = job.infos({"gpu1": {"jobs": value}, "gpu2": value})
    assert set(found) == {"gpu1", "gpu2"}
    for result in found.values():
        for entry in result.get("jobs") or []:
            assert entry["state"] in job.STATES and isinstance(entry["name"], str)


@given(JSON)
def test_replies_are_taken_or_refused(value: Any) -> None:
    for check, reported in ((job.reply, {"job": value}), (logs.reply, {"files": value, "more": False})):
        try:
            check("gpu1", reported)
        except ReportedError as error:
            assert str(error).startswith("gpu1: ")


def test_what_python_raises_becomes_one_line() -> None:
    @one_line("swarmspeed.cluster.thing", "what thing returned")
    def thing(value: Any) -> Any:
        if value is None:
            raise AnsibleFilterError("own words")
        return value["a\nb"]

    assert thing({"a\nb": 1}) == 1
    with pytest.raises(AnsibleFilterError, match=r"^own words$"):
        thing(None)
    with pytest.raises(AnsibleFilterError) as caught:
        thing({})
    assert str(caught.value) == (
        f"swarmspeed.cluster.thing: this is not what thing returned (KeyError 'a\\nb'). {REMEDY}."
    )
    task_inputs = one_line("x", "y", AnsibleActionFail)(lambda: 1 / 0)
    with pytest.raises(AnsibleActionFail):
        task_inputs()
