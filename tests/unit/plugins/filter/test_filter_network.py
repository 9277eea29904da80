# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filters about hosts in URLs and about networks: errors are Ansible's, and each is documented beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.filter import network

FILTERS = network.FilterModule().filters()


def test_filters() -> None:
    assert FILTERS["url_hosts"](["http://a:b@proxy:1", {"https": "http://proxy"}]) == ["proxy"]
    wanted = {"subnet": "10.64.0.0/24", "mtu": 1500, "encrypted": False}
    found = {"driver": "overlay", "attachable": True, "subnets": ["10.64.0.0/24"], "options": {}}
    assert FILTERS["network_differences"](found, wanted) == []
    assert FILTERS["network_differences"](found, {**wanted, "mtu": "9000"}) == [
        "its MTU is 1500 (not set), wanted is 9000"
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([], {}), "network_differences: expected two mappings."),
        (({}, {"mtu": 1}), "network_differences: wanted needs subnet, encrypted."),
    ],
)
def test_errors(arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as error:
        FILTERS["network_differences"](*arguments)
    assert str(error.value) == text


def test_every_filter_is_documented_beside_it() -> None:
    for name in FILTERS:
        beside = Path(network.__file__).with_name(f"{name}.yml")
        documented = from_yaml(beside.read_text(encoding="utf-8"))["DOCUMENTATION"]
        assert documented["name"] == name
        assert "_input" in documented["options"]
