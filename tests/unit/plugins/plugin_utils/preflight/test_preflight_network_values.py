# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Variables of swarm and overlay that are wrong on any host."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.problems import collect
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory import Inventory
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.inventory_checks import (
    INVENTORY_CHECKS,
    check_managers,
)
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.preflight.network_values import (
    check_cluster_address,
    check_overlay_values,
    check_swarm_values,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

DEFAULTS: dict[str, Any] = {
    "overlay_network_name": "demo",
    "overlay_network_subnet": "",
    "overlay_network_pool": "10.64.0.0/12",
    "overlay_network_mtu": 0,
    "overlay_network_encrypted": False,
    "swarm_data_path_port": 4789,
    "swarm_default_address_pool": [],
    "swarm_advertise_address": "",
    "swarm_data_path_address": "",
    "training_container_address": "",
    "cluster_address": "",
    "cluster_underlay_subnet": "",
}


def inventory(hosts: int = 2, **of_b: Any) -> Inventory:
    """Return hosts a, b, …; a value for ``x`` is that of all, one for ``b_x`` that of b alone."""
    names = [chr(ord("a") + number) for number in range(hosts)]
    everyone = {key: value for key, value in of_b.items() if not key.startswith("b_")}
    own = {key[2:]: value for key, value in of_b.items() if key.startswith("b_")}
    return Inventory(
        groups={"cluster": names, "managers": names[:1], "workers": names[1:]},
        hosts={name: {**everyone, **(own if name == "b" else {})} for name in names},
        defaults=DEFAULTS,
    )


def lines(found: Inventory) -> list[str]:
    checks = {
        "cluster_address": check_cluster_address,
        "swarm_values": check_swarm_values,
        "overlay_values": check_overlay_values,
    }
    return [problem.line() for problem in collect(checks, found).problems]


def test_defaults_pass() -> None:
    assert lines(inventory()) == []
    assert INVENTORY_CHECKS["cluster_address"] is check_cluster_address
    assert INVENTORY_CHECKS["swarm_values"] is check_swarm_values
    assert INVENTORY_CHECKS["overlay_values"] is check_overlay_values


@pytest.mark.parametrize(
    "values",
    [
        {"overlay_network_subnet": "10.20.0.0/24", "overlay_network_mtu": "9000", "swarm_data_path_port": "4800"},
        {"overlay_network_subnet": "ten"},  # said with what was found on the hosts
        {"swarm_default_address_pool": ["10.32.0.0/12", "10.48.0.0/12"]},
        {"training_container_address": "auto", "swarm_advertise_address": "bond0"},
        {"training_container_address": "10.64.0.20", "b_training_container_address": "10.64.0.21"},
        {"overlay_network_mtu": "many", "swarm_data_path_port": "some"},  # said by the check of types
    ],
)
def test_values_that_pass(values: dict[str, Any]) -> None:
    assert lines(inventory(**values)) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"overlay_network_subnet": "10.20.0.0/29"},
            "overlay_network_subnet: 10.20.0.0/29 has room for 2 nodes, as each takes two addresses, but the cluster "
            "has 3. Remedy: give a larger one, such as a /24.",
        ),
        (
            {"b_overlay_network_encrypted": True},
            "overlay_network_encrypted: differs between hosts of one cluster: 'False' and 'True'. Remedy: set it "
            "once, for "
            "the group cluster.",
        ),
        (
            {"swarm_default_address_pool": ["10.0.0.0/8", "10.20.0.0/16"]},
            "swarm_default_address_pool: 10.20.0.0/16 and 10.0.0.0/8 overlap, so addresses would be assigned twice. "
            "Remedy: give pools that share no address.",
        ),
        (
            {"swarm_advertise_address": "10.0.0.5"},
            "swarm_advertise_address: is 10.0.0.5 for a, b, c; each host needs an address of its own. Remedy: set it "
            "for "
            "each host, not for a group.",
        ),
        (
            {"b_cluster_address": "203.0.113.7"},
            "cluster_address: is set for b, but not for a, c. Remedy: set it for every host of the cluster, or for "
            "none.",
        ),
        (
            {"cluster_address": "203.0.113.7"},
            "cluster_address: is 203.0.113.7 for a, b, c; each host needs an address of its own. Remedy: set it for "
            "each host, not for a group.",
        ),
    ],
)
def test_values_that_are_refused(values: dict[str, Any], expected: str) -> None:
    assert lines(inventory(3, **values)) == [expected]


def test_an_address_beside_a_subnet_is_refused() -> None:
    found = inventory(cluster_address="203.0.113.7", b_cluster_address="198.51.100.9")
    assert lines(found) == []
    beside = inventory(
        cluster_address="203.0.113.7", b_cluster_address="198.51.100.9", cluster_underlay_subnet="10.0.0.0/8"
    )
    assert lines(beside) == [
        "cluster_address: is set in addition to cluster_underlay_subnet (10.0.0.0/8); only one of them can choose the "
        "network. Remedy: remove one of them."
    ]


def test_more_managers_than_help_are_a_warning() -> None:
    names = [f"n{number}" for number in range(9)]
    found = collect(
        {"managers": check_managers}, Inventory(groups={"cluster": names, "managers": names, "workers": []})
    )
    assert found.problems == ()
    assert [problem.line() for problem in found.warnings] == [
        "group managers: has 9 hosts; every decision of the swarm waits for more than half of them. Remedy: use 1, 3 "
        "or 5 managers and move the others to group workers.",
    ]


@settings(max_examples=examples(100), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*DEFAULTS, *(f"b_{name}" for name in DEFAULTS)]), st.text(max_size=8) | st.integers()
    )
)
def test_any_value_passes_or_gets_words(values: dict[str, Any]) -> None:
    assert all("Remedy: " in line for line in lines(inventory(2, **values)))
