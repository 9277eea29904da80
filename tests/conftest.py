# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The option ``--slow``: tests marked ``slow`` run, and every search tries all of its examples."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests import effort


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run everything: tests marked slow, all examples")


def pytest_configure(config: pytest.Config) -> None:
    effort.whole = config.getoption("--slow")
    # The number is for tests that name none. No deadline: beside other work an example takes as long as it takes. The
    # same examples each time, so that a change fails for what it changes; the whole search is another one each time.
    number, same = effort.examples(100), not effort.whole
    settings.register_profile("effort", settings.default, max_examples=number, deadline=None, derandomize=same)
    settings.load_profile("effort")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if not effort.whole and item.get_closest_marker("slow"):
        pytest.skip("slow, runs with --slow")
