# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a network benchmark will do: within its time and bytes, whatever the number of nodes."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.network_bench.pairs import IPERF_SECONDS, TRIP_SECONDS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bench.plan import (
    GIB,
    LIMITS,
    BenchError,
    evenly,
    message_sizes,
    part,
    plan,
    subnets,
)
from hypothesis import given
from hypothesis import strategies as st

SETTINGS: dict[str, Any] = {
    "seconds": 30,
    "message_mib": 64,
    "gib": 32,
    "port": 29717,
    "min_ratio": 0.0,
    "min_gigabits": 0.0,
    "min_busbw": 0.0,
}


def slots(count: int, each: int = 1) -> dict[str, int]:
    return {f"gpu{number + 1}": each for number in range(count)}


def test_three_nodes() -> None:
    found = plan(slots(3), "cpu", SETTINGS)
    assert found["nodes"] == ["gpu1", "gpu2", "gpu3"]
    assert (found["backend"], found["slots"], found["port"]) == ("gloo", [1, 1, 1], 29717)
    assert sorted(pair for pairs in found["rounds"] for pair in pairs) == [[0, 1], [0, 2], [1, 2]]
    assert found["floor_rounds"] == found["rounds"]
    assert found["pair_seconds"] == 0.5
    assert found["sizes"] == [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
    assert found["collective_seconds"] == 15


def test_gpus_are_measured_with_nccl_and_nodes_without_a_slot_stay_out() -> None:
    found = plan({"gpu1": 8, "login": 0, "gpu2": 4}, "cuda", SETTINGS)
    assert (found["backend"], found["nodes"], found["slots"]) == ("nccl", ["gpu1", "gpu2"], [8, 4])


@given(st.integers(2, 80), st.integers(10, 600), st.integers(1, 4096))
def test_time_and_bytes_are_kept_with_any_number_of_nodes(count: int, seconds: int, gib: int) -> None:
    found = plan(slots(count), "cpu", {**SETTINGS, "seconds": seconds, "gib": gib})
    rounds = found["rounds"]
    assert rounds and len(rounds) <= found["rounds_of_all"]
    assert len(rounds) * 2 * (found["pair_seconds"] + TRIP_SECONDS) <= seconds * 0.5
    assert len(found["floor_rounds"]) * 2 * IPERF_SECONDS <= seconds
    assert len(rounds) * found["pair_bytes"] + found["collective_bytes"] <= gib * GIB
    assert found["limit_seconds"] > found["gather_seconds"] + 2 * seconds
    for pairs in rounds:
        busy = [node for pair in pairs for node in pair]
        assert len(busy) == len(set(busy))


@given(st.lists(st.integers(), unique=True), st.integers(1, 50))
def test_rounds_that_are_left_out_are_left_out_evenly(items: list[int], most: int) -> None:
    found = evenly(items, most)
    assert len(found) == min(len(items), most) == len(set(found))
    places = [items.index(item) for item in found]
    steps = {later - earlier for earlier, later in zip(places, places[1:])}
    assert places == sorted(places) and (not steps or max(steps) - min(steps) <= 1)


@pytest.mark.parametrize(("largest", "expected"), [(4096, [4096]), (1 << 20, [4096, 16384, 65536, 262144, 1 << 20])])
def test_sizes(largest: int, expected: list[int]) -> None:
    assert message_sizes(largest) == expected


def test_one_node_is_no_network() -> None:
    with pytest.raises(BenchError) as caught:
        plan({"gpu1": 8, "gpu2": 0}, "cuda", SETTINGS)
    assert str(caught.value) == (
        "There is 1 host with slots in the inventory: a network needs two. Remedy: add hosts to managers or workers, "
        "or give them gpu_slots."
    )


@pytest.mark.parametrize("name", sorted(LIMITS))
@pytest.mark.parametrize("value", [-1, "many", None, float("nan"), 1e9])
def test_settings_that_cannot_be_meant_are_named(name: str, value: Any) -> None:
    with pytest.raises(BenchError, match=rf"^overlay_network_bench_{name} is .*; give [0-9.]+ to [0-9.]+"):
        plan(slots(2), "cpu", {**SETTINGS, name: value})


def test_all_of_them_are_named_at_once() -> None:
    with pytest.raises(BenchError) as caught:
        plan(slots(2), "cpu", {**SETTINGS, "seconds": 3, "min_ratio": 2})
    assert str(caught.value) == (
        "overlay_network_bench_seconds is 3; give 10 to 600 seconds; overlay_network_bench_min_ratio is 2; give 0 to 1."
    )


def test_a_part_says_how_to_find_the_own_address() -> None:
    common = plan(slots(2), "cuda", SETTINGS)
    hosts = {
        "kind": "host",
        "master": "192.0.2.1",
        "interfaces": {"gpu1": "eno1", "gpu2": "ens3"},
        "addresses": {"gpu1": "192.0.2.1", "gpu2": "192.0.2.2"},
        "environment": {"NCCL_IB_HCA": "mlx5"},
        "rdma": {"gpu2": {"NCCL_IB_HCA": "=mlx5_0:1", "NCCL_IB_GID_INDEX": "3"}},
    }
    reported = part(common, "gpu2", hosts)
    assert (reported["node"], reported["interface"], reported["address"], reported["subnet"]) == (
        1,
        "ens3",
        "192.0.2.2",
        "",
    )
    assert reported["floor_rounds"] == common["floor_rounds"] and reported["environment"] == {
        "NCCL_IB_HCA": "mlx5",
        "NCCL_IB_GID_INDEX": "3",
    }
    assert part(common, "gpu1", hosts)["environment"] == {"NCCL_IB_HCA": "mlx5"}
    overlay = {
        "kind": "overlay",
        "master": "lab-bench-gpu1",
        "subnet": "10.64.0.0/24",
        "environment": {"NCCL_IB_DISABLE": 0},
        "rdma": {"gpu1": {"NCCL_IB_HCA": "=mlx5_0:1"}},
    }
    reported = part(common, "gpu1", overlay)
    assert (reported["node"], reported["interface"], reported["subnet"]) == (0, "", "10.64.0.0/24")
    assert reported["floor_rounds"] == [] and reported["environment"] == {"NCCL_IB_DISABLE": "1"}
    assert "rounds_of_all" not in reported


def node(*taken: str) -> dict[str, Any]:
    return {
        "fabric": {
            "interfaces": [{"name": "eno1", "addresses": [{"address": "10.64.0.5", "subnet": taken[0]}]}],
            "routes": [{"dst": "default"}, {"dst": taken[1]}, {"dst": "fe80::/64"}, {}],
        },
        "docker": {"networks": {"bridge": {"subnets": [taken[2]]}, "host": {"subnets": []}}},
    }


def test_own_subnets_are_free_on_every_host_and_differ() -> None:
    facts = {"gpu1": node("10.64.0.0/24", "10.64.1.0/24", "172.17.0.0/16")}
    facts["gpu2"] = node("192.0.2.0/24", "198.51.100.0/24", "10.64.3.7/25")
    assert subnets(facts, "10.64.0.0/12", 2) == ["10.64.2.0/24", "10.64.4.0/24"]
    assert subnets(facts, "10.64.0.0/12", 0) == []
    with pytest.raises(BenchError, match=r"^overlay_network_pool: .*10\.64\.0\.0/23"):
        subnets(facts, "10.64.0.0/23", 1)
