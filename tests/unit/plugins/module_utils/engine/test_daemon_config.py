# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The text of daemon.json: what is refused and where, what a merge keeps, what is written."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.engine.daemon_config import (
    MAX_BYTES,
    MAX_DEPTH,
    DaemonConfigError,
    changed_keys,
    decode,
    doubled,
    merge,
    parse,
    render,
    same,
    too_deep,
    wanted_problems,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

PATH = "/etc/docker/daemon.json"
TAIL = ". Fix it, or move it away"
UNCLEAR = ", with another content, which engines join for some keys and not for others"

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
names = st.sampled_from(["a", "b", "c", "log-opts"]) | st.text()
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
configs = st.dictionaries(names, values, max_size=4)
steady = settings(deadline=None, derandomize=True, max_examples=examples(200))


def nested(depth: int) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for dummy in range(depth - 1):
        config = {"a": config}
    return config


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b"{\n  debug: true\n}",
            "it is not JSON: Expecting property name enclosed in double quotes at line 2, column 3",
        ),
        (b'{"a": 1,\n "b": 2,}', "it is not JSON: "),
        (b'{"debug": true} x', "it is not JSON: Extra data at line 1, column 17"),
        (b"[1]", "it holds a JSON list, not a mapping"),
        (b"null", "it holds a JSON null, not a mapping"),
        (b'"x"', "it holds a JSON text, not a mapping"),
        (b"true", "it holds a JSON boolean, not a mapping"),
        (b"1.5", "it holds a JSON number, not a mapping"),
        (b'{"mtu": NaN}', "it is not JSON: NaN is not a number in JSON"),
        (b'{"mtu": -Infinity}', "it is not JSON: -Infinity is not a number in JSON"),
        (b'{"mtu": 1e999}', "it is not JSON: the number '1e999' is too large"),
        (
            b'{"a": {"c": 1}, "b": {},\n  "a": {"d": 2}}',
            f"the key 'a' appears twice, again at line 2, column 3{UNCLEAR}",
        ),
        (b'{"a": [{"x": {}, "\\u0078": 1}]}', f"the key 'x' appears twice, again at line 1, column 18{UNCLEAR}"),
        (b'{"a": 1, "a": 2, "b": 1, "b": null}', f"the key 'b' appears twice, again at line 1, column 26{UNCLEAR}"),
        (b'{"a": "\xff"}', "the byte at position 7 is not UTF-8 text"),
        ("{}".encode("utf-16"), "the byte at position 0 is not UTF-8 text"),
        (b" " * (MAX_BYTES + 1), f"it has {MAX_BYTES + 1} bytes, more than {MAX_BYTES}"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "it nests too deep"),
        (json.dumps(nested(MAX_DEPTH + 2)).encode(), f"it nests deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(DaemonConfigError) as refused:
        parse(decode(content, PATH), PATH)
    assert str(refused.value).startswith(f"{PATH} was left as it is: {reason}")
    assert TAIL in str(refused.value)


@pytest.mark.parametrize(
    ("content", "starts"),
    [
        # As dockerd 20.10.24 did, tried by hand.
        (b"{debug: true}", False),
        (b'{"debug": true,}', False),
        (b'{"mtu": NaN}', False),
        (b'{"mtu": 1e400}', False),
        (b"[]", False),
        (b"3", False),
        (b'"x"', False),
        (b"null", True),
        (b'{"debug": true} x', True),
        (b'{"labels": ["a=\xff"]}', True),
        (b'{"runtimes": {"r1": {"path": "/a"}}, "runtimes": {"r2": {"path": "/b"}}}', True),
        (b'{"debug": true, "debug": null}', True),
    ],
)
def test_a_refusal_says_of_the_engine_what_the_engine_does(content: bytes, starts: bool) -> None:
    with pytest.raises(DaemonConfigError) as refused:
        parse(decode(content, PATH), PATH)
    tail = TAIL if starts else f"{TAIL}; the engine could not start with it either"
    assert str(refused.value).endswith(tail)


@pytest.mark.parametrize(
    ("content", "found", "place"),
    [
        # As dockerd 20.10.24 reads them.
        (
            '{"labels": ["a=1"], "labels": ["b=2"]}',
            {"labels": ["b=2"]},
            "'labels' appears twice, again at line 1, column 21",
        ),
        ('{"debug": true,\n "debug": false}', {"debug": False}, "'debug' appears twice, again at line 2, column 2"),
        (
            '{"runtimes": {"r1": {"path": "/a", "path": "/b"}}}',
            {"runtimes": {"r1": {"path": "/b"}}},
            "'path' appears twice, again at line 1, column 36",
        ),
        ('{"a": {"b": {}}, "a": {"b": {}}}', {"a": {"b": {}}}, "'a' appears twice, again at line 1, column 18"),
        ('{"a": {"b": 1}, "c": {"b": 1}, "d": "\\"a\\":"}', {"a": {"b": 1}, "c": {"b": 1}, "d": '"a":'}, ""),
    ],
)
def test_of_a_doubled_key_the_last_value_counts(content: str, found: dict[str, Any], place: str) -> None:
    assert parse(content, PATH) == found
    assert doubled(content) == (f"the key {place}" if place else "")


@pytest.mark.parametrize("content", [b"", b" \n", b"\xef\xbb\xbf", b"{}", b"\xef\xbb\xbf{}\r\n"])
def test_nothing_in_the_file(content: bytes) -> None:
    assert parse(decode(content, PATH), PATH) == {}


def test_a_repeated_key_elsewhere_is_none() -> None:
    assert parse('{"a": {"x": 1}, "b": {"x": "a", "a": ["a", "a"]}}', PATH)["b"]["a"] == ["a", "a"]


@given(st.binary() | st.text().map(str.encode))
@steady
def test_any_bytes_are_read_or_refused_in_words(content: bytes) -> None:
    try:
        found = parse(decode(content, PATH), PATH)
    except DaemonConfigError as refused:
        assert str(refused).startswith(PATH)
    else:
        assert isinstance(found, dict)


@pytest.mark.parametrize(
    ("found", "wanted", "merged"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}}, {"a": {"x": 1, "y": 3}}),
        ({"a": ["x", "y"]}, {"a": ["z"]}, {"a": ["z"]}),
        ({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": 2}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": None}}, {"a": {"y": 2}}),
        ({"a": 1}, {"a": {"x": None, "y": 1}}, {"a": {"y": 1}}),
        ({"a": {"x": 1}}, {"a": 1}, {"a": 1}),
        ({}, {"a": [None]}, {"a": [None]}),
    ],
)
def test_merge(found: dict[str, Any], wanted: dict[str, Any], merged: dict[str, Any]) -> None:
    before = json.dumps([found, wanted])
    assert merge(found, wanted) == merged
    assert json.dumps([found, wanted]) == before


@given(configs, configs)
@steady
def test_a_merge_keeps_foreign_keys_and_their_order_and_twice_is_once(found: Any, wanted: Any) -> None:
    once = merge(found, wanted)
    assert same(merge(once, wanted), once)
    kept = [key for key in found if key in once]
    assert list(once)[: len(kept)] == kept
    for key in found:
        if key not in wanted:
            assert same(once[key], found[key])
    for key, value in wanted.items():
        assert (key in once) is (value is not None)
        if value is not None and not isinstance(value, dict):
            assert same(once[key], value)


@given(configs.filter(lambda config: not too_deep(config)))
@steady
def test_what_is_written_is_read_again(config: Any) -> None:
    assert same(parse(decode(render(config), PATH), PATH), config)


@given(configs, configs)
@steady
def test_changed_keys_are_none_exactly_where_both_are_the_same(one: Any, other: Any) -> None:
    assert bool(changed_keys(one, other)) is not same(one, other)
    assert same(merge(one, other), one) is (changed_keys(one, merge(one, other)) == [])


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ({"a": True}, {"a": 1}, ["a"]),
        ({"a": 1.0}, {"a": 1}, ["a"]),
        ({"a": [1]}, {"a": [True]}, ["a"]),
        ({"a": {"x": 1, "y": {}}}, {"a": {"x": 2, "y": {}, "z": 1}, "b": 1}, ["a.x", "a.z", "b"]),
        ({"a": {"x": 1}}, {}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
    ],
)
def test_changed_keys(before: dict[str, Any], after: dict[str, Any], changed: list[str]) -> None:
    assert changed_keys(before, after) == changed


@pytest.mark.parametrize(
    ("like", "indent"), [("", 4), ('{\n  "a": 1\n}', 2), ('{"a": 1}', 4), ('\n{ \n   "a": 1\n}', 3)]
)
def test_the_indent_is_kept(like: str, indent: int) -> None:
    assert render({"ä": 1}, like) == ("{\n" + " " * indent + '"ä": 1\n}\n').encode()


def test_half_a_surrogate_pair_is_escaped() -> None:
    assert render({"a": "\ud800"}) == b'{\n    "a": "\\ud800"\n}\n'


def test_what_json_cannot_hold() -> None:
    found = wanted_problems({"a": [1, math.inf], "b": {1: 2}, "c": {"d": {1, 2}}})
    assert [str(problem) for problem in found] == [
        "config.a[1]: must be a number, not inf",
        "config.b: the key 1 must be text",
        "config.c.d: must be text, a number, a boolean, a list or a mapping, not a set",
    ]
    assert [str(problem) for problem in wanted_problems(nested(5000))] == ["config: nests deeper than 32 levels"]


@pytest.mark.parametrize(("depth", "refused"), [(1, False), (MAX_DEPTH, False), (MAX_DEPTH + 1, False), (40, True)])
def test_depth(depth: int, refused: bool) -> None:
    assert too_deep(nested(depth)) is refused


def test_numbers_and_texts_of_variables_are_those_of_the_file() -> None:
    """Since ansible-core 2.19 those of an inventory have types of their own."""

    class Number(int):
        pass

    class Text(str):
        pass

    assert same({"mtu": 4, "data-root": "/d"}, {"mtu": Number(4), "data-root": Text("/d")})
    assert not same(Number(1), True) and not same(Number(1), 1.0) and not same(Text("1"), 1)
