# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""``--slow`` runs everything, without it only what is marked is left out; work that grows too fast is reported."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests import effort
from tests.effort import examples
from tests.growth import assert_growth


@pytest.mark.parametrize(
    ("count", "least", "part"),
    [(10_000, 20, 1000), (700, 20, 70), (200, 20, 20), (100, 20, 20), (7, 20, 7), (90, 60, 60)],
)
def test_the_whole_or_a_part(monkeypatch: pytest.MonkeyPatch, count: int, least: int, part: int) -> None:
    monkeypatch.setattr(effort, "whole", True)
    assert examples(count, least) == count
    monkeypatch.setattr(effort, "whole", False)
    assert examples(count, least) == part


def test_the_option_decides(request: pytest.FixtureRequest) -> None:
    whole = request.config.getoption("--slow")
    assert examples(700) == (700 if whole else 70)
    assert settings.default is not None
    assert settings.default.max_examples == (100 if whole else 20)


@pytest.mark.slow
def test_what_is_marked_runs_with_the_option_alone(request: pytest.FixtureRequest) -> None:
    assert request.config.getoption("--slow")


def test_work_that_grows_with_the_square_is_reported() -> None:
    def square(count: int) -> int:
        return sum(1 for dummy in range(count * count))

    assert_growth(lambda: square(50), lambda: square(100), less_than=16)
    with pytest.raises(AssertionError, match=r"not below .* 40 times"):
        assert_growth(lambda: square(50), lambda: square(500), less_than=40)
