# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the role nvidia_driver needs beside its plan."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible_collections.swarmspeed.cluster.plugins.filter.driver import FilterModule, driver_exclusion

FILTERS = Path(__file__).parents[4] / "plugins/filter"


def test_the_exclusion_is_the_same_in_any_order() -> None:
    assert driver_exclusion(["b", "a"]) == driver_exclusion(["a", "b"])
    assert "// Held: a b\n" in driver_exclusion(["b", "a"])


def test_each_filter_is_documented_under_its_name() -> None:
    for name in FilterModule().filters():
        documented = yaml.safe_load((FILTERS / f"{name}.yml").read_text(encoding="utf-8"))
        assert documented["DOCUMENTATION"]["name"] == name
