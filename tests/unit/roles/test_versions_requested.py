# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the roles hand to the choice of versions, and when what it finds is reported."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.requested import (
    RequestedVersions,
    parse_requested,
)

from tests.role_values import load, value, variables


def test_each_variable_of_the_image_that_decides_is_handed_over() -> None:
    requested = value("swarmspeed_versions_requested", variables())
    assert set(requested) == {field.name for field in fields(RequestedVersions)}
    given = {
        "training_image_cuda": 12.8,
        "training_image_compute_capabilities": ["9.0", 8.0],
        "training_image_torch": "torch==2.9.1",
        "training_image_base": "debian:13",
    }
    found = parse_requested(value("swarmspeed_versions_requested", variables(**given)))
    assert (found.cuda, found.compute_capabilities) == ("12.8", ("9.0", "8.0"))
    assert (found.torch, found.base) == ("torch==2.9.1", "debian:13")


def test_versions_are_chosen_again_each_time_facts_are_gathered() -> None:
    (task,) = load("preflight/tasks/cluster.yml")
    (arguments,) = [part for name, part in task.items() if name.endswith("cluster_facts")]
    assert arguments["versions"] == "{{ swarmspeed_versions_requested }}"
    (gathers, *dummy) = load("preflight/tasks/gather.yml")
    assert arguments["gathered"] == gathers["register"]


@pytest.mark.parametrize(
    ("changed", "builds"),
    [
        ({}, True),
        ({"training_image_source": "pull"}, False),
        ({"training_image_source": "archive"}, False),
        ({"deepspeed_launch_runtime": "host"}, False),
    ],
)
def test_only_an_image_that_is_built_here_is_judged(changed: dict[str, Any], *, builds: bool) -> None:
    found = variables(**changed)
    found["swarmspeed_cluster"] = {**found["swarmspeed_cluster"], "versions": {"notes": ["CUDA 13.0."]}}
    assert value("_preflight_builds_image", found) is builds
    assert ("CUDA 13.0." in value("_preflight_reported", found)) is builds
