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
    # For tests that name no number. No deadline: beside other work an example takes as long as it takes.
    settings.register_profile("effort", settings.default, max_examples=effort.examples(100), deadline=None)
    settings.load_profile("effort")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if not effort.whole and item.get_closest_marker("slow"):
        pytest.skip("slow, runs with --slow")
