# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Reading hjson: what it allows beyond JSON, errors with line and column, and time in proportion to the length."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.hjson import HjsonError, loads
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.growth import assert_growth

RELAXED = settings(max_examples=examples(400), deadline=None, derandomize=True)

CONFIG = """
# ZeRO 2 for eight cards
{
  train_batch_size: 256   // in one step
  /* mixed
     precision */
  bf16: {enabled: true,},
  zero_optimization: {
    "stage": 2
    reduce_bucket_size: 5e8
    'overlap_comm': false
  }
  tensorboard: {
    output_path: /data/tensorboard/run 1
    job_name: '''
      two
        lines
      '''
  }
  betas: [0.9
          0.95]
}
"""


def test_a_configuration_as_people_write_it() -> None:
    """The lines of job_name lose as much indentation as the opening quotes have."""
    assert loads(CONFIG) == {
        "train_batch_size": 256,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 500000000, "overlap_comm": False},
        "tensorboard": {"output_path": "/data/tensorboard/run 1", "job_name": "two\nlines"},
        "betas": [0.9, 0.95],
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" \n\t", {}),
        ("// nothing\n# at all\n/* there */", {}),
        ("a: 1\nb: 2", {"a": 1, "b": 2}),
        ("\ufeff{a: 1}", {"a": 1}),
        ("{a: text with, commas } and # signs\n}", {"a": "text with, commas } and # signs"}),
        ("{a: 1 # one\n}", {"a": 1}),
        ("{a: 1 and more\n}", {"a": "1 and more"}),
        ("{a: null, b: true, c: false, d: nullo\n}", {"a": None, "b": True, "c": False, "d": "nullo"}),
        ("{a: -1.50e1}", {"a": -15}),
        ("{a: 5e10}", {"a": 5e10}),
        ("{a: 01\n}", {"a": "01"}),
        ("{a: +1\n}", {"a": "+1"}),
        ("{a: 0x10\n}", {"a": "0x10"}),
        ('{"a": "\\u00e4\\n\\/", \'b\': \'"\'}', {"a": "ä\n/", "b": '"'}),
        ('{a: "\\ud83d\\ude00"}', {"a": "😀"}),
        ("{a\n : 1}", {"a": 1}),
        ('{"a b"\n/* c */: 1}', {"a b": 1}),
        ("{a: [1, 2,],}", {"a": [1, 2]}),
        ("{a: [\n]}", {"a": []}),
        ("{}", {}),
        ("[1, 2]", [1, 2]),
        ("3", 3),
        ("some words", "some words"),
        ("{a: '''one'''\n}", {"a": "one"}),
        ("{a: '''\r\n  one\r\n  '''\r\n}", {"a": "one"}),
        ("{\n  a:\n    '''\n    one\n\n      two\n    '''\n}", {"a": "one\n\n  two"}),
        ('{"a": {"b": [{"c": "d"}]}}', {"a": {"b": [{"c": "d"}]}}),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert repr(loads(text)) == repr(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "a": 2}', "the key 'a' is given twice, which DeepSpeed refuses (line 2, column 2)"),
        ("{a: 1", "the text ends where a key or a closing brace should be (line 1, column 6)"),
        ("{a: [1", "a list is not closed with ] (line 1, column 7)"),
        ("{a: }", "a value is missing before '}' (line 1, column 5)"),
        ("{a:", "a value is missing at the end of the text (line 1, column 4)"),
        ("{a: [1,,2]}", "a value is missing before ',' (line 1, column 8)"),
        (
            "{\na b: 1}",
            "a key with ':' is missing; a key with spaces or punctuation needs quotes (line 2, column 1)",
        ),
        ('{"a" 1}', "the key 'a' is not followed by ':' (line 1, column 6)"),
        ('{"a": "x', "text is not closed with its quote (line 1, column 7)"),
        ('{"a": "x\n"}', "text in quotes holds a line end or another control character (line 1, column 9)"),
        (
            '{"a": "\\x"}',
            "a backslash is not followed by \" ' \\ / b f n r t or u and four hexadecimal digits (line 1, column 9)",
        ),
        ('{"a": "\\u00"}', "a backslash is not followed by"),
        ("{\n  a: '''x", "text is not closed with three quotes (line 2, column 6)"),
        ("{a: '''x'''}", "text in three quotes needs a line end somewhere in the file (line 1, column 5)"),
        ("{a: 1 /* x", "a comment is not closed with */ (line 1, column 7)"),
        ("{a: 1} b", "something follows where the text should end (line 1, column 8)"),
        ("{a: 1e999}", "a number is too large (line 1, column 5)"),
        ('{"a": 1e999}', "a number is too large (line 1, column 7)"),
        ("{a: " + "9" * 5000 + "}", "a number is too large (line 1, column 5)"),
        ("{a: " + "[" * 101, "it is nested deeper than 100 levels (line 1, column 105)"),
        ('{"a": ' + "[" * 100000, "it is nested deeper than 100 levels (line 1, column 107)"),
    ],
)
def test_errors_say_where(text: str, message: str) -> None:
    with pytest.raises(HjsonError) as caught:
        loads(text)
    assert str(caught.value).startswith(message)


def test_not_a_number_is_a_word() -> None:
    """JSON has no NaN: Python's reader would take it, hjson reads text."""
    assert loads('{"a": NaN\n}') == {"a": "NaN"}


@RELAXED
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_is_hjson(value: Any) -> None:
    assert loads(json.dumps(value)) == value
    assert loads(json.dumps(value, indent=1, ensure_ascii=False)) == value


@RELAXED
@given(st.text() | st.lists(st.sampled_from(list("{}[]:,'\"\\#/*ab1 \n")), max_size=40).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        loads(text)
    except HjsonError as error:
        assert "(line " in str(error)
        assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("begin", "piece", "end"),
    [
        ("{a: ", "x,", ""),
        ("{", "a", ""),
        ("", "/*", ""),
        ("", "# x\n", ""),
        ("{a: [", "1\n", "]}"),
        ("{\na: '''", "\n  x", "'''}"),
        ('{a: "', "\\n'", '"}'),
    ],
)
def test_time_grows_with_the_length(begin: str, piece: str, end: str) -> None:
    def work(count: int) -> None:
        try:
            loads(begin + piece * count + end)
        except HjsonError as error:
            assert "(line " in str(error)

    # Quadratic behaviour would be a hundred times.
    most = examples(100_000, least=40_000)
    assert_growth(lambda: work(most // 10), lambda: work(most), less_than=40)
