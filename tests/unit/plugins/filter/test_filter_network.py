# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filter about hosts in URLs, and that it is documented beside it."""

from __future__ import annotations

from pathlib import Path

from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.filter import network

FILTERS = network.FilterModule().filters()


def test_filters() -> None:
    assert FILTERS["url_hosts"](["http://a:b@proxy:1", {"https": "http://proxy"}]) == ["proxy"]


def test_every_filter_is_documented_beside_it() -> None:
    for name in FILTERS:
        beside = Path(network.__file__).with_name(f"{name}.yml")
        documented = from_yaml(beside.read_text(encoding="utf-8"))["DOCUMENTATION"]
        assert documented["name"] == name
        assert "_input" in documented["options"]
