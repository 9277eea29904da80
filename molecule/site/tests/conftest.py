"""What the files of this scenario share. They run in the order of their numbers, on one cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# pytest puts this folder into the path, and not the checkout.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.engines import inspect
from tests.playbook_run import node, snapshot, whole

BYSTANDER = r"""
docker image inspect bystander:mine >/dev/null 2>&1 && exit 0
tar --create --directory / --dereference --files-from=<(
  echo usr/bin/sleep; ldd /usr/bin/sleep | grep -o '/[^ ]*' | sed 's|^/||'
) 2>/dev/null | docker import --change 'CMD ["/usr/bin/sleep", "infinity"]' - bystander:mine >/dev/null
docker network create bystander >/dev/null
docker run --detach --name bystander --network bystander --restart unless-stopped bystander:mine >/dev/null
"""


def bystander() -> dict[str, Any]:
    """Return what must stay as it is of the user's own container, network and image on lab2."""
    found, network = inspect("lab2", "container", "bystander"), inspect("lab2", "network", "bystander")
    kept = {key: found[key] for key in ("Id", "Created", "Image", "Config", "HostConfig", "RestartCount")}
    kept["started"] = (found["State"]["Status"], found["State"]["StartedAt"])
    kept["network"] = {key: network[key] for key in ("Id", "Created", "Driver", "IPAM", "Labels", "Containers")}
    kept["image"] = inspect("lab2", "image", "bystander:mine")["Id"]
    return kept


@pytest.fixture(scope="session", autouse=True)
def bystander_before() -> dict[str, Any]:
    """Make a container, a network and an image of the user's on lab2; return how they are before all tests."""
    node("lab2").check_output("bash -c %s", BYSTANDER)
    return bystander()


@pytest.fixture
def bystander_now() -> dict[str, Any]:
    """Return how the user's things on lab2 are now."""
    return bystander()


@pytest.fixture
def unchanged() -> Iterator[None]:
    """Assert that a refused run has changed nothing on any node."""
    before = snapshot()
    yield
    assert snapshot() == before


@pytest.fixture
def repaired() -> Iterator[None]:
    """Assert that the cluster is whole again after a test that broke something."""
    yield
    whole()
