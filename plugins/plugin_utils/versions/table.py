# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The table of versions that go together, read from ``table.yml`` and checked. docs/versions.md shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from .lifetimes import STATES, EndedEngine, Hole, System

FILE = Path(__file__).with_name("table.yml")
EXTRAS = "nvcc,cccl,crt,nvvm,cudart,curand,cublas,cusparse,cusolver"
"""The parts of cuda-toolkit that compile DeepSpeed's operators (measured with 0.19.8, CUDA 13.0)."""

_MONTH = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])")
_DAY = re.compile(rf"{_MONTH.pattern}-(0[1-9]|[12][0-9]|3[01])")


class TableError(Exception):
    """The table contradicts itself; the text names the row and what is wrong with it."""


@dataclass(frozen=True)
class Stack:
    """A row that is chosen whole. ``index`` is empty for the index that pip is configured with."""

    name: str
    cuda: str
    torch: str
    index: str
    source: str


@dataclass(frozen=True)
class Cuda:
    """A release of CUDA. ``driver`` is the first branch that runs it; ``kernels`` maps capability to PyTorch's last.

    ``aarch64`` are the capabilities that wheels for that processor have code for.
    """

    release: str
    driver: int
    kernels: Mapping[str, str]
    aarch64: tuple[str, ...]
    compiles: tuple[str, ...]
    toolkit: str
    base: str
    source: str


@dataclass(frozen=True)
class Torch:
    """What a release of PyTorch from the ordinary index brings; ``python`` is the first and the last that it is for.

    ``aarch64`` is ``cuda`` or ``cpu``: what the wheel for that processor computes on.
    """

    release: str
    cuda: str
    toolkit: str
    nccl: str
    python: tuple[str, ...]
    aarch64: str
    source: str


@dataclass(frozen=True)
class Index:
    """One of PyTorch's own indices; ``last`` is empty where it has the newest release too."""

    name: str
    cuda: str
    first: str
    last: str
    source: str


@dataclass(frozen=True)
class Base:
    """The Python of an image, and the first CUDA whose compiler works with its C library (empty: any)."""

    image: str
    python: str
    source: str
    cuda: str = ""


@dataclass(frozen=True)
class Driver:
    """The branch that a source has for a release of a distribution; ``end`` is the month of its end of life."""

    distribution: str
    release: str
    source: str
    branch: int
    end: str
    read: str
    key: str = ""
    fingerprint: str = ""
    tried: bool = True


@dataclass(frozen=True)
class Build:
    """The oldest driver of a branch that builds on a release of Linux and later ones, empty where none does."""

    linux: str
    branch: int
    driver: str
    source: str


@dataclass(frozen=True)
class Pair:
    """DeepSpeed before a release does not compile with PyTorch and CUDA (empty: any) from these on."""

    before: str
    torch: str
    cuda: str
    why: str
    source: str


@dataclass(frozen=True)
class Bad:
    """Releases that are known to be bad."""

    versions: str
    why: str
    source: str


@dataclass(frozen=True)
class Part:
    """Another part, with what the roles install unasked, and the releases that are known to be bad."""

    name: str
    default: str
    note: str
    source: str
    bad: tuple[Bad, ...]


@dataclass(frozen=True)
class Table:
    """All of it. ``read`` is the day on which it was; ``sources`` maps short names to addresses."""

    read: str
    sources: Mapping[str, str]
    stacks: tuple[Stack, ...]
    cuda: tuple[Cuda, ...]
    torch: tuple[Torch, ...]
    indices: tuple[Index, ...]
    bases: tuple[Base, ...]
    systems: tuple[System, ...]
    engines: tuple[EndedEngine, ...]
    drivers: tuple[Driver, ...]
    builds: tuple[Build, ...]
    deepspeed: str
    deepspeed_pairs: tuple[Pair, ...]
    parts: tuple[Part, ...]
    holes: tuple[Hole, ...]

    def has_ended(self, driver: Driver) -> bool:
        """Return whether a branch was past its end of life when the table was read: a month counts to its last day."""
        return driver.end < self.read[:7]

    def source_of(self, name: str) -> str:
        """Return the address behind a short name, or what is an address itself."""
        return self.sources.get(name, name)

    def cuda_row(self, release: str) -> Cuda | None:
        """Return the row of a release of CUDA."""
        return next((row for row in self.cuda if row.release == release), None)

    def torch_row(self, release: str) -> Torch | None:
        """Return the row of a release of PyTorch."""
        return next((row for row in self.torch if row.release == release), None)

    def stack(self, name: str) -> Stack:
        """Return a stack by its name."""
        return next(row for row in self.stacks if row.name == name)

    def gpu_stacks(self) -> tuple[Stack, ...]:
        """Return the stacks for GPUs, in the order in which they are tried."""
        return tuple(row for row in self.stacks if row.cuda)

    def drivers_of(self, distribution: str, release: str) -> tuple[Driver, ...]:
        """Return the drivers that are available for a release."""
        return tuple(row for row in self.drivers if (row.distribution, row.release) == (distribution, release))


Row = TypeVar("Row")


def _rows(kind: type[Row], name: str, given: Any) -> tuple[Row, ...]:
    if not isinstance(given, list):
        raise TableError(f"{name}: is not a list of rows.")
    return tuple(_row(kind, f"{name}[{number}]", entry) for number, entry in enumerate(given))


def _row(kind: type[Row], where: str, given: Any) -> Row:
    if not isinstance(given, Mapping):
        raise TableError(f"{where}: is not a mapping.")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]  # every Row is a dataclass
    needed = [name for name, field in known.items() if field.default is MISSING]
    for name in [*(name for name in given if name not in known), *(name for name in needed if name not in given)]:
        raise TableError(f"{where}: '{name}' is {'missing' if name in known else 'not known'}.")
    values = {name: _value(known[name].type, f"{where}.{name}", value) for name, value in given.items()}
    return kind(**values)


def _value(kind: Any, where: str, value: Any) -> Any:
    """Check a value by the annotation of its field. YAML reads 12.0 as a number: such a version must be quoted."""
    if kind == "tuple[Bad, ...]":
        return _rows(Bad, where, value)
    if kind == "tuple[str, ...]" and isinstance(value, list):
        return tuple(_value("str", f"{where}[{number}]", part) for number, part in enumerate(value))
    if kind == "Mapping[str, str]" and isinstance(value, Mapping):
        return {_value("str", where, name): _value("str", f"{where}.{name}", part) for name, part in value.items()}
    if kind in ("str", "int", "bool") and type(value).__name__ == kind:
        return value
    raise TableError(f"{where}: {value!r} is not of the type {kind}.")


def parse_table(document: Any) -> Table:
    """Read the document. Raises ``TableError`` where it is not of its form, or contradicts itself."""
    given = dict(document) if isinstance(document, Mapping) else {}
    kinds = {"stacks": Stack, "cuda": Cuda, "torch": Torch, "indices": Index, "bases": Base, "drivers": Driver}
    kinds |= {"builds": Build, "deepspeed_pairs": Pair, "parts": Part}
    kinds |= {"systems": System, "engines": EndedEngine, "holes": Hole}
    missing = [field.name for field in fields(Table) if field.name not in given]
    unknown = [str(name) for name in given if name not in {field.name for field in fields(Table)}]
    if missing or unknown:
        raise TableError(f"'{(missing + unknown)[0]}' is {'missing' if missing else 'not known'}.")
    rows: dict[str, Any] = {name: _rows(kind, name, given[name]) for name, kind in [*kinds.items(), ("builds", Build)]}
    table = Table(
        read=_value("str", "read", given["read"]),
        deepspeed=_value("str", "deepspeed", given["deepspeed"]),
        sources=_value("Mapping[str, str]", "sources", given["sources"]),
        **rows,
    )
    for problem in _contradictions(table):
        raise TableError(problem)
    return table


def _contradictions(table: Table) -> Iterable[str]:
    releases = {row.release for row in table.cuda} | {""}
    for stack in table.stacks:
        row = table.torch_row(stack.torch)
        if stack.cuda not in releases:
            yield f"stacks: {stack.name} has CUDA {stack.cuda}, which has no row."
        elif row is None:
            yield f"stacks: {stack.name} has PyTorch {stack.torch}, which has no row."
        elif stack.cuda and not stack.index and row.cuda != stack.cuda:
            yield f"stacks: {stack.name} has CUDA {stack.cuda}, and PyTorch {row.release} brings {row.cuda}."
    for torch in table.torch:
        if torch.cuda not in releases:
            yield f"torch: {torch.release} brings CUDA {torch.cuda}, which has no row."
        if len(torch.python) != 2:
            yield f"torch: {torch.release} needs the first and the last Python."
    for driver in table.drivers:
        if not _MONTH.fullmatch(driver.end):
            yield f"drivers: {driver.end!r} is not a month."
        if bool(driver.key) != (driver.source == "cuda_repository"):
            yield f"drivers: {driver.distribution} {driver.release} of {driver.source} has a key, or lacks one."
    yield from _unfit(table)
    for source in cited(table):
        if source not in table.sources and not source.startswith(("https://", "http://", "docs/")):
            yield f"sources: {source!r} is cited and is not among them."


def _unfit(table: Table) -> Iterable[str]:
    for torch in table.torch:
        if torch.aarch64 not in ("cuda", "cpu"):
            yield f"torch: {torch.release} has {torch.aarch64!r} for aarch64, which is neither cuda nor cpu."
    for system in table.systems:
        if system.state not in STATES:
            yield f"systems: {system.name} is {system.state!r}, which is none of {', '.join(STATES)}."
        if not _DAY.fullmatch(system.end) or not _DAY.fullmatch(system.further) or system.further < system.end:
            yield f"systems: {system.name} ends on {system.end!r} and {system.further!r}, which are not days in order."
    for engine in table.engines:
        if not _DAY.fullmatch(engine.end):
            yield f"engines: {engine.end!r} is not a day."


def cited(table: Table) -> set[str]:
    """Return every source that a row names."""
    lists: tuple[Iterable[Any], ...] = (
        *(table.stacks, table.cuda, table.torch, table.indices, table.bases, table.parts),
        *(table.systems, table.engines, table.holes),
    )
    rows = [
        *(row for rows in lists for row in rows),
        *table.builds,
        *table.deepspeed_pairs,
        *(bad for part in table.parts for bad in part.bad),
    ]
    return {str(row.source) for row in rows} | {row.read for row in table.drivers}


@cache
def load_table() -> Table:
    """Return the table of this collection."""
    return parse_table(yaml.safe_load(FILE.read_text(encoding="utf-8")))
