# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the variables ask of a cluster, as the checks on facts read it."""

from __future__ import annotations

from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.plan.requested import (
    Need,
    Requested,
    needs,
    requested_by,
)

from tests.role_values import defaults

HOSTS = ("gpu1", "gpu2", "gpu3")
CLUSTER = {
    "underlay": {"addresses": {name: f"10.1.0.1{number}" for number, name in enumerate(HOSTS, 1)}, "mtu": 9000},
    "overlay": {"subnet": "10.64.0.0/24"},
    "versions": {"problems": []},
}


def of_cluster(
    each: dict[str, Any] | None = None, cluster: Any = None, builds: bool = False, **changed: Any
) -> Requested:
    given = {host: {} for host in HOSTS} if each is None else each
    found = CLUSTER if cluster is None else cluster
    return requested_by(defaults(**changed), given, ["gpu1"], found, "swarmspeed/x:1", builds)


def test_the_defaults_ask_for_an_overlay_of_the_clusters_name() -> None:
    found = of_cluster()
    assert (found.cluster_name, found.network_mode, found.runtime) == ("swarmspeed", "overlay", "container")
    assert (found.managers, found.overlay_subnet, found.ssh_port) == (("gpu1",), None, 2222)
    assert found.containers == {host: f"swarmspeed-{host}" for host in HOSTS}
    assert found.overlay["planned"] == {"subnet": "10.64.0.0/24"} and found.underlay["mtu"] == 9000
    assert (found.image_present, found.socket_interfaces, found.versions) == (None, {}, {})


def test_the_address_of_a_node_is_its_own_else_the_underlays() -> None:
    each: dict[str, Any] = {host: {"swarm_advertise_address": ""} for host in HOSTS}
    each["gpu3"] = {"swarm_advertise_address": "10.9.0.3"}
    addresses = {"gpu1": "10.1.0.11", "gpu2": "10.1.0.12", "gpu3": "10.9.0.3"}
    assert of_cluster(each).swarm["addresses"] == addresses
    assert of_cluster(each, cluster={}).swarm["addresses"] == {}


def test_interfaces_that_are_named_are_judged_in_the_hosts_network_and_no_token_is_kept() -> None:
    each: dict[str, Any] = {
        "gpu1": {"nccl_env_settings": {"NCCL_SOCKET_IFNAME": "=bond9"}},
        "gpu2": {"nccl_env_environment": {"GLOO_SOCKET_IFNAME": "bond0", "HF_TOKEN": "hf_invented"}},
        "gpu3": {},
    }
    found = of_cluster(each, cluster_network_mode="host")
    assert found.socket_interfaces == {
        "NCCL_SOCKET_IFNAME": {"gpu1": "=bond9", "gpu2": "", "gpu3": ""},
        "GLOO_SOCKET_IFNAME": {"gpu1": "", "gpu2": "bond0", "gpu3": ""},
    }
    assert "hf_invented" not in repr(found) and of_cluster(each).socket_interfaces == {}


def test_an_image_that_is_to_be_present_and_versions_of_one_that_is_built() -> None:
    assert of_cluster(training_image_source="present").image_present == "swarmspeed/x:1"
    assert of_cluster(builds=True).versions == {"problems": []}


def test_needs_of_space() -> None:
    given = {"/a": {"bytes": 5, "variable": ""}, "/b": {"bytes": 7, "unless_image": "x:1", "unless_file": ""}}
    assert needs(given) == {"/a": Need(5, ""), "/b": Need(7, unless_image="x:1")}
