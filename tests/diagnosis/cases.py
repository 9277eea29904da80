# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The cases of the corpus: how a job ended, its log, and what an experienced engineer would answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
SEED = 43
"""Decides which of the new cases are held out; README.md lists them."""
REPORTS = "report-"
"""What the ids of the cases begin with that were there before: no half of them is held out."""
RESTARTS = ("allowed", "forbidden", "either")
CONFIDENCES = ("certain", "likely", "not known")


@dataclass(frozen=True)
class Truth:
    """What the right answer says. Patterns are searched without regard to capitals."""

    cause: tuple[str, ...]
    """All of them are in the right answer."""
    right: str
    """A sentence that is right."""
    restart: str
    confidence: str
    node: str | None = None
    """Empty: no node may be named. None: it does not matter."""
    rank: int | None = None
    forbidden: tuple[str, ...] = ()
    """Wrong culprits: none of them is in the right answer."""
    partly: tuple[str, ...] = ()
    """Any of them makes an answer half right."""


@dataclass(frozen=True)
class Case:
    """One job. Without ``exits`` and ``gone`` there is only its log."""

    id: str
    source: str
    logs: tuple[dict[str, Any], ...]
    truth: Truth
    nodes: dict[str, int] = field(default_factory=dict)
    """Ranks of each node, rank 0's node first; empty where the names are not known."""
    exits: tuple[tuple[int, int], ...] = ()
    """Rank and exit code (-9: SIGKILL), in the order in which they ended."""
    gone: tuple[str, ...] = ()
    """Nodes that do not answer any more."""
    launcher: str = "deepspeed"

    @property
    def new(self) -> bool:
        return not self.id.startswith(REPORTS)

    @property
    def held(self) -> bool:
        """Whether this case is not for tuning: stable when others are added."""
        return self.new and hashlib.sha256(f"{SEED}:{self.id}".encode()).digest()[0] % 2 == 0

    def text(self, entry: dict[str, Any]) -> str:
        """A log, in the form NODE: rank N: text if it is that of one rank."""
        lines = (FOLDER / "logs" / entry["file"]).read_text(encoding="utf-8").splitlines()
        head = f"{entry['node']}: " if entry.get("node") else ""
        head += f"rank {entry['rank']}: " if entry.get("rank") is not None else ""
        return "\n".join(head + line for line in lines)

    def log(self) -> str:
        """All logs, one after the other."""
        return "\n".join(self.text(entry) for entry in self.logs)


def case_of(raw: dict[str, Any]) -> Case:
    """A case from its YAML."""
    truth = dict(raw["truth"])
    who = truth.pop("who", None) or {}
    for name in ("cause", "forbidden", "partly"):
        truth[name] = tuple(truth.get(name, ()))
    rest = {key: value for key, value in raw.items() if key not in {"truth", "logs", "exits", "gone"}}
    return Case(
        logs=tuple({"file": entry} if isinstance(entry, str) else entry for entry in raw["logs"]),
        truth=Truth(node=who.get("node"), rank=who.get("rank"), **truth),
        exits=tuple((int(rank), int(code)) for rank, code in raw.get("exits", ())),
        gone=tuple(raw.get("gone", ())),
        **rest,
    )


def load() -> list[Case]:
    """All cases, by file and in its order."""
    files = sorted((FOLDER / "cases").glob("*.yml"))
    return [case_of(raw) for path in files for raw in yaml.safe_load(path.read_text(encoding="utf-8"))]
