# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What is measured, and how it is reported: one function per measurement, which returns rows."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.whole_file import write_whole


@dataclass(frozen=True)
class Row:
    """One thing that was measured several times, and what it is compared with."""

    name: str
    values: list[float]
    floor: str = ""
    """Name of another row of the same measurement, taken in turn with this one: what there is to be compared with."""
    unit: str = "s"
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)


Measurement = Callable[[int], list[Row]]


@dataclass
class Registry:
    """Measurements by name, in the order in which they are made."""

    known: dict[str, Measurement] = field(default_factory=dict)
    on_request: set[str] = field(default_factory=set)
    """Those that are not made without being asked for."""

    def add(self, name: str, on_request: bool = False) -> Callable[[Measurement], Measurement]:
        """Register a function: it gets the number of rounds, and leaves a cluster that is up."""
        if on_request:
            self.on_request.add(name)

        def keep(function: Measurement) -> Measurement:
            self.known[name] = function
            return function

        return keep

    def chosen(self, names: list[str]) -> dict[str, Measurement]:
        """Return those asked for; where none was, all that need not be. Raises ``ValueError`` for an unknown name."""
        unknown = [name for name in names if name not in self.known]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: no such measurement. There are: {', '.join(self.known)}.")
        requested = set(names) or set(self.known) - self.on_request
        return {name: function for name, function in self.known.items() if name in requested}


REGISTRY = Registry()


def table(name: str, rows: list[Row]) -> list[str]:
    """Return lines: smallest, median and largest of each row, and beside its floor the difference and the ratio."""
    width = max(len(row.name) for row in rows)
    medians = {row.name: row.median for row in rows}
    lines = [f"{name:<{width}}  {'min':>8} {'median':>8} {'max':>8}"]
    for row in rows:
        line = f"{row.name:<{width}}  {min(row.values):8.2f} {row.median:8.2f} {max(row.values):8.2f} {row.unit}"
        if row.floor:
            floor = medians[row.floor]
            ratio = f", {row.median / floor:.1f} times" if floor else ""
            line += f"   {row.median - floor:+.2f} {row.unit}{ratio} {row.floor}"
        lines.append(line + (f"   ({row.note})" if row.note else ""))
    return lines


def machine() -> str:
    """What the figures were taken on, in words."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    kernel = platform.release().partition("-")[0]
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, Linux {kernel}, Python {platform.python_version()}"


def keep(path: Path, rounds: int, nodes: int, found: dict[str, list[Row]]) -> None:
    """Write all rows, with every value, as JSON. Measurements that were not made now, or with other nodes, stay."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    for name, rows in found.items():
        known[f"{name}, {nodes} nodes"] = {
            "rounds": rounds,
            "machine": machine(),
            "rows": [{**asdict(row), "median": row.median} for row in rows],
        }
    write_whole(path, json.dumps(known, indent=2) + "\n")
