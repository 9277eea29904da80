# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a user says of GPUs and memory, read: sizes in bytes, compute capabilities, and sizes as a message shows them.

``GB`` and ``G`` are 10^9 bytes, ``GiB`` and ``Gi`` 2^30. A card sold as "24 GB" has at least 24 * 10^9 bytes, whichever
it is: nvidia-smi shows 24564 MiB (25.8 * 10^9) for an RTX 4090 and 23034 MiB (24.2 * 10^9) for an L4, part of whose
memory is kept for ECC. So the trade name is a safe lower bound, and what nvidia-smi shows is exact.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..common.problems import Problem, shown

Capability = tuple[int, int]

_UNITS = {"": 1, "b": 1}
for _index, _letter in enumerate("kmgtp", start=1):
    _UNITS.update({f"{_letter}{end}": 1000**_index for end in ("", "b")})
    _UNITS.update({f"{_letter}{end}": 1024**_index for end in ("i", "ib")})
_SIZE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?(?:e\+?[0-9]{1,2})?)\s*([kmgtp]?i?b?)", re.IGNORECASE | re.ASCII)
_CAPABILITY = re.compile(r"([0-9]{1,3})\.([0-9]{1,2})")
_LEAST = 10**8
"""Nothing with less memory trains; a smaller number forgot its unit."""
_MOST = 10**18
_MOST_GPUS = 1024
"""GPUs in one host; the largest NVLink domains have below 600."""


@dataclass(frozen=True)
class Gpus:
    """The GPUs of one host, all alike; ``None`` where it was not said. ``memory`` is in bytes, of one GPU."""

    count: int | None = None
    memory: int | None = None
    compute_capability: Capability | None = None


def human(size: int) -> str:
    """``19541678489`` as ``18.2 GiB``."""
    for unit, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if size >= 1024**power:
            return f"{size / 1024**power:,.1f} {unit}"
    return f"{size} bytes"


def whole(value: Any) -> int | None:
    """A whole number, also one written as ``8.0``, ``"8"`` or ``5e8``; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not re.fullmatch(r"\s*[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE]\+?[0-9]{1,2})?\s*", value, re.ASCII):
            return None
        value = int(value) if value.strip().isdigit() else float(value)
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    return value if isinstance(value, int) else None


def read_bytes(value: Any, path: str) -> tuple[int | None, Problem | None]:
    """Bytes from a number or a text such as ``24GB``, ``24 GiB``, ``80G`` and ``24564 MiB``; ``None`` stays that."""
    if value is None:
        return None, None
    size: float | int | None = None
    if isinstance(value, str):
        match = _SIZE.fullmatch(value.strip())
        if match:
            number = match[1]
            amount = int(number) if number.isdigit() else float(number)
            size = amount * _UNITS[match[2].lower()]
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(_bounded(value)):
        size = value
    if size is None:
        return None, Problem(
            path,
            f"{shown(value)} is not a size; give bytes, or a text such as 24GB (10^9 bytes each), 24GiB, or 24564 MiB"
            " as nvidia-smi shows it",
        )
    if not _LEAST <= size <= _MOST:
        return None, Problem(path, f"{shown(value)} is not an amount of memory; give it with its unit, such as 24GB")
    return int(size), None


def read_gpus(gpus: Any) -> tuple[Gpus | None, list[Problem]]:
    """The module's parameter ``gpus``: ``count`` in a host, ``memory`` of one, ``compute_capability``.

    ``memory`` and ``compute_capability`` may be lists, one for each GPU: the least of them counts.
    """
    if gpus is None:
        return None, []
    if not isinstance(gpus, dict):
        return None, [Problem("gpus", f"must be a mapping of count, memory and compute_capability, not {shown(gpus)}")]
    problems = [
        Problem(f"gpus.{str(key)[:60]}", "is unknown; known keys are count, memory and compute_capability")
        for key in gpus
        if key not in ("count", "memory", "compute_capability")
    ]
    count = gpus.get("count")
    if count is not None:
        count = whole(count)
        if count is None or not 1 <= count <= _MOST_GPUS:
            problems.append(
                Problem("gpus.count", f"must be the number of GPUs in a host, 1 or more, not {shown(gpus['count'])}")
            )
            count = None
    memory = _least(gpus.get("memory"), "gpus.memory", read_bytes, problems)
    capability = _least(gpus.get("compute_capability"), "gpus.compute_capability", _capability, problems)
    return (None if problems else Gpus(count, memory, capability)), problems


def _least(
    value: Any, path: str, read: Callable[[Any, str], tuple[Any, Problem | None]], problems: list[Problem]
) -> Any:
    if not isinstance(value, list):
        found, problem = read(value, path)
        problems += [problem] if problem else []
        return found
    if not value:
        problems.append(Problem(path, "is an empty list; leave it out, or give one value for each GPU"))
        return None
    all_found = []
    for index, item in enumerate(value[:_MOST_GPUS]):
        if item is None:
            problems.append(Problem(f"{path}[{index}]", "is nothing; give a value for each GPU, or one for all"))
            continue
        found, problem = read(item, f"{path}[{index}]")
        if problem:
            problems.append(problem)
        else:
            all_found.append(found)
    return min(all_found) if all_found else None


def _capability(value: Any, path: str) -> tuple[Capability | None, Problem | None]:
    if value is None:
        return None, None
    text = ""
    if isinstance(value, str):
        text = value.strip()
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < _bounded(value) < 1000:
        text = str(float(value))
    if re.fullmatch(r"[0-9]{1,3}", text, re.ASCII):
        text += ".0"
    match = _CAPABILITY.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= 99:
        return None, Problem(path, f"must be such as 8.6 (nvidia-smi --query-gpu=compute_cap), not {shown(value)}")
    return (int(match[1]), int(match[2])), None


def _bounded(value: float | int) -> float:
    """As a float, which a huge whole number is not."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
