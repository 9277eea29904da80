# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the roles of swarm, overlay and container work out from the plan. Three nodes are invented."""

from __future__ import annotations

from typing import Any

from tests.role_values import NODES, ROLES, load, value


def variables(**changed: Any) -> dict[str, Any]:
    """Return defaults and variables of the roles, of gpu2."""
    found: dict[str, Any] = {}
    for role in ("preflight", "host", "docker", "swarm", "training_image", "overlay_network", "training_container"):
        for room in ("defaults", "vars"):
            if (ROLES / role / room).is_dir():
                found.update(load(f"{role}/{room}/main.yml") or {})
    swarm = {"state": "active", "manager": True, "node_id": "n1", "nodes": []}
    of_first = {"swarmspeed": {"docker": {"networks": {}, "swarm": swarm}, "system": {"hostname": "gpu1"}}}
    container = {"state": "running", "addresses": {"swarmspeed": "10.64.0.9"}, "labels": {}}
    facts = {
        "swarmspeed": {
            "docker": {"containers": {"swarmspeed-gpu2": container}, "swarm": swarm},
            "system": {"memory_bytes": 64 << 30, "hostname": "gpu2"},
            "fabric": {"infiniband": []},
        }
    }
    return {
        **found,
        "inventory_hostname": "gpu2",
        "deepspeed_launch_runtime": "container",
        "groups": {"managers": ["gpu1"], "workers": ["gpu2", "gpu3"]},
        "swarmspeed_cluster": {
            "hosts": list(NODES),
            "first": "gpu1",
            "underlay": {"mtu": 1500, "addresses": {name: f"10.1.0.{rank}" for rank, name in enumerate(NODES, 1)}},
            "overlay": {"subnet": "10.64.0.0/24", "mtu": 1500, "addresses": {}},
        },
        "ansible_facts": facts,
        "hostvars": {"gpu1": {"ansible_facts": of_first}, "gpu2": {}, "gpu3": {"swarm_advertise_address": "10.9.0.3"}},
        **changed,
    }


def test_hosts_of_proxies_and_mirrors_are_asked_for_without_their_passwords() -> None:
    values = variables(
        host_apt_proxy="http://me:s3cret@apt.example:3128",
        docker_proxy={"http": "http://me:s3cret@10.70.0.5:3128", "no_proxy": "inside.example"},
        docker_daemon_config={"registry-mirrors": ["https://registry.example"], "dns": ["10.70.0.53"], "mtu": 1400},
        docker_source="docker",
        docker_repository_url="https://me:s3cret@packages.example/linux",
    )
    expected = ["10.70.0.5", "10.70.0.53", "apt.example", "packages.example", "registry.example"]
    assert value("_preflight_services", values) == expected
    assert value("_preflight_services", variables()) == []  # nothing is resolved where nothing is set
    # Alone, the role overlay_network knows none of these variables.
    assert (
        value("_preflight_services", {"_preflight_services": load("preflight/vars/main.yml")["_preflight_services"]})
        == []
    )


def test_addresses_of_the_swarm() -> None:
    # What preflight compares with what the nodes tell: a host's own address, else the underlay's.
    assert value("_preflight_swarm_addresses", variables()) == {
        "gpu1": "10.1.0.1",
        "gpu2": "10.1.0.2",
        "gpu3": "10.9.0.3",
    }
