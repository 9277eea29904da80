# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The GPUs of the jobs that run: how busy each is, and which one idles while others work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from statistics import median
from typing import Any

from ..nvidia_driver.kernels import without_module

COLUMNS = ("GPU", "JOB", "BUSY", "MEMORY", "POWER", "TEMP")
EACH = 16
"""Up to so many GPUs have a line each; more have a line a node."""
IDLE, WORKING = 5.0, 50.0
"""Percent: one that never was above the first idles, where the others are at the second or above."""


@dataclass(frozen=True)
class Used:
    """One GPU of a job, and what was read of it."""

    job: str
    node: str
    rank: int | None
    read: Mapping[str, Any]

    @property
    def index(self) -> int:
        return int(self.read["index"])

    @property
    def highest(self) -> float | None:
        return _value(self.read, "utilization_highest")


def used(job: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]) -> list[Used]:
    """Return the GPUs of a job, of which something was read, in the order of its ranks."""
    found = []
    for member in (job.get("summary") or {}).get("members") or job.get("members") or []:
        node = str(member.get("name"))
        read = {gpu["index"]: gpu for gpu in results.get(node, {}).get("gpus") or []}
        first = member.get("first_rank")
        for place, slot in enumerate(member.get("slots") or []):
            if isinstance(slot, int) and slot in read:
                rank = first + place if isinstance(first, int) else None
                found.append(Used(str(job["name"]), node, rank, read[slot]))
    return found


def rows(gpus: Sequence[Used]) -> list[tuple[str, ...]]:
    """Return the lines of the table, its head first; none without GPUs."""
    if not gpus:
        return []
    groups: dict[tuple[str, str, int], list[Used]] = {}
    for gpu in gpus:
        groups.setdefault((gpu.job, gpu.node, gpu.index if len(gpus) <= EACH else -1), []).append(gpu)
    return [COLUMNS, *(row(group) for group in groups.values())]


def row(group: Sequence[Used]) -> tuple[str, ...]:
    """Return one line for some GPUs of a job: ranges where they differ, ``-`` where nothing is known."""
    first, of_all = group[0], [gpu.read for gpu in group]
    numbers = [gpu.index for gpu in group]
    name = f"{first.node}:{numbers[0]}" if len(group) == 1 else f"{first.node} ({len(group)})"
    gib = 1024**3
    memory = _of(_range(of_all, "memory_used_bytes", gib), _range(of_all, "memory_bytes", gib), "GiB")
    power = _of(_range(of_all, "power_watts"), _range(of_all, "power_limit_watts"), "W")
    return (
        name,
        first.job,
        _unit(_range(of_all, "utilization"), "%"),
        memory,
        power,
        _unit(_range(of_all, "temperature_celsius"), "°C"),
    )


def none_computes(gpus: Sequence[Used]) -> bool:
    """Whether all whose utilization is known idle."""
    known = [highest for gpu in gpus if (highest := gpu.highest) is not None]
    return bool(known) and max(known) <= IDLE


def idle(job: str, gpus: Sequence[Used], log_path: str) -> dict[str, str]:
    """Return a sentence for each GPU that idles while the others of its job work, by ``NODE:INDEX``.

    Where none works there is one, with an empty name.
    """
    if none_computes(gpus):
        return {
            "": f"{job}: none of its GPUs is computing. The job is loading data, saving a checkpoint, waiting in a "
            f"debugger or hanging; its log says since when: {log_path}"
        }
    known = [(gpu, highest) for gpu in gpus if (highest := gpu.highest) is not None]
    found = {}
    for gpu, highest in known:
        others = [other for one, other in known if one is not gpu]
        if highest > IDLE or not others or median(others) < WORKING:
            continue
        rank = f" (rank {gpu.rank})" if gpu.rank is not None else ""
        log = str(PurePosixPath(log_path).parent / "ranks" / f"rank-{gpu.rank:05d}.log") if gpu.rank is not None else ""
        found[f"{gpu.node}:{gpu.index}"] = (
            f"{job}: GPU {gpu.index} of {gpu.node}{rank} idles at {highest:g} %, while the others are at"
            f" {median(others):g} %. Remedy: find out what that rank waits for, such as data, a lock or a debugger"
            + (f": {gpu.node}:{log}" if log else "")
        )
    return found


def _value(read: Mapping[str, Any], name: str) -> float | None:
    value = read.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _range(reads: Sequence[Mapping[str, Any]], name: str, unit: float = 1) -> str:
    """Return ``71``, or ``71–80`` where they differ; empty where none has it."""
    values = [round(value / unit) for value in (_value(read, name) for read in reads) if value is not None]
    if not values:
        return ""
    return f"{min(values)}" if min(values) == max(values) else f"{min(values)}–{max(values)}"


def _unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if text else "-"


def _of(some: str, whole: str, unit: str) -> str:
    return _unit(f"{some} of {whole}" if some and whole else some, unit)


def next_boots(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each node whose GPUs could not be used after a reboot."""
    lines = []
    for node, result in results.items():
        boots = result.get("next_boot") or {}
        found = without_module(boots, str(boots.get("driver") or ""), "")
        if found:
            lines.append(f"{node}: {found[0]}. ansible-playbook verify.yml --tags nvidia_driver names the remedy.")
    return lines
