# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The table of drifts: what is changed on a node behind the roles' back, and what verify must say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).with_name("table.yml")


@dataclass(frozen=True)
class Drift:
    """One thing that is changed. ``node`` is named by verify; the command runs there, or ``via`` another one."""

    id: str
    role: str
    node: str
    shown: str
    make: str
    via: str = ""

    @property
    def where(self) -> str:
        return self.via or self.node

    def missing_in(self, text: str, places: Mapping[str, str]) -> str:
        """Return what verify did not say of this drift; empty where it names node, role and what differs."""
        named = re.findall(
            rf"{self.node}: role {self.role}: (.*?)[.] Remedy: ansible-playbook site[.]yml --tags {self.role}\b",
            text.replace("''", "'"),  # YAML doubles quotes in some of the lines
        )
        shown = filled(self.shown, places)
        return "" if any(shown in words for words in named) else f"{self.id}: {shown} (said: {named or 'nothing'})"


@dataclass(frozen=True)
class Round:
    """Drifts that are made together. ``also``: roles that are in the way of those, and repaired with them."""

    name: str
    drifts: tuple[Drift, ...]
    also: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    containers_first: bool = False
    """Whether the training containers of all nodes are removed before."""

    @property
    def tags(self) -> str:
        """What site.yml is given to repair the round."""
        return ",".join(dict.fromkeys([*(drift.role for drift in self.drifts), *self.also]))


def rounds(path: Path = TABLE) -> list[Round]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Round(
            name=entry["name"],
            drifts=tuple(Drift(**drift) for drift in entry["drifts"]),
            also=tuple(entry.get("also", ())),
            variables=entry.get("variables", {}),
            containers_first=entry.get("containers_first", False),
        )
        for entry in document["rounds"]
    ]


def elsewhere(path: Path = TABLE) -> dict[str, str]:
    """Return the roles whose drifts other scenarios make, each with the file that does."""
    found: dict[str, str] = yaml.safe_load(path.read_text(encoding="utf-8"))["elsewhere"]
    return found


def filled(text: str, places: Mapping[str, str]) -> str:
    """Put a node's places in: ``@etc@`` and the like."""
    for name, place in places.items():
        text = text.replace(f"@{name}@", place)
    return text
