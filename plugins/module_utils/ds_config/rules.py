# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keys of a ds_config.json that are right alone and wrong together.

``conflicts``: what a release of DeepSpeed refuses, when it reads the configuration, when the engine starts, when the
script calls ``engine.compile`` or configures activation checkpointing, as far as the configuration alone decides it.
tests/differential/test_diff_engine.py asks the engines themselves. ``warnings``: what runs, and not as it was meant.

No rule: ``communication_data_type`` (every type that the schema takes is taken with reduce-scatter too); whether the
script has an optimizer and of which class, a model that is not a pipeline, mixture-of-experts layers; the accelerator
(fp16 and GPUDirect Storage on a CPU, SuperOffload) and installed packages (apex, mup, cupy). A training script is
assumed to have an optimizer: without one ZeRO 1 and 2 do not start, and nothing else here matters.
"""

from __future__ import annotations

from typing import Any

from ..common.problems import Problem
from .facts import NEWEST, Version
from .rules_compile import compile_conflicts
from .rules_engine import engine_conflicts
from .rules_hints import hints
from .rules_optimizer import optimizer_conflicts
from .rules_reading import reading_conflicts
from .rules_scheduler import scheduler_conflicts
from .view import ZERO, View, get, stage

__all__ = ["ZERO", "conflicts", "get", "stage", "warnings"]


def conflicts(config: dict[str, Any], version: Version, *, world_size: int | None = None) -> list[Problem]:
    """Combinations that this release of DeepSpeed refuses; never raises.

    ``world_size``: the number of ranks, where it is known; some sizes must divide it. A value that an integration
    fills in ("auto") is unknown, so that the integration itself plays no part.
    """
    view = View(config, version)
    return [
        *reading_conflicts(view),
        *engine_conflicts(view, world_size),
        *optimizer_conflicts(view),
        *scheduler_conflicts(view),
        *compile_conflicts(view),
    ]


def warnings(config: dict[str, Any], version: Version = NEWEST, memlock: int | None = None) -> list[Problem]:
    """Combinations that run, and not as meant, or slowly; never raises.

    ``memlock``: bytes that a process of the job may lock in memory (``ulimit -l``); -1 is unlimited, ``None`` unknown.
    """
    return list(hints(View(config, version), memlock))
