# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Our reader of hjson against the package with which DeepSpeed reads its configuration: the same, or both refuse."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config import hjson
from deepspeed_oracle import DeepSpeedError, Oracle
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.effort import examples

RELEASES = os.environ["ORACLE_RELEASES"].split()
CASES = examples(500)
RELAXED = settings(
    max_examples=CASES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)

# what hjson is made of, so that random sequences of it are often nearly right
TOKENS = st.sampled_from(
    [
        *("{", "}", "[", "]", ":", ",", "\n", " ", "\t", "\r\n", "#", "//", "/*", "*/", "'''", '"', "'", "\\"),
        *("\\u00e4", "\\u12", "\ufeff", "a", "key", "a b", "null", "true", "false", "nul", "1", "-1", "5e8", "1e400"),
        *("0.50", "01", "1e10", "1.5", "-0.0", "+1", "ä", "\x0c", "\x01", "a: 1", "b: x\n", "c: [1, 2]", '"d": {}'),
        *("\n  x", "😀"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def relaxed(draw: st.DrawFn, value: Any, depth: int = 0) -> str:
    """A value in one of the many forms that hjson allows."""
    gap = draw(st.sampled_from(["", " ", "\n", " # no\n", " // no\n", "/* a\nb */"]))
    if isinstance(value, dict):
        items = [
            draw(st.sampled_from([key if key.isalnum() else json.dumps(key), json.dumps(key)]))
            + draw(st.sampled_from([":", " : ", ":\n"]))
            + draw(relaxed(item, depth + 1))
            for key, item in value.items()
        ]
        inside = "".join(item + draw(st.sampled_from([",", "\n", ",\n", "\n\n"])) for item in items)
        braces = depth > 0 or draw(st.booleans())
        return f"{gap}{{{gap}{inside}{gap}}}" if braces else f"{gap}{inside}"
    if isinstance(value, list):
        return (
            f"[{gap}"
            + "".join(draw(relaxed(item, depth + 1)) + draw(st.sampled_from([",", "\n"])) for item in value)
            + "]"
        )
    if isinstance(value, str):
        forms = [json.dumps(value)]
        if value.isalnum():
            forms += [value + "\n", f"'{value}'", f"'''{value}'''", f"'''\n  {value}\n    {value}\n  '''"]
        return draw(st.sampled_from(forms))
    return json.dumps(value)


MAPPINGS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)
TEXTS = st.lists(TOKENS, max_size=14).map("".join)


def same(oracle: Oracle, text: str) -> None:
    """DeepSpeed goes on with a mapping only, so anything else counts as refused."""
    try:
        theirs = oracle.ask("hjson", text=text)
    except DeepSpeedError:
        theirs = None
    try:
        ours = hjson.loads(text)
    except hjson.HjsonError:
        ours = None
    wanted = theirs if isinstance(theirs, dict) else None
    found = ours if isinstance(ours, dict) else None
    assert repr(found) == repr(wanted)


def test_examples_are_read_alike(oracle: Oracle) -> None:
    for text in (
        "",
        " \n",
        "# only a comment",
        "{a: 1, b: 2,}",
        "a: 1\nb: 2",
        "a: 5e8\nb: 5e10\nc: 1e-5",
        "{a: yes it is # not a comment\n}",
        "{a: 1 # a comment\n}",
        "{a: '''x'''}",
        "{\n  a: '''\n    x\n      y\n    '''\n}",
        "{\r\n  a: '''\r\n    x\r\n    '''\r\n}",
        '{"a": 1, "a": 2}',
        "{a: 1, a: 2}",
        "{a: 1} x",
        "{a: [1 2]}",
        "{a: [1\n2,]}",
        "{/* open",
        "{a b: 1}",
        "{a : 1}",
        "{a\n: 1}",
        "\ufeff{a: 1}",
        "\ufeff",
        "{a: 1e400}",
        '{"a": 1e400}',
        '{"a": NaN}',
        '{"a": 1.0, "b": -0.0, "c": 12345678901.0}',
        '{"a": "\\ud83d\\ude00", "b": "\\u00"}',
        "{a: [[[]]]}",
        "[1]",
        "a",
    ):
        same(oracle, text)


def test_deepspeed_reads_hjson(oracle: Oracle) -> None:
    """So that the package is the right one to compare with, in every release."""
    text = "# a comment\ntrain_batch_size: 8\nzero_optimization: {stage: 2 // two\n}\n"
    meaning = oracle.ask("config", config=text)
    assert (meaning["train_batch_size"], meaning["zero_config"]["stage"]) == (8, 2)
    assert "Duplicate keys" in oracle.refusal("config", config=text + "train_batch_size: 8\n")


# The package is the same beside every release.
@pytest.mark.parametrize("oracle", RELEASES[-1:], indirect=True)
def test_generated_texts_are_read_alike(oracle: Oracle) -> None:
    @RELAXED
    @given(MAPPINGS.flatmap(relaxed))
    def nearly_right(text: str) -> None:
        same(oracle, text)

    @RELAXED
    @given(TEXTS)
    def tokens(text: str) -> None:
        same(oracle, text)

    @RELAXED
    @given(MAPPINGS.map(json.dumps), st.integers(0, 200), TOKENS)
    def broken(text: str, at: int, token: str) -> None:
        same(oracle, text[:at] + token + text[at + 1 :])

    nearly_right()
    tokens()
    broken()
