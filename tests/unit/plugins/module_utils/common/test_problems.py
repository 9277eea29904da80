# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How problems are put into words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.problems import (
    Problem,
    as_dicts,
    shown,
    summary,
)

ONE = Problem("hosts[1].slots", "must be a whole number")
TWO = Problem("", "nothing to write")


def test_one_problem_is_one_line() -> None:
    assert summary("x was not written", [ONE]) == "x was not written: hosts[1].slots: must be a whole number"
    assert summary("x was not written", [TWO]) == "x was not written: nothing to write"


def test_several_problems_are_one_a_line() -> None:
    assert summary("x was not written", [ONE, TWO]) == (
        "x was not written: 2 problems\n- hosts[1].slots: must be a whole number\n- nothing to write"
    )


def test_returned_form() -> None:
    assert as_dicts([ONE]) == [{"path": "hosts[1].slots", "message": "must be a whole number"}]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        ("a", "'a'"),
        pytest.param(10**5000, "a huge number", id="huge"),
        pytest.param([10**5000], "a list", id="huge-inside"),
        ("a" * 100, "'" + "a" * 76 + "..."),
    ],
)
def test_values_are_quoted_short_and_without_failing(value: Any, text: str) -> None:
    assert shown(value) == text
