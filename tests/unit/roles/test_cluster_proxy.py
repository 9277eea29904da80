# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What follows from ``cluster_proxy``: each role's own proxy, what is reached without it, and jobs' environment."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.docker.files import proxy_environment

from tests.nccl_nodes import CONTAINER, ETC, HOST, ON_THE_HOST, cluster, files, host, plan, shown
from tests.role_values import defaults, value, variables

URL = "http://me:hunter2@proxy.example:3128"
FOLLOWING = (
    *("host_apt_proxy", "host_pip_proxy", "host_git_proxy", "assets_proxy"),
    *("training_image_proxy", "nccl_env_proxy"),
)
NODES: dict[str, Any] = {
    "groups": {"managers": ["gpu1"], "workers": ["gpu2", "gpu3"]},
    "hostvars": {
        "gpu1": {"ansible_host": "192.168.7.1", "cluster_address": "10.1.0.11"},
        "gpu2": {"ansible_host": "gpu2.example"},
        "gpu3": {},
    },
}
UNDERLAY = {
    "subnet": "10.1.0.0/24",
    "interfaces": {HOST: "bond0"},
    "addresses": {"gpu-1": "10.1.0.11", HOST: "10.1.0.12"},
}
CLUSTER = cluster(hosts=["gpu-1", HOST], underlay=UNDERLAY)


def docker_proxy(**changed: Any) -> Any:
    return value("docker_proxy", variables(cluster_proxy=URL, **NODES, **changed))


def environment(of_cluster: dict[str, Any] = CLUSTER, **desired: Any) -> dict[str, str]:
    """Return the variables of a rank, as the file on its node has them."""
    entry = files(plan(host(), of_cluster, **desired))[f"{ETC}/env"]
    assert entry["secret"] and entry["mode"] == "0600"
    return dict(line.split("=", 1) for line in entry["content"].splitlines())


def test_without_it_there_is_no_proxy_anywhere() -> None:
    found = defaults()
    assert [found[name] for name in ("cluster_proxy", *FOLLOWING)] == [""] * 7
    assert (found["docker_proxy"], found["cluster_no_proxy"]) == ({}, [])
    assert value("_preflight_proxies_set", variables()) == {} and value("_preflight_services", variables()) == []
    assert not [name for name in environment(nccl_env_proxy="") if "PROXY" in name]


def test_each_follows_it_unless_set() -> None:
    found = variables(cluster_proxy=URL, **NODES)
    assert [value(name, found) for name in FOLLOWING] == [URL] * 6
    for name in FOLLOWING:
        for own in ("", "http://other:1"):
            changed = {**found, name: own}
            assert [value(one, changed) for one in FOLLOWING] == [own if one == name else URL for one in FOLLOWING]
    assert value("docker_proxy", {**found, "docker_proxy": {}}) == {}
    assert (docker_proxy()["http"], docker_proxy()["https"]) == (URL, URL)


def test_the_engine_reaches_nodes_and_overlay_without_it() -> None:
    names = ["gpu1", "gpu2", "gpu3", "10.1.0.11", "192.168.7.1", "gpu2.example"]
    local = ["localhost", "127.0.0.0/8", "::1"]
    assert docker_proxy()["no_proxy"].split(",") == [*local, *names, "10.64.0.0/12"]
    given = docker_proxy(overlay_network_subnet="10.20.0.0/24", cluster_no_proxy=["mirror.example", "gpu1"])
    assert given["no_proxy"].split(",") == [*local, *names, "10.20.0.0/24", "mirror.example"]
    assert docker_proxy(cluster_network_mode="host")["no_proxy"].split(",") == [*local, *names]
    # What systemd hands to the engine.
    assert f'NO_PROXY="{given["no_proxy"]}"' in proxy_environment(given)


def test_another_server_is_another_list_only_where_the_subnet_is_not_named() -> None:
    fewer = {"groups": {"managers": ["gpu1"], "workers": ["gpu2"]}}
    of_two = variables(cluster_proxy=URL, **{**NODES, **fewer})
    assert value("docker_proxy", of_two) != docker_proxy()
    named = {"cluster_underlay_subnet": "10.1.0.0/24"}
    assert value("docker_proxy", {**of_two, **named}) == docker_proxy(**named)
    assert "10.1.0.0/24" in docker_proxy(**named)["no_proxy"].split(",")


def test_ranks_reach_each_other_without_it() -> None:
    found = environment(nccl_env_proxy=URL, cluster_no_proxy=["mirror.example", "192.168.0.0/16"])
    assert (found["HTTP_PROXY"], found["HTTPS_PROXY"]) == (URL, URL)
    direct = found["NO_PROXY"].split(",")
    assert direct[:4] == ["localhost", "127.0.0.0/8", "127.0.0.1", "::1"]
    nodes = {"gpu-1", "lab-gpu-1", HOST, CONTAINER, "10.1.0.11", "10.1.0.12"}
    assert set(direct[4:]) == nodes | {"10.20.0.0/24", "10.1.0.0/24", "mirror.example", "192.168.0.0/16"}
    assert len(direct) == len(set(direct))
    on_the_host = environment(nccl_env_proxy=URL, **ON_THE_HOST)
    of_no_container = {"training_container_environment": {"HTTPS_PROXY": "http://own:1"}}
    assert environment(nccl_env_proxy=URL, **ON_THE_HOST, **of_no_container) == on_the_host
    assert on_the_host["HTTPS_PROXY"] == URL and "10.1.0.11" in on_the_host["NO_PROXY"].split(",")


@pytest.mark.parametrize("variable", ["nccl_env_environment", "training_container_environment"])
def test_a_users_own_variable_stays(variable: str) -> None:
    found = environment(nccl_env_proxy=URL, **{variable: {"HTTPS_PROXY": "http://own:1"}})
    assert found.get("HTTPS_PROXY", "") == ("http://own:1" if variable == "nccl_env_environment" else "")
    assert found["HTTP_PROXY"] == URL and "localhost" in found["NO_PROXY"]


def test_the_plan_shows_no_password_of_a_jobs_proxy() -> None:
    made = plan(host(), CLUSTER, nccl_env_proxy=URL)
    assert ("+", "/env") in shown(made)
    assert "hunter2" not in "".join(str((change.before, change.after, change.why)) for change in made.changes)


def test_nodes_ask_one_proxy_and_the_one_name_is_reported() -> None:
    found = variables(cluster_proxy=URL, **NODES)
    assert value("_preflight_proxies_set", found) == {"cluster_proxy": URL}
    assert value("_preflight_services", found) == ["proxy.example"]
    mixed = {**found, "host_pip_proxy": "http://other:1", "host_apt_proxy": ""}
    assert value("_preflight_proxies_set", mixed) == {"host_pip_proxy": "http://other:1", "cluster_proxy": URL}
