# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Faults of single releases of DeepSpeed that a configuration meets: for the release itself, not the nearest known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..common.problems import Problem
from .facts import Version
from .view import ZERO, View


class Fault(NamedTuple):
    """What ``first`` to ``last`` do at a stage of ZeRO; ``bf16``: in that precision alone."""

    first: Version
    last: Version
    stage: int
    bf16: bool
    text: str


FAULTS = (
    Fault(
        Version(0, 17, 6),
        Version(0, 18, 2),
        2,
        False,
        "computes wrong gradients in DeepSpeed 0.17.6 to 0.18.2, by reports (DeepSpeed#7718, trl#4540): take another"
        " release, or another stage",
    ),
    Fault(
        Version(0, 18, 3),
        Version(0, 19, 3),
        2,
        True,
        "loses gradients of a module that is used more than once in a step, with several ranks, in DeepSpeed 0.18.3 to"
        " 0.19.3 (DeepSpeed#8224): take another release, or stage 1 or 3, if the model has one",
    ),
    Fault(
        Version(0, 18, 5),
        Version(0, 18, 6),
        2,
        False,
        "is much slower in DeepSpeed 0.18.5 and 0.18.6 than before (DeepSpeed#7885, corrected in 0.18.7)",
    ),
)


def release_hints(config: dict[str, Any], release: Version) -> Iterator[Problem]:
    """What this release is known to do wrong or slowly with the configuration; never raises."""
    view = View(config, release)
    for fault in FAULTS:
        met = fault.first <= release <= fault.last and view.stage == fault.stage
        if met and (not fault.bf16 or view.precision == "bf16"):
            yield Problem(f"{ZERO}.stage", f"{fault.stage} {fault.text}")
