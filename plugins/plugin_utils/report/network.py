# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The network of a report: heat maps of pairs, curves of collectives, and what the benchmark advises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from .curves import Series, line_chart
from .heat import LEGEND, heat_map
from .inputs import NETWORKS, OPERATIONS, Inputs, Link
from .text import age, counted, short

NETWORK_NAMES = {"host": "host network", "overlay": "overlay", "overlay_encrypted": "encrypted overlay"}
OPERATION_NAMES = {"all_reduce": "All-reduce", "all_gather": "All-gather", "reduce_scatter": "Reduce-scatter"}


def network_view(inputs: Inputs) -> dict[str, Any]:
    """Everything that the page says of the network, by bench_network.json and, for pairs, verify.json."""
    bench, verify = inputs.bench, inputs.verify
    failed = {(check.source, check.target) for check in verify.checks if not check.ok}
    nodes = [name for name in inputs.hosts if name in {*bench.nodes, *verify.nodes}] or list(inputs.hosts)
    maps = []
    for name in NETWORKS:
        links = bench.networks[name].links if name in bench.networks else ()
        broken = {(link.source, link.target) for link in links if link.error}
        for what, unit, high in (("latency", "ms", False), ("bandwidth", "Gbit/s", True)):
            values = _values(links, high)
            if values:
                title = f"{what.capitalize()}, {NETWORK_NAMES[name]}"
                maps.append(heat_map(title, unit, nodes, values, high_is_good=high, failed=broken))
    if not any(item["unit"] == "ms" for item in maps):
        maps = [*_from_verify(inputs, nodes, failed), *maps]
    if failed and not any(item["failed"] for item in maps):
        maps.append(heat_map("Pairs that fail", "", nodes, {}, high_is_good=False, failed=failed))
    floor = [link.gigabits for link in bench.floor.links if link.gigabits]
    level = median(floor) / 8 if floor else None
    return {
        "problem": bench.problem,
        "age": age(bench.time, inputs.now),
        "backend": bench.backend,
        "maps": maps,
        "few": len(nodes) <= 3,
        "steps": [{"step": step, "text": reported} for step, reported in enumerate(LEGEND)],
        "charts": _charts(inputs, level),
        "legend": [
            {"style": name, "text": NETWORK_NAMES[name]}
            for name in NETWORKS
            if name in bench.networks and bench.networks[name].curves
        ],
        "floor": _floor(inputs, floor),
        "errors": [
            {"name": NETWORK_NAMES[name], "text": found.error} for name, found in bench.networks.items() if found.error
        ],
        "notes": [note for found in (*bench.networks.values(), bench.floor) for note in (*found.notes,)],
        "advice": bench.advice,
        "setting": [f"{name}: {value}" for name, value in bench.setting.items()],
        "slow": [*(text for dummy, text in bench.slow_nodes), *bench.slow[:12]],
        "asymmetric": list(bench.asymmetric[:12]),
        "more": max(0, len(bench.slow) - 12) + max(0, len(bench.asymmetric) - 12),
    }


def _floor(inputs: Inputs, rates: Sequence[float]) -> str:
    if not rates:
        return f"iperf3 between hosts: {inputs.bench.floor.error}" if inputs.bench.floor.error else ""
    tool = inputs.bench.floor_tool or "iperf3"
    return f"{tool} between hosts: {short(median(rates))} Gbit/s in the median of {counted(len(rates), 'pair')}."


def _values(links: Iterable[Link], rate: bool) -> dict[tuple[str, str], float]:
    found = {(link.source, link.target): link.gigabits if rate else link.latency for link in links}
    return {pair: value for pair, value in found.items() if value is not None}


def _from_verify(inputs: Inputs, nodes: Sequence[str], failed: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """Where nothing was benchmarked, how long verify.yml took to connect says something of latency too."""
    values: dict[tuple[str, str], float] = {}
    network = "container" if any(check.network == "container" for check in inputs.verify.checks) else "host"
    for check in inputs.verify.checks:
        if check.check == "tcp" and check.unit == "ms" and check.value and check.network == network:
            values.setdefault((check.source, check.target), check.value)
    if not values:
        return []
    return [heat_map("Time to connect, as verify.yml saw it", "ms", nodes, values, high_is_good=False, failed=failed)]


def _charts(inputs: Inputs, level: float | None) -> list[dict[str, Any]]:
    """Bus bandwidth over message size, one chart a collective, one line a network."""
    charts = []
    for operation in OPERATIONS:
        lines = [
            Series(NETWORK_NAMES[name], name, inputs.bench.networks[name].curves[operation])
            for name in NETWORKS
            if name in inputs.bench.networks and operation in inputs.bench.networks[name].curves
        ]
        chart = line_chart(
            OPERATION_NAMES[operation],
            lines,
            x_title="message size",
            y_title="GB/s",
            sizes=True,
            level=("iperf3 between hosts", level) if level else None,
        )
        if chart:
            charts.append(chart)
    return charts
