# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How busy each GPU of a host is, by nvidia-smi. A host without one, or without an answer, has no GPUs here."""

from __future__ import annotations

import time
from typing import Any, Callable, Protocol

from ..common.command_io import CommandResult
from .explain import ENOUGH
from .readings import ARGUMENTS, joined, parse_activity

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
        answer = io.nvidia_smi(*ARGUMENTS)
        if answer is None or answer.rc not in ENOUGH:
            break
        samples.append(parse_activity(answer.stdout))
    return joined(samples)
