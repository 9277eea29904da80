# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How busy GPUs are, in the words of nvidia-smi. Also part of the supervisor's archive: Python 3.8 or later."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

FIELDS = (
    *("index", "utilization.gpu", "memory.used", "memory.total"),
    *("power.draw", "enforced.power.limit", "temperature.gpu"),
)
"""Units without ``units``: percent, MiB, watts, degrees Celsius (``nvidia-smi --help-query-gpu``)."""
ARGUMENTS = (f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
KEYS = (
    *("index", "utilization", "utilization_highest", "memory_used_bytes", "memory_bytes"),
    *("power_watts", "power_limit_watts", "temperature_celsius"),
)
"""What is known of a GPU after some readings, in the order of a row."""


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


def joined(samples: Sequence[dict[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return of each GPU the last reading, with the utilization of all of them."""
    indexes = sorted({index for sample in samples for index in sample})
    return [_one([sample[index] for sample in samples if index in sample]) for index in indexes]


def _one(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    known = [sample["utilization"] for sample in samples if sample["utilization"] is not None]
    mean = round(sum(known) / len(known), 1) if known else None
    return {**samples[-1], "utilization": mean, "utilization_highest": max(known, default=None)}


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text, re.ASCII) else None
