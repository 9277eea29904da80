# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which pairs are slow, which links asymmetric, what is recommended, and what fails."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bench.verdict import (
    TIMES,
    asymmetric,
    best_quarter,
    failures,
    recommend,
    size_text,
    slow,
)
from hypothesis import given
from hypothesis import strategies as st

NODES = ("gpu1", "gpu2", "gpu3")
NONE = {"min_ratio": 0.0, "min_gigabits": 0.0, "min_busbw": 0.0}
MIB = 1 << 20
FIGURES = "9.3 against 3 GB/s, all_reduce of 64 MiB"


def pairs(*, rate: float = 10, **slower: float) -> list[dict[str, Any]]:
    """All directions; ``gpu1_gpu2=0.1`` and ``gpu1=0.1`` (all that it sends) change some."""
    return [
        {
            "from": one,
            "to": other,
            "gigabits_per_second": slower.get(f"{one}_{other}", slower.get(one, rate)),
            "latency_ms": 0.1,
        }
        for one in NODES
        for other in NODES
        if one != other
    ]


def measured(busbw: float, size: int = 64 * MIB, **slower: float) -> dict[str, Any]:
    return {
        "pairs": pairs(**slower),
        "collectives": [
            {"op": "all_reduce", "bytes": 4096, "seconds": 1.0, "busbw_gigabytes_per_second": busbw * 100},
            {"op": "all_reduce", "bytes": size, "seconds": 1.0, "busbw_gigabytes_per_second": busbw},
            {"op": "all_gather", "bytes": size * 4, "seconds": 1.0, "busbw_gigabytes_per_second": 999.0},
        ],
    }


def test_equal_pairs_are_not_slow() -> None:
    assert slow({"overlay": {"pairs": pairs()}}, {"pairs": pairs()}) == ([], [])


def test_a_node_with_a_bad_link_in_both_directions_is_found_among_three() -> None:
    """Four of six directions are slow then: measured against the median nothing would be."""
    found = pairs(gpu2=0.1, gpu1_gpu2=0.1, gpu3_gpu2=0.1)
    nodes, lines = slow({"overlay": {"pairs": found}}, {})
    assert {(line["from"], line["to"]) for line in lines} == {
        ("gpu2", "gpu1"),
        ("gpu2", "gpu3"),
        ("gpu1", "gpu2"),
        ("gpu3", "gpu2"),
    }
    assert [(line["node"], line["text"]) for line in nodes] == [
        (
            "gpu2",
            f"gpu2 {way} at most 0.1 Gbit/s in overlay, whatever the other node, where the best quarter of the pairs "
            "has 10: check its link, cable and switch port (ethtool).",
        )
        for way in ("sends", "receives")
    ]


def test_one_slow_direction_is_one_slow_pair_and_no_node() -> None:
    nodes, lines = slow({"host": {"pairs": pairs(gpu1_gpu3=4.9)}}, {})
    assert nodes == []
    assert [line["text"] for line in lines] == [
        "gpu1 → gpu3 in host: 4.9 Gbit/s, where the best quarter of the pairs has 10."
    ]
    assert slow({"host": {"pairs": pairs(gpu1_gpu3=5.1)}}, {}) == ([], [])


def test_iperf3_counts_too() -> None:
    dummy, lines = slow({}, {"pairs": [{**pair, "latency_ms": None} for pair in pairs(gpu1_gpu3=1)]})
    assert [line["network"] for line in lines] == ["floor"]


@pytest.mark.parametrize(("late", "named"), [(0.25, False), (0.59, False), (0.61, True), (40.0, True)])
def test_a_late_pair_is_later_than_a_busy_scheduler(late: float, named: bool) -> None:
    found = pairs()
    found[0]["latency_ms"] = late
    dummy, lines = slow({"overlay": {"pairs": found}}, {})
    assert bool(lines) is named
    if named:
        assert lines[0]["text"] == (
            f"gpu1 → gpu2 in overlay: a round trip takes {late:.3g} ms, where the best quarter of the pairs has 0.1."
        )


def test_an_asymmetric_link_is_named_by_its_slow_direction() -> None:
    found = asymmetric({"overlay": {"pairs": pairs(gpu3_gpu2=0.1)}, "host": {"pairs": pairs()}})
    assert found == [
        {
            "from": "gpu3",
            "to": "gpu2",
            "network": "overlay",
            "text": "gpu3 → gpu2 in overlay: 0.1 Gbit/s, and 10 the other way.",
        }
    ]


@given(st.lists(st.floats(0.001, 1000), min_size=1))
def test_the_best_quarter(values: list[float]) -> None:
    high, low = best_quarter(values), best_quarter(values, low=True)
    assert high in values and low in values
    assert sum(value >= high for value in values) * 4 >= len(values)
    assert sum(value <= low for value in values) * 4 >= len(values)
    assert sum(value > high for value in values) * 4 <= len(values)


@given(st.dictionaries(st.sampled_from([f"{a}_{b}" for a in NODES for b in NODES]), st.floats(0.01, 100)))
def test_slow_pairs_are_below_others_and_never_all(rates: dict[str, float]) -> None:
    found = pairs(**rates)
    dummy, lines = slow({"overlay": {"pairs": found}}, {})
    named = {(line["from"], line["to"]) for line in lines}
    values = {(pair["from"], pair["to"]): pair["gigabits_per_second"] for pair in found}
    assert len(named) < len(found)
    assert all(values[pair] < 0.5 * max(values.values()) for pair in named)


@pytest.mark.parametrize(
    ("in_use", "host", "overlay", "text", "wanted"),
    [
        (
            "overlay",
            9.3,
            3.0,
            f"host network: 3.1 {TIMES} the bus bandwidth here ({FIGURES}); set cluster_network_mode: host.",
            {"cluster_network_mode": "host"},
        ),
        (
            "overlay",
            3.3,
            3.0,
            f"the overlay, in use: 0.91 {TIMES} the bus bandwidth of the host network here "
            "(3.3 against 3 GB/s, all_reduce of 64 MiB); nothing to change.",
            {},
        ),
        (
            "host",
            9.3,
            3.0,
            f"host network, in use: 3.1 {TIMES} the bus bandwidth of the overlay here ({FIGURES}); nothing to change.",
            {},
        ),
    ],
)
def test_recommendations(in_use: str, host: float, overlay: float, text: str, wanted: dict[str, str]) -> None:
    found = recommend({"host": measured(host), "overlay": measured(overlay)}, in_use)
    assert (found["text"], found["set"], found["ratio"]) == (text, wanted, round(host / overlay, 3))


def test_the_cost_of_encryption_is_reported_where_both_were_measured() -> None:
    networks = {"host": measured(9), "overlay": measured(3), "overlay_encrypted": measured(0.6)}
    assert recommend(networks, "overlay")["text"].endswith(
        f"Encryption leaves 0.2 {TIMES} the overlay's bus bandwidth."
    )
    assert recommend(networks, "overlay_encrypted")["ratio"] == 15


def test_only_messages_of_one_size_are_compared() -> None:
    found = recommend({"host": measured(9), "overlay": measured(3, size=16 * MIB)}, "overlay")
    assert "900 against 300 GB/s, all_reduce of 4 KiB" in found["text"]


@pytest.mark.parametrize(
    ("networks", "text"),
    [
        ({}, "No recommendation: the host network and the overlay could not be measured."),
        ({"host": measured(1), "overlay": {"error": "x"}}, "No recommendation: the overlay could not be measured."),
        ({"overlay": measured(1)}, "No recommendation: the host network could not be measured."),
    ],
)
def test_no_recommendation_without_figures(networks: dict[str, Any], text: str) -> None:
    assert recommend(networks, "overlay") == {"text": text, "ratio": None, "set": {}}


def test_nothing_fails_unless_asked() -> None:
    assert failures({"host": measured(9, gpu1=0.001), "overlay": measured(0.001, gpu1=0.001)}, "overlay", NONE) == []


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (
            {"min_gigabits": 1.0},
            [
                f"gpu2 → {other} in overlay: 0.1 Gbit/s, less than overlay_network_bench_min_gigabits (1)."
                for other in ("gpu1", "gpu3")
            ],
        ),
        ({"min_gigabits": 0.1}, []),
        (
            {"min_busbw": 3.5},
            [
                "overlay: 3 GB/s of bus bandwidth (all_reduce of 64 MiB), less than "
                "overlay_network_bench_min_busbw (3.5)."
            ],
        ),
        ({"min_busbw": 3.0}, []),
        (
            {"min_ratio": 0.5},
            [
                f"overlay: 0.32 {TIMES} the bus bandwidth of the host network (all_reduce of 64 MiB), less than "
                "overlay_network_bench_min_ratio (0.5)."
            ],
        ),
        ({"min_ratio": 0.3}, []),
    ],
)
def test_thresholds(requested: dict[str, float], expected: list[str]) -> None:
    networks = {"host": measured(9.3), "overlay": measured(3.0, gpu2=0.1)}
    assert failures(networks, "overlay", {**NONE, **requested}) == expected


def test_a_threshold_that_cannot_be_judged_fails() -> None:
    requested = {"min_ratio": 0.5, "min_gigabits": 1.0, "min_busbw": 3.5}
    assert failures({"overlay": {"error": "gpu1: no sign of gpu2."}}, "overlay", requested) == [
        "overlay, which the cluster trains over, could not be measured: gpu1: no sign of gpu2.",
        "overlay: overlay_network_bench_min_busbw (3.5) is requested, and no all_reduce could be measured.",
        "overlay_network_bench_min_ratio (0.5) is requested, and overlay and host could not be compared.",
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [(12, "12 B"), (4096, "4 KiB"), (4092, "4 KiB"), (67108860, "64 MiB"), (1 << 30, "1 GiB"), (2621440, "2.5 MiB")],
)
def test_sizes_as_people_say_them(size: int, text: str) -> None:
    assert size_text(size) == text
