# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The overlay beside the hosts' network: bench_network.yml on the lab, a few times over."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.bench.registry import REGISTRY, Row
from tests.playbook_run import playbook, variables

KINDS = ("host", "overlay")
MOST_ROUNDS = 3
"""Each takes a minute, and is itself the median of many."""


def measured() -> dict[str, Any]:
    """Run the benchmark once, and return its report."""
    with tempfile.TemporaryDirectory() as folder:
        requested = {
            "cluster_reports_dir": folder,
            "overlay_network_bench_seconds": 15,
            "overlay_network_bench_networks": list(KINDS),
        }
        playbook("bench_network", *variables(**requested)).done()
        found: dict[str, Any] = json.loads(Path(folder, "bench_network.json").read_text(encoding="utf-8"))
        return found


def figures(report: Mapping[str, Any]) -> dict[str, float]:
    """Return what is compared, by the name of its row: bus bandwidth of the largest all_reduce, and pairs' medians."""
    found = {"pair, iperf3 between hosts": _median(report["floor"]["pairs"])}
    for kind in KINDS:
        network = report["networks"][kind]
        found[f"pair, {kind}"] = _median(network["pairs"])
        largest = max(
            (case for case in network["collectives"] if case["op"] == "all_reduce"), key=lambda one: one["bytes"]
        )
        found[f"all_reduce, {kind}"] = largest["busbw_gigabytes_per_second"]
    return found


def _median(pairs: list[dict[str, Any]]) -> float:
    return statistics.median(float(pair["gigabits_per_second"]) for pair in pairs)


def rows(reports: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return what is compared in these reports, one a round."""
    taken = [figures(report) for report in reports]
    floors = {
        "pair, host": "pair, iperf3 between hosts",
        "pair, overlay": "pair, host",
        "all_reduce, overlay": "all_reduce, host",
    }
    return [
        Row(
            name,
            [figure[name] for figure in taken],
            floor=floors.get(name, ""),
            unit="Gbit/s" if name.startswith("pair") else "GB/s",
            note="median of all pairs" if name.startswith("pair") else "bus bandwidth, largest message",
        )
        for name in taken[0]
    ]


@REGISTRY.add("network")
def networks(rounds: int) -> list[Row]:
    """Pairs and all_reduce, in three rounds at most."""
    return rows(measured() for dummy in range(max(1, min(rounds, MOST_ROUNDS))))
