# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The filter underlay: what it passes on, and that every error is one that Ansible shows without a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.filter import subnets

FILTERS = subnets.FilterModule().filters()


def host(address: str) -> dict[str, Any]:
    entry = {"address": address, "prefix": 24, "subnet": "10.0.5.0/24", "family": "inet", "scope": "global"}
    eth0 = {"name": "eth0", "mtu": 1400, "state": "up", "kind": "veth", "speed_mbps": 10000, "addresses": [entry]}
    return {"interfaces": [eth0], "routes": [], "default_interface": "eth0", "problems": []}


def test_underlay() -> None:
    hosts = {"a": host("10.0.5.1"), "b": host("10.0.5.2")}
    expected = {
        "subnet": "10.0.5.0/24",
        "interfaces": {"a": "eth0", "b": "eth0"},
        "addresses": {"a": "10.0.5.1", "b": "10.0.5.2"},
        "mtu": 1400,
        "speed_mbps": 10000,
        "reason": "the only subnet that all hosts share",
    }
    assert FILTERS["underlay"](hosts) == expected
    # An unset variable arrives as an empty string.
    assert FILTERS["underlay"](hosts, wanted="", ssh={"a": "10.0.5.1"}) == expected
    assert FILTERS["underlay"](hosts, "10.0.0.0/16")["subnet"] == "10.0.0.0/16"


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("underlay", ([],), "underlay: expected a mapping, got list."),
        ("underlay", ({},), "There is no host to find a common subnet for."),
        (
            "underlay",
            ({"a": host("10.0.5.1")}, "nonsense"),
            "cluster_underlay_subnet: 'nonsense' is not an IPv4 network such as 10.20.0.0/24.",
        ),
    ],
)
def test_errors_are_ansibles_and_say_what(name: str, arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(AnsibleFilterError) as error:
        FILTERS[name](*arguments)
    assert str(error.value) == text


def test_every_filter_is_documented_beside_it() -> None:
    for name in FILTERS:
        beside = Path(subnets.__file__).with_name(f"{name}.yml")
        documented = from_yaml(beside.read_text(encoding="utf-8"))["DOCUMENTATION"]
        assert documented["name"] == name
        assert "_input" in documented["options"]
