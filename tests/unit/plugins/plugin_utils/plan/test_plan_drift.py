# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What verify says of a role that would change something."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.drift import RoleDrift, drift

PLANNED = {
    "host": ["a is 1, but should be 2", "/etc/env is missing"],
    "docker": [],
    "deepspeed_launch": ["x is missing"],
}


def test_one_line_names_host_role_difference_and_remedy() -> None:
    assert RoleDrift("host", ("/etc/env is missing", "a is 1, but should be 2")).sentence("gpu2") == (
        "gpu2: role host: /etc/env is missing; a is 1, but should be 2. Remedy: ansible-playbook site.yml --tags host"
    )


@pytest.mark.parametrize(
    ("roles", "tags", "listed"),
    [
        (["host", "docker", "deepspeed_launch"], ["all"], ["host", "deepspeed_launch"]),
        (["docker"], ["docker"], []),
        (["preflight"], ["hostfile"], ["deepspeed_launch"]),
        (["preflight"], ["ds_config", "host"], ["deepspeed_launch"]),
        (["preflight"], ["launch"], []),
    ],
)
def test_only_roles_of_the_tags_are_listed(roles: list[str], tags: list[str], listed: list[str]) -> None:
    found = drift(PLANNED, roles, tags)
    assert [one.role for one in found] == listed
    assert all(one.what == tuple(PLANNED[one.role]) for one in found)
