# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Text and JSON that somebody else has written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.untrusted_text import (
    clean,
    on_one_line,
    parse_json,
    printable,
)
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 日本", "plain ü 日本"),
        ("two\n\tlines", "two\n\tlines"),
        ("\x1b[2J\x9b\u202e\r", "\\x1b[2J\\x9b\\u202e\\r"),
        ("x" * 12, "xxxxxxxxxx (cut off)"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text, 10 if text.startswith("xx") else 100) == shown


def test_on_one_line() -> None:
    assert on_one_line(" a\n  b\x07 ") == "a b\\x07"


@given(st.text())
def test_nothing_but_lines_and_printable_characters_is_left(text: str) -> None:
    assert all(part.isprintable() for part in printable(text).replace("\t", "\n").split("\n"))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
        (b"[NaN, -Infinity, 1e999]", ["NaN", "-Infinity", "1e999"]),
        (b"1" * 5000, "1" * 5000),
        (b"[" * 32 + b"]" * 32, None),
    ],
)
def test_parse_json(data: bytes, value: Any) -> None:
    found = parse_json(data)
    assert found == value if value is not None else isinstance(found, list)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[" * 33 + b"]" * 33, b"[" * 100_000, b'{"a":' * 50 + b"1" + b"}" * 50]
)
def test_what_is_no_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # its words are the parser's
        parse_json(data)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**17), 10**17)
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=10,
    )
)
def test_ordinary_json_is_what_json_reads(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value
    assert clean(clean(value)) == clean(value)
