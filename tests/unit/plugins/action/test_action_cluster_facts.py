# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The action cluster_facts: what it takes from hostvars, and its errors. Hosts are invented."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from ansible.parsing.utils.yaml import from_yaml
from ansible_collections.swarmspeed.cluster.plugins.action import cluster_facts
from ansible_collections.swarmspeed.cluster.plugins.modules import cluster_facts as documented

from tests.adversary.hostile import KEY, file
from tests.adversary.hostile import facts as honest_facts

KEY_FILE = "/srv/x/etc/ssh/ssh_host_ed25519_key.pub"


def host(number: int, slots: int = 0, key: str | None = None, **variables: Any) -> dict[str, Any]:
    """Return the variables of a host with two interfaces; the second subnet is the faster one."""
    interfaces = [
        {
            "name": name,
            "kind": "physical",
            "state": "up",
            "mtu": mtu,
            "speed_mbps": speed,
            "addresses": [
                {
                    "address": f"{net}.{number}",
                    "prefix": 24,
                    "subnet": f"{net}.0/24",
                    "family": "inet",
                    "scope": "global",
                }
            ],
        }
        for name, net, mtu, speed in (("eth0", "192.168.7", 1500, 1000), ("eth1", "10.7.0", 9000, 100000))
    ]
    absent = {"exists": False, "sha256": None, "mode": None, "owner": None, "group": None}
    files = {KEY_FILE: file(key) if key else absent}
    honest = honest_facts(number)
    network = {"driver": "overlay", "options": {}, "subnets": ["10.20.0.0/24"]}
    facts = {
        **honest,
        "system": {**honest["system"], "memory_bytes": 256 << 30},
        "gpu": {
            "present": slots > 0,
            "slots": slots,
            "problems": [],
            "gpus": [{"index": 0, "memory_bytes": 80 << 30, "compute_capability": "9.0"}] * slots,
            "pci_devices": [{"address": "0000:3b:00.0", "device_id": "0x2330", "driver": "nvidia"}] * slots,
            "driver": {"loaded": True, "version": "580.95.05", "flavour": "open", "library_version": "580.95.05"},
        },
        "fabric": {"interfaces": interfaces, "routes": [], "default_interface": "eth0", "problems": []},
        "docker": {**honest["docker"], "networks": {"lab": network}, "containers": {}},
        "files": files,
    }
    return {"ansible_facts": {"swarmspeed": facts}, **variables}


def run(args: dict[str, Any], hostvars: dict[str, Any]) -> dict[str, Any]:
    action = cluster_facts.ActionModule(
        task=SimpleNamespace(args=args, check_mode=False, async_val=0, diff=False, action="cluster_facts"),
        connection=SimpleNamespace(_shell=SimpleNamespace(tmpdir=None)),  # with it, nothing can be done on a node
        play_context=None,
        loader=None,
        templar=None,
        shared_loader_obj=None,
    )
    result: dict[str, Any] = action.run(task_vars={"hostvars": hostvars})
    return result


def failure(args: dict[str, Any], hostvars: dict[str, Any]) -> str:
    with pytest.raises(AnsibleActionFail) as caught:
        run(args, hostvars)
    return str(caught.value)


def test_the_view_of_a_cluster() -> None:
    hostvars = {
        "a": host(1, 8, key=KEY, training_container_address="auto"),
        "b": host(2, 8, gpu_slots="4"),
        "stranger": {"ansible_facts": {}},
    }
    requested = {"name": "lab", "containers": {"a": "lab-a", "b": "lab-b"}}
    hosts = {"hosts": ["b", "a"], "managers": ["b", "elsewhere"]}
    result = run({**hosts, "overlay": requested, "host_key_file": KEY_FILE}, hostvars)
    assert result["changed"] is False
    assert list(result["ansible_facts"]) == ["swarmspeed_cluster"]
    versions = result["ansible_facts"]["swarmspeed_cluster"].pop("versions")
    assert (versions["stack"], versions["capabilities"], versions["problems"]) == ("cu130", ["9.0"], [])
    assert result["ansible_facts"]["swarmspeed_cluster"] == {
        "hosts": ["b", "a"],
        "managers": ["b"],
        "first": "b",
        "accelerator": "cuda",
        "slots": {"b": 4, "a": 8},
        "world_size": 12,
        "gpus": {"count": 4, "memory": 80 << 30, "compute_capability": "9.0"},
        "host_memory": 128 << 30,
        "gpus_known": True,
        "underlay": {
            "subnet": "10.7.0.0/24",
            "mtu": 9000,
            "interfaces": {"b": "eth1", "a": "eth1"},
            "addresses": {"b": "10.7.0.2", "a": "10.7.0.1"},
            "speed_mbps": 100000,
            "reason": "the fastest of 2 subnets that all hosts share (100 Gbit/s; 192.168.7.0/24 has 1 Gbit/s)",
        },
        "rdma": {"link_layer": None, "reason": "no node has an active RDMA port"},
        "overlay": {"subnet": "10.20.0.0/24", "mtu": 1500, "addresses": {"a": "10.20.0.254"}},
        "host_keys": {"b": None, "a": KEY},
    }
    for name in (*result["ansible_facts"]["swarmspeed_cluster"], "versions", *versions):
        assert f"C({name})" in documented.RETURN


def test_hosts_that_take_part_and_what_is_asked_of_them_decide_on_versions() -> None:
    hostvars = {"old": host(1, 8, gpu_slots=0), "a": host(2, 8), "b": host(3, 8)}
    old = hostvars["old"]["ansible_facts"]["swarmspeed"]["gpu"]
    old["pci_devices"] = [{"address": "0000:3b:00.0", "device_id": "0x1b38", "driver": "nvidia"}]
    hosts = {"hosts": ["old", "a", "b"]}
    versions = run(hosts, hostvars)["ansible_facts"]["swarmspeed_cluster"]["versions"]
    assert (versions["cuda"], versions["capabilities"], list(versions["hosts"])) == ("13.0", ["9.0"], ["a", "b"])
    given = {"versions": {"cuda": 12.8, "torch": ""}, "gathered": "found"}
    hostvars["b"]["found"] = {"role_vars": {"nvidia_driver_branch": 570, "other": 1}}
    versions = run({**hosts, **given}, hostvars)["ansible_facts"]["swarmspeed_cluster"]["versions"]
    assert (versions["cuda"], versions["hosts"]["b"]["driver_branch"], versions["problems"]) == ("12.8", 570, [])
    del hostvars["old"]["gpu_slots"]
    versions = run(hosts, hostvars)["ansible_facts"]["swarmspeed_cluster"]["versions"]
    assert (versions["cuda"], versions["capabilities"]) == ("12.6", ["6.1", "9.0"])


def test_options_reach_the_view() -> None:
    hostvars = {"a": host(1, 8)}
    args = {"hosts": ["a"], "accelerator": "cpu", "underlay_subnet": "192.168.7.0/24"}
    view = run(args, hostvars)["ansible_facts"]["swarmspeed_cluster"]
    assert (view["accelerator"], view["slots"], view["underlay"]["mtu"]) == ("cpu", {"a": 1}, 1500)
    assert view["overlay"] is None  # none was asked for
    assert view["host_keys"] == {"a": None}


def test_addresses_of_ssh_decide_between_subnets_that_are_alike() -> None:
    hostvars = {name: host(number) for number, name in enumerate("ab", 1)}
    for variables in hostvars.values():
        for interface in variables["ansible_facts"]["swarmspeed"]["fabric"]["interfaces"]:
            interface["speed_mbps"] = 1000
    assert failure({"hosts": ["a", "b"]}, hostvars).startswith("The hosts share 2 subnets with equal claims: ")
    for number, variables in enumerate(hostvars.values(), 1):
        variables["ansible_host"] = f"192.168.7.{number}"
    assert run({"hosts": ["a", "b"]}, hostvars)["ansible_facts"]["swarmspeed_cluster"]["underlay"]["subnet"] == (
        "192.168.7.0/24"
    )


def test_the_addresses_that_hosts_were_given_are_read() -> None:
    hostvars = {name: host(number, cluster_address=f"192.168.7.{number}") for number, name in enumerate("ab", 1)}
    found = run({"hosts": ["a", "b"], "underlay_subnet": ""}, hostvars)["ansible_facts"]["swarmspeed_cluster"]
    assert found["underlay"]["addresses"] == {"a": "192.168.7.1", "b": "192.168.7.2"}
    assert found["underlay"]["subnet"] == ""
    del hostvars["b"]["cluster_address"]
    assert failure({"hosts": ["a", "b"]}, hostvars).startswith("b: cluster_address is not set, but it is for a. ")


@pytest.mark.parametrize("unseen", [{}, {"ansible_facts": {}}, {"ansible_facts": None}])
def test_hosts_without_facts_are_left_to_preflight(unseen: dict[str, Any]) -> None:
    assert run({"hosts": ["a", "b", "absent"]}, {"a": host(1), "b": unseen}) == {
        "changed": False,
        "skipped": True,
        "msg": "no facts of b, absent",
    }


@pytest.mark.parametrize(
    ("args", "hostvars", "message"),
    [
        ({"hosts": []}, {}, "The cluster has no hosts. "),
        (
            {"hosts": ["a", "b"]},
            {"a": host(1, 8), "b": host(2)},
            "b: no NVIDIA GPU found, ",
        ),
        (
            {"hosts": ["a"]},
            {"a": host(1, gpu_slots="many")},
            "a: gpu_slots is 'many'. ",
        ),
        (
            {"hosts": ["a"], "underlay_subnet": "somewhere"},
            {"a": host(1)},
            "cluster_underlay_subnet: 'somewhere' is not an IPv4 network",
        ),
        (
            {"hosts": ["a"], "overlay": {"name": "new", "pool": "10.20.0.0/24"}},
            {"a": host(1)},
            "overlay_network_pool: No /24 is free in 10.20.0.0/24. In use: a: network 10.20.0.0/24 of Docker's lab. ",
        ),
        (
            {"hosts": ["a"], "overlay": {"name": "lab"}},
            {"a": host(1, training_container_address="10.21.0.9")},
            "a: training_container_address 10.21.0.9 is not in the overlay's subnet 10.20.0.0/24. ",
        ),
        (
            {"hosts": ["a"], "overlay": {"name": "lab", "subnet": "ten"}},
            {"a": host(1, training_container_address="auto")},
            "overlay_network_subnet: the overlay's subnet: 'ten' is not an IPv4 network",
        ),
        (
            {"hosts": ["a"], "accelerator": "gpu"},
            {"a": host(1)},
            "value of accelerator must be one of: auto, cuda, cpu, got: gpu",
        ),
        ({}, {}, "missing required arguments: hosts"),
    ],
)
def test_errors(args: dict[str, Any], hostvars: dict[str, Any], message: str) -> None:
    assert failure(args, hostvars).startswith(message)


def test_it_needs_no_node_and_its_options_are_the_documented_ones() -> None:
    assert cluster_facts.ActionModule._requires_connection is False
    assert cluster_facts.ActionModule.TRANSFERS_FILES is False
    options = from_yaml(documented.DOCUMENTATION)["options"]
    reported = failure({"hosts": ["a"], "nonsense": 1}, {"a": host(1)})
    assert reported.endswith(f"Supported parameters include: {', '.join(sorted(options))}.")


def test_facts_of_another_run_count_as_missing() -> None:
    """A fact cache has those of last week, of a host that cannot be reached today."""
    hostvars = {"a": host(1, 8), "b": host(2, 8)}
    hostvars["a"]["ansible_facts"]["swarmspeed"]["run"] = "today"
    hostvars["b"]["ansible_facts"]["swarmspeed"]["run"] = "last week"
    result = run({"hosts": ["a", "b"], "run": "today"}, hostvars)
    assert (result["skipped"], result["msg"]) == (True, "no facts of b") and "ansible_facts" not in result
    hostvars["b"]["ansible_facts"]["swarmspeed"]["run"] = "today"
    assert run({"hosts": ["a", "b"], "run": "today"}, hostvars)["ansible_facts"]["swarmspeed_cluster"]["first"] == "a"
