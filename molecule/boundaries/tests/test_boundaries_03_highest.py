"""The most that each constraint accepts, on a whole cluster, which is made, inspected, and removed again."""

from __future__ import annotations

import json

import pytest

from tests.boundaries.runs import ACCOUNT, CONTROLLER, HIGHEST, arguments, prepare_highest, seen
from tests.engines import containers, image_names, info, inspect, networks
from tests.playbook_run import NODES, inside, job, on, playbook

CLUSTER = str(HIGHEST["cluster_name"])
ROOT_FOLDER = str(HIGHEST["cluster_root"])


@pytest.fixture(scope="module", autouse=True)
def deployed() -> None:
    """Remove the cluster of the lowest set, and make the other."""
    prepare_highest()
    playbook("teardown", *arguments("lowest")).done(change=True)
    assert not [found for name in NODES for found in containers(name) if found.startswith("a-")]
    playbook("site", *arguments("highest")).done(change=True)


def test_a_second_run_changes_nothing() -> None:
    playbook("site", *arguments("highest")).done(change=False)


def test_verify_finds_everything_as_configured() -> None:
    playbook("verify", *arguments("highest")).done(change=False)
