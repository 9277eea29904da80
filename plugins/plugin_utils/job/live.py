# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the console says of a job that it follows, beside its log: its GPUs now and then, and what NCCL has connected.

All of it is in the state that each query of the job returns: nothing more is asked of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from ...module_utils.gpu.readings import KEYS
from . import gpu_table, nccl

INTERVAL = 30.0
"""Seconds between two lines of the GPUs, at least."""
AGAIN = 300.0
"""Seconds after which a GPU that still idles is named again."""
NOTABLE = {"utilization": 15.0, "temperature_celsius": 10.0}
"""What must have changed since the last line for another: percent, degrees."""
NOTABLE_MEMORY = 0.1
"""And this part of the memory."""
NONE_COMPUTES = 120.0
"""Seconds: before a first step, data are loaded and kernels compiled."""
CONNECTING = 60.0
"""Seconds in which all ranks must have connected after the first."""


class Vitals:
    """One job. ``clock`` gives seconds."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._name, self._clock = name, clock
        self._shown: tuple[float, ...] | None = None
        self._shown_at = clock() - INTERVAL
        self._read: Any = None
        self._idle: dict[str, float] = {}
        self._resting: float | None = None
        self._attempt: Any = None
        self._connected: list[str] = []
        self._connecting: float | None = None

    def lines(self, job: Mapping[str, Any]) -> list[str]:
        """Lines to show now; mostly none."""
        if job.get("attempt") != self._attempt:
            self._attempt, self._connected, self._connecting = job.get("attempt"), [], None
        return [*self._nccl(job), *self._gpus(job)]

    def _nccl(self, job: Mapping[str, Any]) -> list[str]:
        """Once all ranks have connected, or should have; and again where that is more or otherwise."""
        found, world, now = job.get("nccl"), job.get("world_size_expected"), self._clock()
        if not found:
            return []
        self._connecting = now if self._connecting is None else self._connecting
        waits = (found.get("connected") or 0) < (world or 0) and now - self._connecting < CONNECTING
        reported = [] if waits else nccl.sentences(self._name, job)
        new = [line for line in reported if line not in self._connected]
        self._connected += new
        return new

    def _gpus(self, job: Mapping[str, Any]) -> list[str]:
        read = job.get("gpus")
        if not read or read == self._read:
            return []
        self._read = read
        results = {node: {"gpus": [dict(zip(KEYS, row)) for row in rows]} for node, rows in read.items()}
        gpus = gpu_table.used({**job, "name": self._name}, results)
        return [*self._figures(gpus), *self._sentences(gpus, str(job.get("log_path") or ""))] if gpus else []

    def _figures(self, gpus: Sequence[gpu_table.Used]) -> list[str]:
        now, reads = self._clock(), [gpu.read for gpu in gpus]
        figures = tuple(_median(reads, key) for key in ("utilization", "temperature_celsius", "memory_used_bytes"))
        if now - self._shown_at < INTERVAL or not self._notable(figures, reads):
            return []
        self._shown, self._shown_at = figures, now
        # JOB is what the line begins with, GPU how many there are.
        dummy, dummy, busy, *others = gpu_table.row(gpus)
        reported = [f"{busy} busy", *(value for value in others if value != "-")]
        return [f"{self._name}: {len(gpus)} GPU{'s' if len(gpus) > 1 else ''}: {', '.join(reported)}"]

    def _notable(self, figures: tuple[float, ...], reads: Sequence[Mapping[str, Any]]) -> bool:
        if self._shown is None:
            return True
        whole = _median(reads, "memory_bytes") or 1.0
        limits = (NOTABLE["utilization"], NOTABLE["temperature_celsius"], whole * NOTABLE_MEMORY)
        return any(abs(one - other) >= limit for one, other, limit in zip(figures, self._shown, limits))

    def _sentences(self, gpus: Sequence[gpu_table.Used], log_path: str) -> list[str]:
        """Those on GPUs that idle, each now and then; that none computes, when it lasts."""
        now = self._clock()
        if gpu_table.none_computes(gpus):
            self._resting = now if self._resting is None else self._resting
            if now - self._resting < NONE_COMPUTES:
                return []
        else:
            self._resting = None
        reported = gpu_table.idle(self._name, gpus, log_path)
        self._idle = {key: at for key, at in self._idle.items() if key in reported}
        new = {key: line for key, line in reported.items() if now - self._idle.get(key, now - AGAIN) >= AGAIN}
        self._idle.update(dict.fromkeys(new, now))
        return list(new.values())


def _median(reads: Sequence[Mapping[str, Any]], key: str) -> float:
    values = [float(read[key]) for read in reads if isinstance(read.get(key), (int, float))]
    return median(values) if values else 0.0
