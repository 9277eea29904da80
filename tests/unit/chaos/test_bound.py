# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The bound of how often something fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.bound import bound, rule_of_three, upper


@pytest.mark.parametrize(
    ("failures", "rounds", "expected"),
    [
        # Without a failure the formula is closed: 1 - 0.05^(1/n).
        (0, 1, 0.95),
        (0, 30, 0.0950),
        (0, 300, 0.00994),
        # qbeta(0.95, k + 1, n - k), as every table of one-sided Clopper-Pearson bounds has it.
        (1, 10, 0.3942),
        (2, 10, 0.5069),
        (1, 30, 0.1486),
        (5, 50, 0.1988),
        (10, 10, 1.0),
    ],
)
def test_values_that_are_known(failures: int, rounds: int, expected: float) -> None:
    assert upper(failures, rounds) == pytest.approx(expected, abs=5e-4)


@given(st.integers(1, 400))
def test_three_over_n_is_never_below_the_exact_bound(rounds: int) -> None:
    assert rule_of_three(rounds) >= upper(0, rounds) - 1e-9
    if rounds >= 30:
        assert rule_of_three(rounds) == pytest.approx(upper(0, rounds), rel=0.06)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_more_failures_are_a_higher_bound_and_more_rounds_a_lower_one(given_: tuple[int, int]) -> None:
    failures, rounds = given_
    assert failures / rounds <= upper(failures, rounds) <= 1
    assert upper(failures, rounds + 1) <= upper(failures, rounds)
    assert upper(failures + 1, rounds + 1) >= upper(failures, rounds + 1)


def test_the_page_shows_the_rule_of_three_where_nothing_failed() -> None:
    assert bound(0, 50) == 0.06
    assert bound(0, 2) == bound(0, 0) == 1.0
    assert bound(1, 30) == upper(1, 30)


@pytest.mark.parametrize(("failures", "rounds"), [(-1, 3), (4, 3)])
def test_impossible_counts_are_refused(failures: int, rounds: int) -> None:
    with pytest.raises(ValueError, match="failures of"):
        upper(failures, rounds)
