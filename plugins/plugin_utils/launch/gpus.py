# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether the GPUs of a node's slots are free, by what nvidia-smi prints in the container. Nothing here raises.

The fields are those of nvidia-smi(1). A launch was tried on one H100 (driver 580.159.04): it started jobs, and
refused one while another process held 2 GiB of the GPU, and one with more slots than GPUs. The tests read what
nvidia-smi printed there of a free GPU; all other output in them is written after its documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...module_utils.gpu.explain import ENOUGH

FREE_MIB = 500
"""MiB that drivers, monitoring and a desktop may hold on a GPU that is free."""

_LISTED = re.compile(r"^GPU (\d{1,4}):", re.MULTILINE)
_INSTANCE = re.compile(r"^\s*MIG\s.*\(UUID:\s+MIG-", re.MULTILINE)


@dataclass(frozen=True)
class Card:
    """A GPU. ``used`` and ``total`` are MiB, None where nvidia-smi does not say."""

    index: int
    uuid: str
    used: int | None
    total: int | None
    mode: str


@dataclass(frozen=True)
class Finding:
    """A finding on the GPUs of a node. ``kind`` chooses the remedy: broken, absent, busy or mode; or note."""

    kind: str
    text: str


def parse_cards(text: str) -> list[Card]:
    """The rows of ``--query-gpu=index,uuid,memory.used,memory.total,compute_mode`` in CSV without header and units."""
    found = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) == 5 and values[0].isdecimal() and values[1].startswith("GPU-"):
            found.append(Card(int(values[0]), values[1], _mebibytes(values[2]), _mebibytes(values[3]), values[4]))
    return found


def parse_apps(text: str) -> dict[str, list[str]]:
    """By GPU, the processes of ``--query-compute-apps=gpu_uuid,pid,used_memory,process_name``: number and name."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",", 3)]  # a name may hold a comma
        if len(values) == 4 and values[0].startswith("GPU-"):
            # Of a process outside the container neither is known.
            known = [value for value in (values[1], values[3]) if value and not value.startswith("[")]
            found.setdefault(values[0], []).append(" ".join(known) or "a process outside the container")
    return found


def _mebibytes(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def judge(smi: Mapping[str, Any], slots: Sequence[int]) -> Iterator[Finding]:
    """What keeps the slots from being used, by the answers ``list``, ``gpus`` and ``apps`` of nvidia-smi."""
    for name in ("list", "gpus"):
        if smi[name]["rc"] not in ENOUGH:
            words = " ".join(f"{smi[name]['out']} {smi[name]['err']}".split())[:300]
            yield Finding("broken", f"nvidia-smi fails where the ranks run: {words or smi[name]['rc']}")
            return
    if _INSTANCE.search(smi["list"]["out"]):
        yield Finding("note", "its GPUs are partitioned (MIG): whether an instance is busy was not checked")
        return
    cards = {card.index: card for card in parse_cards(smi["gpus"]["out"])}
    apps = parse_apps(smi["apps"]["out"]) if smi["apps"]["rc"] in ENOUGH else {}
    listed = len(_LISTED.findall(smi["list"]["out"]))
    absent = [slot for slot in slots if slot >= listed]
    if absent:
        noun = "slots" if len(absent) > 1 else "slot"
        yield Finding(
            "absent", f"{noun} {_numbers(absent)} of the job: nvidia-smi lists only {listed} GPU(s) where the ranks run"
        )
    for card in (cards[slot] for slot in slots if slot in cards):
        yield from _card(card, apps.get(card.uuid, []))


def _card(card: Card, apps: list[str]) -> Iterator[Finding]:
    holders = f" by {', '.join(apps[:3])}" if apps else ""
    used = f", and it is in use{holders}" if apps else ""
    if card.mode == "Prohibited" or (card.mode.startswith("Exclusive") and apps):
        yield Finding("mode", f"GPU {card.index} accepts no process: its compute mode is {card.mode}{used}")
    elif card.used is not None and card.used > FREE_MIB:
        total = f" of {card.total}" if card.total is not None else ""
        yield Finding("busy", f"GPU {card.index} is in use{holders}: {card.used}{total} MiB of its memory")
    elif apps:
        yield Finding("note", f"GPU {card.index} has a process of little memory: {', '.join(apps[:3])}")


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
