# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the attacks share: a time limit, and a file that only the host has."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversary.job_attacks import SECRET, SPEC, STATE


@pytest.fixture(autouse=True)
def within_seconds() -> Iterator[None]:
    """An attack that makes the host wait for ever fails."""

    def late(_number: int, _frame: object) -> None:
        raise AssertionError("the host waits for the container")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(600)  # twenty times what the longest takes on an idle machine
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "host" / "secret"
    path.parent.mkdir()
    path.write_text(SECRET)
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The folder that is /jobs in the container, with a job that the host has started."""
    path = tmp_path / "cluster" / "jobs"
    (path / "digits").mkdir(parents=True)
    (path / "digits" / "state.json").write_text(json.dumps(STATE))
    (path / "digits" / "spec.json").write_text(json.dumps({"spec": SPEC}))
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "cluster" / "workspace"
    path.mkdir(parents=True)
    return path
