# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Records and fakes that the tests of the chaos suite share. All are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.chaos.records import Record

RECORD = Record(
    seed=17,
    round=1,
    fault="kill-site",
    target="lab2",
    scope="tree",
    moment="Join the swarm (12.0 s after the start)",
    outcome="converged",
    why="",
    refusals=[],
    followed=[],
    seconds=100.0,
    digest="0123456789abcdef",
    commit="0a1b2c3d4e",
    nodes=3,
    lab="debian 12, Docker 20.10.24",
    ansible="2.19.14",
    at="2026-11-23T12:00Z",
)


def record(**values: Any) -> Record:
    return replace(RECORD, **values)
