# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters through which the role asks for its plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError
from ansible_collections.swarmspeed.cluster.plugins.filter.driver import (
    FilterModule,
    driver_exclusion,
    driver_plan,
    driver_request,
)

FILTERS = Path(__file__).parents[4] / "plugins/filter"
WORKING: dict[str, Any] = {
    "gpu": {
        "pci_devices": [{"address": "0000:3b:00.0", "driver": "nvidia", "generation": "Hopper"}],
        "driver": {
            "loaded": True,
            "version": "580.95.05",
            "flavour": "open",
            "library_version": "580.95.05",
            "matches": True,
        },
    }
}


def test_a_driver_that_works() -> None:
    found = driver_plan(WORKING, {"branch": 580})
    assert (found["state"], found["problems"], found["off"]) == ("works", [], [])
    assert found["found"] == found["wanted"] == {"driver": "580.95.05 (open), loaded"}


def test_everything_in_a_plan_is_plain() -> None:
    """Jinja adds lists to lists, and a module's arguments are JSON."""

    def plain(value: Any) -> bool:
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(part) for key, part in value.items())
        if isinstance(value, list):
            return all(map(plain, value))
        return value is None or isinstance(value, (str, int, bool))

    assert plain(driver_plan(WORKING, {}))
    assert plain(driver_plan(WORKING, {"branch": "x", "source": "cuda_repository", "min_version": "600"}))


@pytest.mark.parametrize(("facts", "request_"), [(None, {}), ({}, "580"), ([], {})])
def test_what_is_no_mapping_is_refused(facts: Any, request_: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=r"driver_plan: (facts|request) must be a mapping"):
        driver_plan(facts, request_)


def test_a_hosts_own_variables_come_first() -> None:
    asked = driver_request({"nvidia_driver_branch": 570, "other": 1}, {"branch": "recommended", "hold": True})
    assert asked.pop("offers")["debian 12"][0]["branch"] == 535
    assert asked == {"branch": 570, "hold": True}


def test_the_exclusion_is_the_same_in_any_order() -> None:
    assert driver_exclusion(["b", "a"]) == driver_exclusion(["a", "b"])
    assert "// Held: a b\n" in driver_exclusion(["b", "a"])


def test_each_filter_is_documented_under_its_name() -> None:
    for name in FilterModule().filters():
        documented = yaml.safe_load((FILTERS / f"{name}.yml").read_text(encoding="utf-8"))
        assert documented["DOCUMENTATION"]["name"] == name
