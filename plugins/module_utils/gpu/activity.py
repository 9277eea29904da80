# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How busy each GPU of a host is, by nvidia-smi. A host without one, or without an answer, has no GPUs here."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, Callable, Protocol

from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult

FIELDS = (
    *("index", "utilization.gpu", "memory.used", "memory.total"),
    *("power.draw", "enforced.power.limit", "temperature.gpu"),
)
"""Units without ``units``: percent, MiB, watts, degrees Celsius (``nvidia-smi --help-query-gpu``)."""
SAMPLES, PAUSE = 3, 0.7
"""One reading covers between a sixth of a second and a second; a GPU may rest that long between two steps."""


class Smi(Protocol):
    """What runs nvidia-smi, None where it is not installed."""

    def nvidia_smi(self, *arguments: str) -> CommandResult | None: ...


def gather_activity(io: Smi, sleep: Callable[[float], None] = time.sleep) -> list[dict[str, Any]]:
    """Return ``index``, ``utilization`` (percent, mean and highest), memory, power and temperature of each GPU.

    A value that this GPU does not report is None, such as the utilization of one in MIG mode.
    """
    samples: list[dict[int, dict[str, Any]]] = []
    for number in range(SAMPLES):
        if number:
            sleep(PAUSE)
        answer = io.nvidia_smi(f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
        if answer is None or answer.rc:
            break
        samples.append(parse_activity(answer.stdout))
    indexes = sorted({index for sample in samples for index in sample})
    return [_joined([sample[index] for sample in samples if index in sample]) for index in indexes]


def parse_activity(text: str) -> dict[int, dict[str, Any]]:
    """Return what one reading says of each GPU, by its index."""
    found = {}
    for line in text.splitlines():
        values = dict(zip(FIELDS, (value.strip() for value in line.split(","))))
        if len(values) < len(FIELDS) or not re.fullmatch(r"\d{1,4}", values["index"], re.ASCII):
            continue  # a warning, or a GPU that is lost
        used, total = _number(values["memory.used"]), _number(values["memory.total"])
        found[int(values["index"])] = {
            "index": int(values["index"]),
            "utilization": _number(values["utilization.gpu"]),
            "memory_used_bytes": None if used is None else int(used * 1024 * 1024),
            "memory_bytes": None if total is None else int(total * 1024 * 1024),
            "power_watts": _number(values["power.draw"]),
            "power_limit_watts": _number(values["enforced.power.limit"]),
            "temperature_celsius": _number(values["temperature.gpu"]),
        }
    return found


def _joined(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last reading, with the utilization of all of them."""
    known = [sample["utilization"] for sample in samples if sample["utilization"] is not None]
    mean = round(sum(known) / len(known), 1) if known else None
    return {**samples[-1], "utilization": mean, "utilization_highest": max(known, default=None)}


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text, re.ASCII) else None
