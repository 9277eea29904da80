# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role deepspeed_launch hands to ds_config."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build

from tests.role_values import templar, variables


def memlock(**changed: Any) -> Any:
    given = variables("training_container", "workspace", "deepspeed_launch", **changed)
    return templar(given).template(given["_deepspeed_launch_config"]["memlock"])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, -1),
        ({"training_container_ulimits": ["memlock:8388608:8388608"]}, 8388608),
        ({"training_container_ulimits": ["nofile:1024", "memlock:65536"]}, 65536),
        ({"training_container_ulimits": []}, None),
        ({"training_container_ulimits": ["memlock:unlimited"]}, None),
        ({"deepspeed_launch_runtime": "host"}, None),
    ],
)
def test_memlock_is_a_number(changed: dict[str, Any], expected: int | None) -> None:
    """As text it was refused by preflight, which hands it on as it is: with the defaults no job could be launched."""
    found = memlock(**changed)
    assert found == expected and isinstance(found, (int, type(None)))
    assert not [error for error in build(Request(memlock=found)).errors if error.path == "memlock"]
