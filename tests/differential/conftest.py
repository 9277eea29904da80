# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The releases of DeepSpeed that every test here is run against: ``ORACLE_RELEASES``, which ``make oracle`` fetched."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from deepspeed_oracle import Oracle

RELEASES = os.environ["ORACLE_RELEASES"].split()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With ``--dist loadgroup`` one worker has all tests of a release: starting its DeepSpeed takes long."""
    for item in items:
        if isinstance(item, pytest.Function) and "oracle" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group(item.callspec.params["oracle"]))


@pytest.fixture(scope="session", params=RELEASES)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """One release after another; pytest runs all tests of a release before it goes on."""
    requested = Oracle(request.param)
    yield requested
    requested.close()
