# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How a constraint is read, and what is reported of a value that it does not allow."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.constraints import (
    ConstraintError,
    check_relations,
    judge,
    read_constraints,
    read_rule,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


def found(constraint: Any, value: Any, name: str = "x", **option: Any) -> str:
    """Return the place, the text and the remedy of a fault as one text, or nothing."""
    fault = judge(name, read_rule(constraint, name), option or {"type": "raw"}, value)
    return f"{fault.suffix}: {fault.text}. {fault.remedy}" if fault else ""


RANGE = {"kind": "number", "min": 1, "max": 64, "unit": "MiB"}
PORT = {"kind": "port", "min": 1024, "except": [7946], "example": 4789}


@pytest.mark.parametrize(
    ("constraint", "value", "option", "expected"),
    [
        ("port", 0, {"type": "int"}, ": 0 is not a port from 1 to 65535. write a value such as 2222"),
        (
            PORT,
            7946,
            {"type": "int"},
            ": 7946 is not a port from 1024 to 65535 other than 7946. write a value such as 4789",
        ),
        (PORT, "4789", {"type": "int"}, ""),
        (RANGE, 65, {"type": "int"}, ": 65 is not a number of MiB from 1 to 64. write a value such as 1"),
        (
            {"kind": "number", "min": 0},
            -1,
            {"type": "int"},
            ": -1 is not a number of at least 0. write a value such as 1",
        ),
        ({"kind": "number", "max": 5}, 6, {"type": "int"}, ": 6 is not a number of at most 5. write a value such as 1"),
        # The type is the argument spec's own question.
        (PORT, "many", {"type": "int"}, ""),
        ("dns_label", None, {"type": "str"}, ""),
        (
            {"kind": "cidr_v4", "prefix": 24},
            "10.0.0.0/25",
            {"type": "str"},
            ": '10.0.0.0/25' is not an IPv4 network such as 10.20.0.0/24, /24 or larger. write a value such as "
            "10.20.0.0/24",
        ),
        (
            "cidr_v4",
            "10.0.0.1/8",
            {"type": "str"},
            ": '10.0.0.1/8' is not an IPv4 network such as 10.20.0.0/24. write 10.0.0.0/8",
        ),
        ({"kind": "ipv4", "or": ["auto"], "empty": True}, "", {"type": "str"}, ""),
        ({"kind": "ipv4", "or": ["auto"]}, "auto", {"type": "str"}, ""),
        (
            {"kind": ["ip", "interface"]},
            "a b",
            {"type": "str"},
            ": 'a b' is not an IP address or the name of a network interface. write a value such as 10.1.0.5",
        ),
        (
            "relative_path",
            ["model", "../etc"],
            {"type": "list", "elements": "str"},
            "[1]: '../etc' is not a relative path without steps upwards. write a value such as checkpoints/model",
        ),
        ("relative_path", "model,logs", {"type": "list", "elements": "str"}, ""),
        (
            {"kind": "line", "distinct": True},
            ["a", "a"],
            {"type": "list", "elements": "str"},
            "[1]: 'a' is listed twice. remove one of them",
        ),
        (
            {"keys": {"http": "proxy", "https": "proxy"}},
            {"htpp": "p"},
            {"type": "dict"},
            ": unknown key 'htpp'; known keys are http, https. correct or remove it",
        ),
        (
            {"keys": {"name": "docker_name"}, "needs": ["name"]},
            [{"name": "a"}, {}],
            {"type": "list", "elements": "dict"},
            "[1]: has no name. add name",
        ),
        (
            {"keys": {"files": "file_name"}},
            [{"files": ["a", "b/c"]}],
            {"type": "list", "elements": "dict"},
            "[0].files[1]: 'b/c' is not the name of a file or folder, without its path. write a value such as "
            "__pycache__",
        ),
        (
            {"names": "sysctl", "values": "scalar_line"},
            {"vm": 1},
            {"type": "dict"},
            ": 'vm' is not the name of a kernel parameter. write a value such as net.core.rmem_max",
        ),
        (
            {"names": "sysctl", "values": "scalar_line"},
            {"net.core.x": "1\n2"},
            {"type": "dict"},
            ".net.core.x: '1\\n2' is not a text of one line, or a number. write a value such as 1",
        ),
        ({"names": "sysctl", "values": "scalar_line"}, {"net.core.x": None}, {"type": "dict"}, None),
        ({"free_text": "a program reads it"}, "\x00", {"type": "str"}, ""),
    ],
)
def test_what_is_reported(constraint: Any, value: Any, option: dict[str, Any], expected: str | None) -> None:
    text = found(constraint, value, **option)
    assert text == expected if expected is not None else text


@pytest.mark.parametrize(
    ("name", "constraint", "value", "option"),
    [
        ("assets_huggingface_token", {"kind": "pattern", "pattern": "[a-z]+", "what": "a token"}, "hf secret", {}),
        ("x", "line", "hf\nsecret", {"no_log": True}),
        (
            "x",
            {"names": "environment_key", "values": {"kind": "scalar", "secret": True}},
            {"A": ["secret"]},
            {"type": "dict"},
        ),
        ("x", {"names": "environment_key", "values": "scalar_line"}, {"API_TOKEN": "a\nsecret"}, {"type": "dict"}),
        ("x", "url", "ftp://me:secret@h.example/", {}),
    ],
)
def test_a_secret_is_not_shown(name: str, constraint: Any, value: Any, option: dict[str, Any]) -> None:
    text = found(constraint, value, name, **{"type": "str", **option})
    assert "its value is not " in text and "secret" not in text


def test_a_control_character_does_not_reach_the_terminal() -> None:
    assert found("dns_label", "a\x1b[2Jb", type="str").isprintable()


@pytest.mark.parametrize(
    ("constraint", "why"),
    [
        ("prot", "x: 'prot' is not a kind."),
        (["port", "prot"], "x: ['port', 'prot'] is not a kind."),
        ({"min": 1}, "x: None is not a kind."),
        ({"kind": "port", "most": 1}, "x: its constraint is neither a kind nor a mapping of known keys."),
        (7, "x: its constraint is neither a kind nor a mapping of known keys."),
        ({"keys": {"a": "prot"}}, "x.a: 'prot' is not a kind."),
    ],
)
def test_a_constraint_that_cannot_be_read_names_the_variable(constraint: Any, why: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        read_rule(constraint, "x")
    assert str(caught.value) == why


def test_a_file_of_another_shape_names_the_role() -> None:
    with pytest.raises(ConstraintError, match=r"role swarm: meta/constraints\.yml is not a mapping"):
        read_constraints({"swarm": ["port"]})


def test_two_variables_of_a_host_differ() -> None:
    rules = read_constraints({"ssh_trust": {"a": {"kind": "port", "differs_from": ["b"]}, "b": "port"}})
    assert list(check_relations(rules, {"a": 1, "b": 2})) == list(check_relations(rules, {"a": 1})) == []
    ((name, fault),) = check_relations(rules, {"a": 2222, "b": "2222"})
    assert (name, fault.text, fault.remedy) == ("a", "2222 is also the value of b", "give one of them another value")


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
CONSTRAINT = st.sampled_from(
    [
        PORT,
        RANGE,
        "cidr_v4",
        "requirement",
        {"keys": {"a": "port"}, "needs": ["a"]},
        {"names": "sysctl", "values": "line"},
    ]
)


@settings(max_examples=examples(300), deadline=None)
@given(
    constraint=CONSTRAINT,
    value=ANY,
    kind=st.sampled_from(["str", "int", "float", "list", "dict", "raw", "path", "bool"]),
)
def test_whatever_the_value_is_there_is_a_sentence_or_nothing(constraint: Any, value: Any, kind: str) -> None:
    fault = judge("x", read_rule(constraint, "x"), {"type": kind}, value)
    assert fault is None or (fault.text and fault.remedy and not fault.text.endswith("."))
