# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Roles on servers without Docker: which do nothing there, what others write, and when an environment is rebuilt."""

from __future__ import annotations

from typing import Any

import pytest

from tests.role_values import load, task_inputs, value, variables

# Whether the roles of Docker have anything to do is planned: tests/unit/plugins/plugin_utils.
ENVIRONMENT = {"workspace_python_environment": "/opt/train"}


def done(file: str, **changed: Any) -> list[str]:
    """Return the tasks of a file, that would run, as far as their own conditions show."""
    given = variables(file.split("/", maxsplit=1)[0], ansible_check_mode=False, **changed)
    return [
        next(key for key in task if "." in key or key == "block") for task in load(file) if task_inputs(task, given)
    ]


def test_nothing_of_docker_is_verified_there() -> None:
    planned = {"pending": {"gpu2": {"docker": False}}}
    assert done("docker/tasks/verify.yml", deepspeed_launch_runtime="host", swarmspeed_plan=planned) == []
    assert done("docker/tasks/verify.yml", swarmspeed_plan=planned) == ["block"]


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, "overlay"),
        ({"deepspeed_launch_runtime": "container"}, "overlay"),
        ({"deepspeed_launch_runtime": "host"}, "host"),
        # preflight refuses this; the roles must not decide it in silence
        ({"deepspeed_launch_runtime": "host", "cluster_network_mode": "overlay"}, "overlay"),
        ({"cluster_network_mode": "host"}, "host"),
    ],
)
def test_without_docker_the_network_is_the_hosts(given: dict[str, str], mode: str) -> None:
    assert value("cluster_network_mode", variables(**given)) == mode


@pytest.mark.parametrize(
    ("given", "place", "record"),
    [
        ({"deepspeed_launch_runtime": "host"}, "", None),
        ({"deepspeed_launch_runtime": "host", **ENVIRONMENT}, "/opt/train", "/opt/train/.swarmspeed"),
        (ENVIRONMENT, "/var/lib/docker", None),
    ],
)
def test_where_space_is_needed(given: dict[str, str], place: str, record: str | None) -> None:
    found = variables("workspace", swarmspeed_image="a:1", **given)
    assert value("_preflight_place", found) == place
    assert value("_preflight_space", found)["unless_file"] == record
