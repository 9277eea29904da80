# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How far a transfer is, in words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.transfer.meter import Meter

MIB = 1 << 20


def progress(spooled: int, state: str = "receiving", wanted: int = 1000) -> dict[str, Any]:
    return {"bytes": wanted * MIB, "spooled": spooled * MIB, "state": state}


def test_rate_and_time_left_from_the_second_poll_on() -> None:
    meter = Meter()
    assert meter.line(progress(100), 10.0) == "100 of about 1000 MiB"
    assert meter.line(progress(300), 20.0) == "300 of about 1000 MiB, 20 MiB/s, 35 s left"
    assert meter.line(progress(300), 30.0) == "300 of about 1000 MiB"
    assert meter.line(progress(1100), 40.0) == "1100 of about 1100 MiB, 80 MiB/s, 0 s left"
    assert meter.line(progress(1100, "loading"), 50.0) == "loading the image"


@pytest.mark.parametrize("found", [{}, {"bytes": 0, "spooled": 5, "state": "receiving"}, {"bytes": 7, "state": ""}])
def test_a_node_that_gets_nothing_has_no_line(found: dict[str, Any]) -> None:
    assert Meter().line(found, 1.0) == ""
