# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""From what the nodes of a network benchmark printed to the report and its table. All figures here are made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.network_bench.rank import MARK
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bench.plan import plan
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bench.report import by_kind, report, spoken
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bench.table import table
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.bench.verdict import TIMES
from hypothesis import given
from hypothesis import strategies as st

SETTINGS: dict[str, Any] = {
    "seconds": 30,
    "message_mib": 64,
    "gib": 32,
    "port": 29717,
    "min_ratio": 0,
    "min_gigabits": 0,
    "min_busbw": 0,
}
NODES = ["gpu1", "gpu2", "gpu3"]


def answer(
    count: int = 3,
    *,
    rate: float = 10.0,
    seconds: float = 0.1,
    floor: bool = False,
    rates: dict[tuple[int, int], float] | None = None,
    **collectives: Any,
) -> dict[str, Any]:
    """What the first node says where all went well."""
    parts: list[dict[str, Any]] = []
    for me in range(count):
        others = [other for other in range(count) if other != me]
        reported = [{"from": me, "to": other, "latency_ms": 0.1} for other in others]
        reported += [
            {"from": other, "to": me, "gigabits_per_second": (rates or {}).get((other, me), rate)} for other in others
        ]
        beside = [{"from": me, "to": other, "gigabits_per_second": rate + 1} for other in others] if floor else []
        parts.append(
            {"pairs": reported, "floor": beside, "iperf3": "iperf 3.12" if floor else "", "interface": f"eth{me}"}
        )
    measured = [
        {"op": op, "bytes": size, "seconds": seconds, "repetitions": 9}
        for size in (4092, 67108860)
        for op in ("all_reduce", "all_gather", "reduce_scatter")
    ]
    group = {"measured": measured, "unsupported": {}, "stopped": "", "world_size": count, **collectives}
    return {"nodes": parts, "collectives": group, "seconds": 21.26}


def reported(first: dict[str, Any], *others: dict[str, Any]) -> dict[str, str]:
    """The logs of all nodes, with what torch prints around."""
    lines = [f"noise\n{MARK}{json.dumps(one)}\n" for one in (first, *others)]
    return dict(zip(NODES, [*lines, *["noise\n"] * len(NODES)]))


def judged(results: dict[str, Any], *, in_use: str = "overlay", count: int = 3, **settings: Any) -> dict[str, Any]:
    names = NODES if count == 3 else [f"gpu{number + 1}" for number in range(count)]
    return report(
        plan(dict.fromkeys(names, 1), "cpu", SETTINGS),
        results,
        cluster="lab",
        time="2026-11-22T02:47:32Z",
        seconds=93.123,
        in_use=in_use,
        settings={**SETTINGS, **settings},
    )


def good(**changes: Any) -> dict[str, Any]:
    results = {
        "host": {"network": "host", "nodes": reported(answer(floor=True, seconds=0.1))},
        "overlay": {"network": "lab", "nodes": reported(answer(seconds=0.31))},
        "overlay_encrypted": {"network": "lab-bench-overlay_encrypted", "nodes": reported(answer(seconds=0.62))},
    }
    return {**results, **changes}


CHOSEN = {"NCCL_IB_HCA": "=mlx5_0:1"}
NO_LIBRARY = [  # NVIDIA/nccl#1410, the host's name replaced
    "pod:2340:2384 [4] NCCL INFO Failed to open libibverbs.so[.1]",
    "pod:2340:2384 [4] NCCL INFO NET/Socket : Using [0]eth0:10.177.137.15<0>",
    "pod:2340:2384 [4] NCCL INFO Using network Socket",
]


@pytest.mark.parametrize(
    ("kind", "configured", "log", "marked"),
    [
        ("host", CHOSEN, NO_LIBRARY, True),
        ("host", {}, NO_LIBRARY, False),
        ("host", {"NCCL_IB_DISABLE": "1"}, NO_LIBRARY, False),
        ("host", {**CHOSEN, "NCCL_IB_DISABLE": 1}, NO_LIBRARY, False),
        ("host", CHOSEN, ["x NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.1.0.4<0>"], False),
        ("host", CHOSEN, [], False),
        ("host", CHOSEN, "forged", False),
        ("overlay", CHOSEN, NO_LIBRARY, False),
    ],
)
def test_figures_of_sockets_are_marked_where_hcas_were_chosen(
    kind: str, configured: dict[str, Any], log: Any, marked: bool
) -> None:
    first = answer()
    for part in first["nodes"][:2]:
        part["nccl"] = log
    result = {"network": kind, "nodes": reported(first), "rdma": dict.fromkeys(NODES, configured)}
    notes = judged({kind: result})["networks"][kind].get("notes", [])
    assert (len(notes) == 1) is marked
    for note in notes:
        assert note.startswith(
            "gpu1, gpu2: NCCL fell back to sockets (eth0), but nccl_env chose the HCAs mlx5_0:1: these are the figures "
            "of sockets. Most likely: there is no libibverbs. Remedy: the image (without Docker, "
        )
        assert f"{kind}: {note}." in table(judged({kind: result}))


def test_a_whole_report() -> None:
    found = judged(good())
    assert {key: found[key] for key in ("version", "cluster", "time", "seconds", "backend", "nodes", "world_size")} == {
        "version": 1,
        "cluster": "lab",
        "time": "2026-11-22T02:47:32Z",
        "seconds": 93.1,
        "backend": "gloo",
        "nodes": NODES,
        "world_size": 3,
    }
    assert list(found["networks"]) == ["host", "overlay", "overlay_encrypted"]
    host = found["networks"]["host"]
    assert (host["network"], host["seconds"]) == ("host", 21.3)
    assert host["interfaces"] == {"gpu1": "eth0", "gpu2": "eth1", "gpu3": "eth2"}
    assert [(pair["from"], pair["to"]) for pair in host["pairs"]] == [
        (one, other) for one in NODES for other in NODES if one != other
    ]
    assert host["pairs"][0] == {"from": "gpu1", "to": "gpu2", "gigabits_per_second": 10.0, "latency_ms": 0.1}
    assert host["collectives"][3] == {
        "op": "all_reduce",
        "bytes": 67108860,
        "seconds": 0.1,
        "busbw_gigabytes_per_second": round(67108860 / 0.1 * 4 / 3 / 1e9, 6),
    }
    assert host["collectives"][4]["busbw_gigabytes_per_second"] == round(67108860 / 0.1 * 2 / 3 / 1e9, 6)
    assert found["floor"]["tool"] == "iperf 3.12"
    assert found["floor"]["pairs"][0] == {"from": "gpu1", "to": "gpu2", "gigabits_per_second": 11.0}
    assert found["recommendation"]["set"] == {"cluster_network_mode": "host"}
    assert (found["slow_pairs"], found["slow_nodes"], found["asymmetric"], found["failed"]) == ([], [], [], [])
    assert found["thresholds"] == {}
    assert json.loads(json.dumps(found)) == found


def test_an_encrypted_overlay_that_carries_nothing_reports_it_in_a_sentence() -> None:
    logs = {
        "gpu1": f"{MARK}{json.dumps({'error': 'no sign of gpu2, gpu3 at the rendezvous within 30 s'})}",
        "gpu2": f"{MARK}{json.dumps({'error': 'lab-bench-gpu1 does not answer on port 29717 within 30 s: timed out'})}",
        "gpu3": "",
    }
    found = judged(good(overlay_encrypted={"network": "x", "nodes": logs}))
    assert found["networks"]["overlay_encrypted"] == {
        "error": "gpu1: no sign of gpu2, gpu3 at the rendezvous within 30 s. It needs ESP in the kernel of every "
        "host (module esp4) and IP protocol 50 between them; where a kernel lacks it, an encrypted overlay carries no "
        "traffic."
    }
    assert found["failed"] == [], "it is not what the cluster trains over"
    assert judged(good(overlay_encrypted={"network": "x", "nodes": logs}), in_use="overlay_encrypted")["failed"] == [
        "overlay_encrypted, which the cluster trains over, could not be measured: "
        + found["networks"]["overlay_encrypted"]["error"]
    ]


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ({}, "no container printed anything."),
        ({"gpu1": "", "gpu2": "python3: not found\n"}, "gpu2: python3: not found."),
        ({"gpu1": f"{MARK}{{broken", "gpu2": ""}, "gpu1: SWARMSPEED-BENCH {broken."),
        ({"gpu1": f"{MARK}[]"}, "gpu1: SWARMSPEED-BENCH []."),
        ({"gpu1": "", "gpu2": f'{MARK}{{"error": "No module named torch"}}'}, "gpu2: No module named torch."),
    ],
)
def test_whatever_is_printed_makes_a_sentence(logs: dict[str, str], expected: str) -> None:
    found = judged(good(overlay={"network": "lab", "nodes": logs}))
    assert found["networks"]["overlay"]["error"].startswith(expected)
    assert found["networks"]["overlay"]["error"].endswith("ansible-playbook verify.yml says which pair of nodes it is.")


def test_a_container_that_did_not_start_is_the_reason() -> None:
    kept = {
        "gpu1": {"overlay": {"network": "lab", "log": "", "error": ""}},
        "gpu2": {"overlay": {"network": "lab", "log": "", "error": "Error starting container: no such network"}},
    }
    results = by_kind(kept)
    assert results == {
        "overlay": {
            "network": "lab",
            "nodes": {"gpu1": "", "gpu2": ""},
            "error": "gpu2: Error starting container: no such network",
        }
    }
    assert judged(good(**results))["networks"]["overlay"] == {
        "error": "gpu2: Error starting container: no such network."
    }


def test_an_encrypted_overlay_that_takes_no_container_says_what_it_needs() -> None:
    refused = {"network": "x", "nodes": {}, "error": "gpu1: Error starting container: network x not found"}
    found = judged(good(overlay_encrypted=refused))["networks"]["overlay_encrypted"]
    assert found["error"].startswith("gpu1: Error starting container: network x not found. It needs ESP in the kernel")


def test_pairs_count_where_collectives_broke() -> None:
    broken = answer(measured=[], error="all_reduce of 4096 bytes: Connection closed by peer")
    found = judged(good(overlay={"network": "lab", "nodes": reported(broken)}))
    overlay = found["networks"]["overlay"]
    assert len(overlay["pairs"]) == 6 and overlay["collectives"] == []
    assert overlay["error"].startswith("collectives: all_reduce of 4096 bytes: Connection closed by peer. ")
    assert found["recommendation"]["text"] == "No recommendation: the overlay could not be measured."


def test_what_was_left_out_is_reported() -> None:
    found = judged(
        good(
            overlay={
                "network": "lab",
                "nodes": reported(
                    answer(
                        stopped="no messages from 16384 bytes on: all_reduce takes too long for the time there is",
                        unsupported={"reduce_scatter": "Backend gloo does not support reduce_scatter"},
                    )
                ),
            }
        )
    )
    assert found["networks"]["overlay"]["notes"] == [
        "reduce_scatter: Backend gloo does not support reduce_scatter",
        "no messages from 16384 bytes on: all_reduce takes too long for the time there is",
    ]


def test_a_pair_without_a_throughput_has_the_words_of_who_called() -> None:
    broken = answer()
    one, other = broken["nodes"][0]["pairs"], broken["nodes"][1]["pairs"]
    one[:] = [entry for entry in one if (entry["from"], entry["to"]) != (0, 1)]
    one.append({"from": 0, "to": 1, "error": "no connection to 10.0.0.2 port 4711: Connection refused"})
    other[:] = [entry for entry in other if (entry["from"], entry["to"]) != (0, 1)]
    other.append({"from": 0, "to": 1, "error": "no one called on 10.0.0.2"})
    found = judged(good(overlay={"network": "lab", "nodes": reported(broken)}))
    assert found["networks"]["overlay"]["pairs"][0] == {
        "from": "gpu1",
        "to": "gpu2",
        "gigabits_per_second": None,
        "latency_ms": None,
        "error": "no connection to 10.0.0.2 port 4711: Connection refused",
    }
    assert found["failed"] == ["gpu1 → gpu2 in overlay: no connection to 10.0.0.2 port 4711: Connection refused."]
    assert [line["text"] for line in found["slow_pairs"]] == [
        "gpu1 → gpu2 in overlay: no throughput: no connection to 10.0.0.2 port 4711: Connection refused."
    ]


def test_an_image_without_iperf3_is_one_sentence() -> None:
    first = answer()
    for me, part in enumerate(first["nodes"]):
        others = [other for other in range(3) if other != me]
        part["floor"] = [{"from": me, "to": other, "error": "the image has no iperf3"} for other in others]
    found = judged(good(host={"network": "host", "nodes": reported(first)}))
    assert found["floor"]["error"] == "the image has no iperf3." and len(found["floor"]["pairs"]) == 6
    assert (found["slow_pairs"], found["failed"]) == ([], [])
    assert [line for line in table(found) if "has no iperf3" in line] == ["iperf3: the image has no iperf3."]


def test_small_figures_are_no_powers_of_ten() -> None:
    lines = table(judged(good(overlay={"network": "lab", "nodes": reported(answer(seconds=4.0, rate=0.0021))})))
    assert not [line for line in lines if "e-0" in line]
    assert "overlay                   0.0021    0.0021    0.0021       0.1       0.1" in lines


@given(st.text())
def test_no_log_breaks_the_report(log: str) -> None:
    spoken(log)
    results = good(overlay={"network": "lab", "nodes": {"gpu1": log}})
    assert table(judged(results))


def test_the_table() -> None:
    lines = table(judged(good()))
    assert lines[0] == "3 nodes, 3 ranks, gloo, 93.1 s. The cluster trains over: overlay."
    assert max(map(len, lines[:-1])) <= 120
    text = "\n".join(lines)
    assert text.splitlines()[2:8] == [
        "                                    Gbit/s                  ms",
        "PAIRS                    slowest    median   fastest    median   longest",
        "iperf3, host                  11        11        11         -         -",
        "host                          10        10        10       0.1       0.1",
        "overlay                       10        10        10       0.1       0.1",
        "overlay_encrypted             10        10        10       0.1       0.1",
    ]
    assert "ALL_REDUCE, GB/s          4 KiB   64 MiB\nhost" in text
    assert lines[-1].startswith(f"host network: 3.1 {TIMES} the bus bandwidth here")


@pytest.mark.parametrize("mib", [1, 64, 1024])
def test_no_table_is_wider_than_a_terminal(mib: int) -> None:
    sizes = plan({"a": 1, "b": 1}, "cpu", {**SETTINGS, "message_mib": mib})["sizes"]
    measured = [{"op": "all_reduce", "bytes": size, "seconds": 1e-6, "repetitions": 1} for size in sizes]
    logs = reported(answer(measured=measured))
    found = judged({kind: {"network": kind, "nodes": logs} for kind in ("host", "overlay", "overlay_encrypted")})
    lines = table(found)[:-1]
    assert any(line.startswith("ALL_REDUCE") and "4 KiB" in line for line in lines)
    assert max(map(len, lines)) <= 120


def test_sixty_four_nodes_make_no_wall_of_text() -> None:
    count = 64
    rates = {(one, other): 0.9 for one in range(count) for other in range(count) if one < 3}
    named = {f"gpu{number + 1}": "" for number in range(count)}
    result = {"network": "lab", "nodes": {**named, "gpu1": MARK + json.dumps(answer(count, rates=rates))}}
    found = judged({"overlay": result}, count=count)
    assert len(found["slow_pairs"]) == 3 * 63
    lines = table(found)
    assert [line for line in lines if line.startswith("gpu1 sends at most 0.9 Gbit/s in overlay")]
    assert len(lines) < 60
