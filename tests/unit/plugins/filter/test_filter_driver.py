# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nvidia_driver needs beside its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.driver import (
    FilterModule,
    driver_exclusion,
    driver_request,
)

FILTERS = Path(__file__).parents[4] / "plugins/filter"


def test_the_settings_are_those_of_the_host() -> None:
    requested = driver_request({"nvidia_driver_branch": 570, "nvidia_driver_hold": True, "other": 1})
    assert requested.pop("offers")["debian 12"][0]["branch"] == 535
    assert {"linux": "7.0", "branch": 580, "driver": "580.142"} in requested.pop("builds")
    assert requested == {"branch": 570, "hold": True}


@pytest.mark.parametrize("wishes", [None, [], "580"])
def test_what_is_no_mapping_is_refused(wishes: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="driver_request: expected the variables of a host as a mapping"):
        driver_request(wishes)


def test_the_exclusion_is_the_same_in_any_order() -> None:
    assert driver_exclusion(["b", "a"]) == driver_exclusion(["a", "b"])
    assert "// Held: a b\n" in driver_exclusion(["b", "a"])


def test_each_filter_is_documented_under_its_name() -> None:
    for name in FilterModule().filters():
        documented = yaml.safe_load((FILTERS / f"{name}.yml").read_text(encoding="utf-8"))
        assert documented["DOCUMENTATION"]["name"] == name
