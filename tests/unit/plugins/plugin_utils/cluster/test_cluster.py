# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What concerns more than one node. Facts of hosts are invented, in the shape node_facts gives them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.trees import tree_manifest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.cluster.underlay import UnderlayError
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.core.values import fingerprint
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.overlay_network.addressing import OverlayRequest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.registry.cluster_view import (
    ClusterError,
    choose_accelerator,
    cluster_view,
    slots_of,
    weakest,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples


@pytest.mark.parametrize(
    ("wanted", "has_gpu", "expected"),
    [
        ("auto", {"a": True, "b": True}, "cuda"),
        ("auto", {"a": False, "b": False}, "cpu"),
        ("cpu", {"a": True, "b": False}, "cpu"),
        ("cpu", {"a": True}, "cpu"),
        ("cuda", {"a": True}, "cuda"),
    ],
)
def test_accelerator(wanted: str, has_gpu: dict[str, bool], expected: str) -> None:
    assert choose_accelerator(wanted, has_gpu) == expected


REMEDY = " Remedy: take the host out of the inventory, or set cluster_accelerator: cpu."


@pytest.mark.parametrize(
    ("wanted", "has_gpu", "message"),
    [
        ("auto", {"a": True, "b": False}, "b: no NVIDIA GPU found, but a has one." + REMEDY),
        ("cuda", {"a": True, "b": False, "c": True}, "b: no NVIDIA GPU found, but a, c have one." + REMEDY),
        ("auto", {"a": False, "b": False, "c": True}, "a, b: no NVIDIA GPU found, but c has one." + REMEDY),
        ("cuda", {"a": False}, "a: no NVIDIA GPU found, but cluster_accelerator is cuda." + REMEDY),
    ],
)
def test_a_mixture_of_accelerators_is_refused(wanted: str, has_gpu: dict[str, bool], message: str) -> None:
    with pytest.raises(ClusterError) as caught:
        choose_accelerator(wanted, has_gpu)
    assert str(caught.value) == message


def test_slots() -> None:
    gpus = {"a": 8, "b": 4}
    assert slots_of("cuda", gpus, {}) == {"a": 8, "b": 4}
    assert slots_of("cpu", gpus, {}) == {"a": 1, "b": 1}
    assert slots_of("cuda", gpus, {"a": 2, "b": None}) == {"a": 2, "b": 4}
    assert slots_of("cpu", gpus, {"a": "3", "b": ""}) == {"a": 3, "b": 1}
    assert slots_of("cuda", gpus, {"a": 0, "other": 9}) == {"a": 0, "b": 4}


@pytest.mark.parametrize("value", ["many", "1.5", 1.5, -1, True, [8]])
def test_slots_that_are_no_number_are_refused(value: Any) -> None:
    with pytest.raises(ClusterError) as caught:
        slots_of("cuda", {"a": 8}, {"a": value})
    assert str(caught.value) == f"a: gpu_slots is '{value}'. Set it to a whole number of at least 0, or remove it."


def facts(
    address: str = "192.168.7.11", slots: int = 0, problems: tuple[str, ...] = (), **networks: list[str]
) -> dict[str, Any]:
    """Return what cluster_view reads of one node: one interface, one way out of it, and these Docker networks."""
    interface = {
        "name": "eth0",
        "kind": "physical",
        "state": "up",
        "mtu": 1500,
        "speed_mbps": 1000,
        "parent": None,
        "addresses": [
            {"address": address, "family": "inet", "prefix": 24, "subnet": "192.168.7.0/24", "scope": "global"},
            {"address": "fe80::1", "family": "inet6", "prefix": 64, "subnet": "fe80::/64", "scope": "link"},
        ],
    }
    routes = [
        {"dst": "default", "dev": "eth0", "gateway": "192.168.7.1"},
        {"dst": "0.0.0.0/0", "dev": "eth0"},
        {"dst": "192.168.7.0/24", "dev": "eth0", "gateway": None},
        {"dst": "10.8.0.9", "dev": "eth0"},
        {"dev": "eth0"},
    ]
    return {
        "system": {"memory_bytes": 64 << 30},
        "gpu": {"slots": slots, "problems": list(problems), "gpus": [gpu() for dummy in range(slots)]},
        "fabric": {"interfaces": [interface], "routes": routes, "default_interface": "eth0"},
        "docker": {"networks": {name: {"subnets": subnets} for name, subnets in networks.items()}},
    }


def gpu(memory: int | None = 24 << 30, capability: str | None = "8.6") -> dict[str, Any]:
    return {"memory_bytes": memory, "compute_capability": capability}


def node(memory: int, *gpus: dict[str, Any]) -> dict[str, Any]:
    return {"system": {"memory_bytes": memory}, "gpu": {"gpus": list(gpus)}}


@pytest.mark.parametrize(
    ("nodes", "slots", "expected"),
    [
        (
            {"a": node(256, gpu(), gpu()), "b": node(128, gpu(16 << 30, "10.0"), gpu())},
            {"a": 2, "b": 2},
            {"gpus": {"count": 2, "memory": 16 << 30, "compute_capability": "8.6"}, "host_memory": 128},
        ),
        # b has 4 ranks in 128, so two of them have 64
        (
            {"a": node(100, gpu(), gpu()), "b": node(128, *[gpu()] * 4)},
            {"a": 2, "b": 4},
            {"gpus": {"count": 2, "memory": 24 << 30, "compute_capability": "8.6"}, "host_memory": 64},
        ),
        # who takes no part does not count
        (
            {"a": node(256, gpu()), "b": node(1, gpu(1, "3.0"))},
            {"a": 1, "b": 0},
            {"gpus": {"count": 1, "memory": 24 << 30, "compute_capability": "8.6"}, "host_memory": 256},
        ),
        (
            {"a": node(256, {**gpu(80 << 30), "mig": {"instances": [{"memory_bytes": 10 << 30}, {}]}})},
            {"a": 1},
            {"gpus": {"count": 1, "memory": 10 << 30, "compute_capability": "8.6"}, "host_memory": 256},
        ),
        ({"a": node(256, gpu(None, None))}, {"a": 1}, {"gpus": {"count": 1}, "host_memory": 256}),
        ({"a": node(256)}, {"a": 1}, {"gpus": {}, "host_memory": 256}),
        ({"a": node(256)}, {"a": 0}, {"gpus": {}, "host_memory": 0}),
    ],
)
def test_what_every_host_has(nodes: dict[str, Any], slots: dict[str, int], expected: dict[str, Any]) -> None:
    assert weakest(nodes, slots) == expected


def test_gpus_without_a_driver_count_as_what_they_will_be() -> None:
    bare = facts(problems=("no driver is loaded",))
    bare["gpu"]["pci_devices"] = [{}, {}]
    view = cluster_view(["a"], {"a": bare})
    assert (view["accelerator"], view["slots"], view["gpus"], view["gpus_known"]) == ("cuda", {"a": 2}, {}, False)
    # one of two has failed, and the driver works: what answers counts
    bare["gpu"].update(slots=1, gpus=[gpu()])
    assert (cluster_view(["a"], {"a": bare})["slots"], cluster_view(["a"], {"a": bare})["gpus_known"]) == (
        {"a": 1},
        True,
    )


def test_gpus_do_not_count_for_a_job_on_cpus() -> None:
    view = cluster_view(["a"], {"a": facts(slots=2)}, accelerator="cpu")
    assert (view["gpus"], view["host_memory"]) == ({}, 64 << 30)


def test_cluster_view() -> None:
    nodes = {
        "b": facts("192.168.7.12", 4),
        "a": facts("192.168.7.11", 8, lab=["10.20.0.0/24"]),
        "stranger": facts("192.168.7.13", 0, x=["10.99.0.0/24"]),
    }
    view = cluster_view(["b", "a"], nodes, slots={"a": 2}, overlay=OverlayRequest("lab"))
    assert view == {
        "hosts": ["b", "a"],
        "first": "b",
        "accelerator": "cuda",
        "slots": {"b": 4, "a": 2},
        "world_size": 6,
        "gpus": {"count": 2, "memory": 24 << 30, "compute_capability": "8.6"},
        "host_memory": 32 << 30,
        "gpus_known": True,
        "underlay": {
            "subnet": "192.168.7.0/24",
            "mtu": 1500,
            "interfaces": {"b": "eth0", "a": "eth0"},
            "addresses": {"b": "192.168.7.12", "a": "192.168.7.11"},
            "speed_mbps": 1000,
            "reason": "the only subnet that all hosts share",
        },
        "rdma": {"link_layer": None, "reason": "no node has an active RDMA port"},
        # the network is not on the first host, where it would be made, so another subnet is free
        "overlay": {"subnet": "10.64.0.0/24", "mtu": 1500, "addresses": {}},
    }
    assert cluster_view(["a", "b"], nodes, overlay=OverlayRequest("lab"))["overlay"]["subnet"] == "10.20.0.0/24"
    assert cluster_view(["b", "a"], nodes)["overlay"] is None


def test_a_gpu_whose_driver_is_broken_still_counts_as_one() -> None:
    nodes = {"a": facts("192.168.7.11", 8), "b": facts("192.168.7.12", 0, ("the driver is not loaded",))}
    assert cluster_view(["a", "b"], nodes)["accelerator"] == "cuda"
    nodes["b"]["gpu"]["problems"] = []
    with pytest.raises(ClusterError, match=r"^b: no NVIDIA GPU found, but a has one\."):
        cluster_view(["a", "b"], nodes)


def test_no_host_and_no_common_subnet_are_refused() -> None:
    with pytest.raises(ClusterError) as caught:
        cluster_view([], {})
    assert str(caught.value) == "The cluster has no hosts. Remedy: list some in the groups managers and workers."
    with pytest.raises(UnderlayError, match=r"10\.1\.0\.0/24"):
        cluster_view(["a"], {"a": facts()}, underlay_subnet="10.1.0.0/24")
    assert cluster_view(["a"], {"a": facts()}, underlay_subnet="")["underlay"]["subnet"] == "192.168.7.0/24"


def test_addresses_given_by_hand_are_the_underlay() -> None:
    nodes = {"a": facts("203.0.113.7"), "b": facts("198.51.100.9")}
    own = {"a": "203.0.113.7", "b": "198.51.100.9"}
    found = cluster_view(["a", "b"], nodes, own_addresses=own)["underlay"]
    assert (found["subnet"], found["addresses"], found["reason"]) == ("", own, "set by cluster_address")
    assert cluster_view(["a", "b"], nodes, own_addresses={"a": "", "b": ""})["underlay"]["subnet"] == "192.168.7.0/24"
    with pytest.raises(UnderlayError) as error:
        cluster_view(["a", "b"], nodes, underlay_subnet="128.0.0.0/1", own_addresses=own)
    assert str(error.value) == (
        "cluster_underlay_subnet and cluster_address are both set, but only one of them can choose the network. "
        "Remedy: remove one of them."
    )


NAMES = st.sampled_from(["a", "b", "ü", ".git", "skip.me"])
FILES = st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.binary(max_size=4), max_size=6)


@settings(max_examples=examples(60), deadline=None)
@given(FILES, st.lists(st.sampled_from([".git", "skip.me", "a"]), max_size=2))
def test_tree_manifest(files: dict[tuple[str, ...], bytes], exclude: list[str]) -> None:
    written: dict[str, bytes] = {}
    with TemporaryDirectory() as root:
        for parts, data in files.items():
            path = Path(root, *parts)
            # A name may be that of a file and of a folder: the first one counts.
            if not path.exists() and all(not above.is_file() for above in path.parents):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                written["/".join(parts)] = data
        manifest = tree_manifest(root, exclude)
    assert manifest == {
        path: hashlib.sha256(data).hexdigest()
        for path, data in written.items()
        if not set(path.split("/")) & set(exclude)
    }


def test_links_and_pipes_in_a_tree(tmp_path: Path) -> None:
    (tmp_path / "tree/sub").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.write_text("x")
    (tmp_path / "tree/link").symlink_to(outside)
    (tmp_path / "tree/dangling").symlink_to(tmp_path / "none")
    (tmp_path / "tree/round").symlink_to(tmp_path / "tree")
    os.mkfifo(tmp_path / "tree/pipe")  # reading it would hang
    assert tree_manifest(str(tmp_path / "tree"), []) == {"link": hashlib.sha256(b"x").hexdigest()}


JSONABLE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(100), deadline=None)
@given(JSONABLE, JSONABLE)
def test_a_fingerprint_is_that_of_the_value(one: Any, two: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)
    assert (fingerprint(one) == fingerprint(two)) is same
    assert len(fingerprint(one)) == 16 and set(fingerprint(one)) <= set("0123456789abcdef")


def test_a_fingerprint_begins_the_hash_of_the_json() -> None:
    # printf '{"a":1}' | sha256sum
    assert fingerprint({"a": 1}) == "015abd7f5cc57a2d"


def test_a_fingerprint_stays_the_same_between_releases() -> None:
    # It is a label on containers: with another one every cluster would recreate them.
    assert fingerprint({"b": [1, None, True], "a": "ü"}) == fingerprint({"a": "ü", "b": [1, None, True]})
    assert fingerprint({"b": [1, None, True], "a": "ü"}) == "0bcbd63cdf25e003"
    assert fingerprint(Path("/a")) == fingerprint("/a")
