# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The report of a network benchmark as lines for a person, none of a table wider than 120 columns."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ...module_utils.network_bench.collectives import OPS
from .verdict import MANY, size_text

FIRST = 22
"""Width of the column of networks."""


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 0.01:
        return f"{value:.4f}"  # and not 7.6e-05
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _row(name: str, cells: Sequence[str], width: int) -> str:
    return (name.ljust(FIRST) + "".join(cell.rjust(width) for cell in cells)).rstrip()


def _spread(pairs: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return sorted(float(pair[key]) for pair in pairs if pair.get(key) is not None)


def _pairs(report: Mapping[str, Any]) -> list[str]:
    lines = [
        _row("", ["", "Gbit/s", "", "ms", ""], 10),
        _row("PAIRS", ["slowest", "median", "fastest", "median", "longest"], 10),
    ]
    for name, found in [("iperf3, host", report["floor"]), *report["networks"].items()]:
        rates, trips = (
            _spread(found.get("pairs") or [], "gigabits_per_second"),
            _spread(found.get("pairs") or [], "latency_ms"),
        )
        speed = [rates[0], statistics.median(rates), rates[-1]] if rates else [None, None, None]
        late = [statistics.median(trips), trips[-1]] if trips else [None, None]
        if rates or trips:
            lines.append(_row(name, [_number(value) for value in [*speed, *late]], 10))
        else:
            lines.append(_row(name, ["-"] * 5, 10))
    return lines


def _bandwidths(report: Mapping[str, Any]) -> list[str]:
    lines = []
    for op in OPS:
        by_kind = {
            kind: {
                case["bytes"]: case["busbw_gigabytes_per_second"]
                for case in found.get("collectives") or []
                if case["op"] == op
            }
            for kind, found in report["networks"].items()
        }
        sizes = sorted({size for found in by_kind.values() for size in found})
        if sizes:
            lines += ["", _row(f"{op.upper()}, GB/s", [size_text(size) for size in sizes], 9)]
            lines += [
                _row(kind, [_number(found.get(size)) for size in sizes], 9) for kind, found in by_kind.items() if found
            ]
    return lines


def _some(sentences: Sequence[str]) -> list[str]:
    kept = list(sentences[:MANY])
    return kept + ([f"… and {len(sentences) - MANY} more."] if len(sentences) > MANY else [])


def table(report: Mapping[str, Any]) -> list[str]:
    """Return the tables, what could not be measured, what is slow, and the recommendation."""
    lines = [
        f"{len(report['nodes'])} nodes, {report['world_size']} ranks, {report['backend']}, {report['seconds']:g} s. "
        f"The cluster trains over: {report['in_use']}.",
        "",
        *_pairs(report),
        *_bandwidths(report),
    ]
    reported = [f"{kind}: {found['error']}" for kind, found in report["networks"].items() if found.get("error")]
    reported += [f"iperf3: {report['floor']['error']}"] if report["floor"].get("error") else []
    reported += [f"{kind}: {note}." for kind, found in report["networks"].items() for note in found.get("notes") or []]
    blamed = {(line["node"], line["network"]) for line in report["slow_nodes"]}
    reported += [line["text"] for line in report["slow_nodes"]]
    # What a node's own link explains is in the JSON.
    reported += _some(
        [
            line["text"]
            for line in report["slow_pairs"]
            if not {(line["from"], line["network"]), (line["to"], line["network"])} & blamed
        ]
    )
    reported += _some([f"Asymmetric: {line['text']}" for line in report["asymmetric"]])
    return [*lines, "", *reported, report["recommendation"]["text"]]
