# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""An image of one's own: which tasks are careful with what is secret, and what is checked of it, and when."""

from __future__ import annotations

from typing import Any

import pytest

from tests.planned_roles import PlannedRole
from tests.role_values import value, variables

ROLE = PlannedRole("training_image")


def test_what_holds_a_password_is_written_for_root_and_not_shown() -> None:
    task = ROLE.task("build", "Write the proxy and mirror settings of the build")
    assert (task["no_log"], task["ansible.builtin.copy"]["mode"]) == (True, "0600")
    build = ROLE.task("build", "Build the image (minutes) as")
    assert list(build["swarmspeed.cluster.image_build"]["secrets"]) == ["network"]


@pytest.mark.parametrize(
    ("given", "versions", "files"),
    [
        ({}, True, True),
        ({"training_image_dockerfile": "x"}, False, True),
        ({"training_image_source": "pull"}, False, False),
        ({"cluster_bundle": "/srv/bundle"}, True, False),
    ],
)
def test_what_preflight_checks_of_an_image(given: dict[str, Any], versions: bool, files: bool) -> None:
    values = variables(swarmspeed_bare=False, **given)
    assert value("_preflight_builds_image", values) is versions
    assert value("_preflight_reads_image", values) is files
