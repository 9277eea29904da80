# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the roles of swarm, overlay and container work out from the plan. Three nodes are invented."""

from __future__ import annotations

from tests.role_values import value, variables


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
