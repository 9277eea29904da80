# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a report is made from. The files of verify.yml and bench_network.yml are read with care: they may be of another
version, cut short or edited, and a report shows what it can rather than fail."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.values import mapping, number
from .text import moment, sentence, sequence

VERSION = 1
"""Of the format of both files."""
NETWORKS = ("host", "overlay", "overlay_encrypted")
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")


@dataclass(frozen=True)
class Check:
    """One thing that verify.yml tried from one node to another."""

    source: str
    target: str
    network: str
    check: str
    ok: bool
    value: float | None
    unit: str
    reported: str
    reason: str
    remedy: str


@dataclass(frozen=True)
class Verify:
    """verify.json. ``problem`` says why there is nothing; ``time`` in seconds since the epoch, ``seconds`` it took."""

    problem: str = ""
    missing: bool = False
    time: float | None = None
    seconds: float | None = None
    nodes: tuple[str, ...] = ()
    roles: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    collective: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Link:
    """What was measured from one node to another: Gbit/s and milliseconds, None where it was not; or why not."""

    source: str
    target: str
    gigabits: float | None
    latency: float | None
    error: str = ""


@dataclass(frozen=True)
class Measured:
    """One network: its links, and of each collective the points (bytes, GB/s of bus bandwidth); or why not."""

    error: str = ""
    notes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    curves: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """bench_network.json."""

    problem: str = ""
    missing: bool = False
    time: float | None = None
    seconds: float | None = None
    backend: str = ""
    nodes: tuple[str, ...] = ()
    world_size: int | None = None
    networks: Mapping[str, Measured] = field(default_factory=dict)
    floor: Measured = field(default_factory=Measured)
    floor_tool: str = ""
    advice: str = ""
    setting: Mapping[str, str] = field(default_factory=dict)
    slow_nodes: tuple[tuple[str, str], ...] = ()
    slow: tuple[str, ...] = ()
    slow_pairs: tuple[tuple[str, str], ...] = ()
    asymmetric: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inputs:
    """Everything. ``hosts`` in rank order; ``facts`` of those that answered, ``silent`` why the others did not."""

    cluster: str
    now: float
    hosts: tuple[str, ...]
    managers: tuple[str, ...]
    facts: Mapping[str, Mapping[str, Any]]
    silent: Mapping[str, str]
    jobs: Mapping[str, Mapping[str, Any]]
    verify: Verify
    bench: Bench
    network_mode: str = "overlay"
    network_name: str = ""
    runtime: str = "container"
    accelerator: str = "auto"
    slots: Mapping[str, Any] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    own_addresses: Mapping[str, str] = field(default_factory=dict)
    underlay_subnet: str = ""
    max_clock_offset: float = 30.0


def _decoded(text: str | None, file: str) -> tuple[dict[str, Any], str]:
    """The content of a file, or a sentence on what is wrong with it."""
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}, f"{file} is not JSON, perhaps cut short. Write it again."
    if not isinstance(found, dict) or found.get("version") != VERSION:
        version = found.get("version") if isinstance(found, dict) else None
        return {}, f"{file} is of format {version!r}, and this report reads format {VERSION}. Write it again."
    return found, ""


def _strings(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in sequence(value))


def parse_verify(text: str | None, file: str = "verify.json") -> Verify:
    """Read verify.json; ``text`` is None where there is no such file."""
    if text is None:
        return Verify(missing=True, problem=f"There is no {file} yet.")
    found, problem = _decoded(text, file)
    if problem:
        return Verify(problem=problem)
    checks = [_check(mapping(entry)) for entry in sequence(found.get("pairs"))]
    return Verify(
        time=moment(found.get("time")),
        seconds=number(found.get("seconds")),
        nodes=_strings(found.get("nodes")),
        roles={
            str(role): (mapping(reported).get("ok") is True, sentence(mapping(reported).get("sentence")))
            for role, reported in mapping(found.get("roles")).items()
        },
        checks=tuple(check for check in checks if check),
        collective=mapping(found.get("collective")),
        versions={
            str(node): {str(what): str(value) for what, value in mapping(those).items() if value is not None}
            for node, those in mapping(found.get("versions")).items()
        },
    )


def _check(entry: Mapping[str, Any]) -> Check | None:
    if not entry.get("from") or not entry.get("to"):
        return None
    return Check(
        source=str(entry["from"]),
        target=str(entry["to"]),
        network=str(entry.get("network") or ""),
        check=str(entry.get("check") or ""),
        ok=entry.get("ok") is True,
        value=number(entry.get("value")),
        unit=str(entry.get("unit") or ""),
        reported=sentence(entry.get("said")),
        reason=sentence(entry.get("reason")),
        remedy=str(entry.get("remedy") or ""),
    )


def parse_bench(text: str | None, file: str = "bench_network.json") -> Bench:
    """Read bench_network.json; ``text`` is None where there is no such file."""
    if text is None:
        return Bench(missing=True, problem=f"There is no {file} yet.")
    found, problem = _decoded(text, file)
    if problem:
        return Bench(problem=problem)
    networks, advice = mapping(found.get("networks")), mapping(found.get("recommendation"))
    floor, size = mapping(found.get("floor")), number(found.get("world_size"))
    return Bench(
        time=moment(found.get("time")),
        seconds=number(found.get("seconds")),
        backend=str(found.get("backend") or ""),
        nodes=_strings(found.get("nodes")),
        world_size=None if size is None else int(size),
        networks={name: _measured(mapping(networks[name])) for name in NETWORKS if name in networks},
        floor=_measured(floor),
        floor_tool=str(floor.get("tool") or ""),
        advice=sentence(advice.get("text")),
        setting={str(name): str(value) for name, value in mapping(advice.get("set")).items()},
        slow_nodes=tuple(
            (str(entry["node"]), sentence(entry.get("text")))
            for entry in map(mapping, sequence(found.get("slow_nodes")))
            if entry.get("node")
        ),
        slow=_sentences(found.get("slow_pairs")),
        slow_pairs=tuple(
            (str(mapping(pair).get("from")), str(mapping(pair).get("to")))
            for pair in sequence(found.get("slow_pairs"))
            if _sentences([pair])
        ),
        asymmetric=_sentences(found.get("asymmetric")),
        failed=tuple(sentence(item) for item in sequence(found.get("failed"))),
    )


def _sentences(entries: Any) -> tuple[str, ...]:
    """The texts of a list of ``{from, to, network, text}``, or of plain texts."""
    reported = [
        mapping(entry).get("text") or "" if isinstance(entry, Mapping) else entry for entry in sequence(entries)
    ]
    return tuple(sentence(text) for text in reported if text)


def _measured(found: Mapping[str, Any]) -> Measured:
    links, curves = [], {}
    for entry in map(mapping, sequence(found.get("pairs"))):
        if entry.get("from") and entry.get("to"):
            rate, delay = number(entry.get("gigabits_per_second")), number(entry.get("latency_ms"))
            links.append(Link(str(entry["from"]), str(entry["to"]), rate, delay, str(entry.get("error") or "")))
    for operation in OPERATIONS:
        points = []
        for entry in map(mapping, sequence(found.get("collectives"))):
            count, rate = number(entry.get("bytes")), number(entry.get("busbw_gigabytes_per_second"))
            if entry.get("op") == operation and count and count > 0 and rate is not None and rate > 0:
                points.append((count, rate))
        if points:
            curves[operation] = tuple(sorted(points))
    notes = tuple(sentence(note) for note in sequence(found.get("notes")))
    return Measured(error=sentence(found.get("error")), notes=notes, links=tuple(links), curves=curves)
