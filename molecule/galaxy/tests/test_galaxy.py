"""The installed tarball alone, without checkout and ansible.cfg, takes nodes that have nothing to a finished job."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, os.environ["MOLECULE_PROJECT_DIRECTORY"])

from tests.engines import containers, image_ids
from tests.installed import Installed
from tests.playbook_run import NODES, from_archive, on, variables


@pytest.fixture(scope="module")
def installed() -> Installed:
    """Return what converge.yml has installed."""
    return Installed(Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "galaxy")


def test_site_by_name_brings_the_nodes_up_and_again_changes_nothing(installed: Installed) -> None:
    assert "target 0.95 reached" in installed.play("site", *from_archive()).done(change=True).text
    assert "not started again" in installed.play("site", *from_archive()).done(change=False).text


def test_verify_by_name(installed: Installed) -> None:
    installed.play("verify", *from_archive()).done(change=False)


def test_teardown_by_name(installed: Installed) -> None:
    consent = {"workspace_remove": True, "deepspeed_launch_remove_jobs": True, "training_image_remove": True}
    installed.play("teardown", *variables(**consent)).done(change=True)
    for name in NODES:
        assert containers(name, "swarmspeed.cluster") == {}
        assert image_ids(name, "swarmspeed/swarmspeed") == set()
        assert on(name, "ls -d /srv/swarmspeed/swarmspeed 2>/dev/null; true") == ""
    installed.play("teardown", *variables(**consent)).done(change=False)
