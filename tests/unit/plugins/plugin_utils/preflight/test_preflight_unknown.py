# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A template that cannot be evaluated before a connection, or an empty value: no check ends with a traceback."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import INVENTORY_CHECKS

from tests.role_values import defaults

DEFAULTS = defaults()
GIVEN: dict[str, Any] = {
    "assets_sources": [{"name": "a", "folder": "/a"}],
    "deepspeed_launch_script": "train.py",
    "deepspeed_launch_vscode_extensions": ["a.vsix"],
    "training_container_volumes": ["/data:/x"],
    "workspace_source": "/source",
}


@pytest.mark.parametrize("given", [{}, GIVEN], ids=["the defaults", "several given"])
@pytest.mark.parametrize("empty", [False, True], ids=["not known yet", "null"])
def test_no_variable_ends_the_checks_before_a_connection(given: dict[str, Any], empty: bool) -> None:
    groups = {"cluster": ["a", "b"], "managers": ["a"], "workers": ["b"]}
    for name in DEFAULTS:
        known = {key: value for key, value in given.items() if key != name} | ({name: None} if empty else {})
        inventory = Inventory(
            groups=groups,
            hosts=dict.fromkeys(groups["cluster"], known),
            names={host: [*given, name] for host in groups["cluster"]},
            defaults=DEFAULTS,
        )
        for check in INVENTORY_CHECKS.values():
            assert all(problem.line() for problem in check(inventory)), name
