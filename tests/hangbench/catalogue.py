# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The cases: read from cases/*.yml, healthy runs multiplied out, one half held out."""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
SEED = "hangbench 1"
"""Halves follow from it and the identifiers of the cases; it never changes."""

KINDS = {
    "skipped_collective": "a rank leaves out a collective that the others enter",
    "reordered_collective": "a rank enters the same collectives in another order",
    "mismatched_collective": "a rank enters with another shape, dtype, operation, root or group",
    "uneven_batches": "a rank has fewer batches, or microbatches, than the others",
    "one_rank_checkpoint": "a rank saves or evaluates alone, and that is a collective",
    "own_code": "a rank sleeps, spins or holds the GIL in code that is no collective",
    "not_scheduled": "a rank is stopped, frozen or throttled",
    "blocked_file": "a rank waits for a file: FUSE, FIFO, lock",
    "deadlock": "a rank waits for a lock, a thread, a data loader or another process",
    "network": "packets between ranks are lost, or a name cannot be resolved",
    "lost_process": "a rank, or a process that helps it, is gone",
    "startup": "the ranks do not join, create different groups, or miss the first collective",
}


@dataclass(frozen=True)
class Case:
    id: str
    script: str
    world: int
    kind: str | None = None
    structure: str = "data_parallel"
    parameters: dict[str, Any] = field(default_factory=dict)
    truth: dict[str, Any] | None = None
    inject: str | None = None
    network: bool = False
    needs: tuple[str, ...] = ()
    absent: tuple[int, ...] = ()
    quiet: float = 8
    limit: float = 240

    @property
    def healthy(self) -> bool:
        return self.truth is None

    @property
    def ranks(self) -> list[int]:
        return [rank for rank in range(self.world) if rank not in self.absent]


def read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load((FOLDER / "cases" / name).read_text(encoding="utf-8")))


def multiplied(entry: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield the healthy runs of an entry: each combination of the values of its parameters."""
    varied = entry["vary"]
    for values in itertools.product(*varied.values()):
        chosen = dict(zip(varied, values))
        world = chosen.pop("world")
        marks = "-".join(str(value) for value in (f"w{world}", *chosen.values()))
        parameters = {"pause": entry["id"], **entry.get("parameters", {}), **chosen}
        name = f"healthy-{entry['id']}-{marks}".lower().replace("_", "-")
        yield {"id": name, "script": "healthy", "world": world, "parameters": parameters}


def case(entry: dict[str, Any]) -> Case:
    lists: dict[str, Any] = {name: tuple(entry[name]) for name in ("needs", "absent") if name in entry}
    return Case(**(entry | lists))


def hangs() -> list[Case]:
    return [case(entry) for path in sorted((FOLDER / "cases").glob("hangs_*.yml")) for entry in read(path.name)]


def healthy() -> list[Case]:
    return [case(one) for entry in read("healthy.yml") for one in multiplied(entry)]


def halves(cases: Iterable[Case]) -> dict[str, str]:
    """Return `tuned` or `held` for each case: every second one of each kind, in an order that the seed gives."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for one in cases:
        kinds[one.kind or "healthy"].append(one.id)
    return {
        name: "held" if number % 2 else "tuned"
        for kind, names in kinds.items()
        for number, name in enumerate(sorted(names, key=ranked), start=int(ranked(kind)[0] in "02468ace"))
    }


def ranked(name: str) -> str:
    return hashlib.sha256(f"{SEED}:{name}".encode()).hexdigest()
