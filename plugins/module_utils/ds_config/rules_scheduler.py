# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What ``deepspeed.initialize`` refuses because of the scheduler that the configuration names.

Source: DeepSpeed 0.15.4 to 0.19.8, runtime/engine.py (``_configure_lr_scheduler`` gives a scheduler of the file the
optimizer as it has been wrapped, a callable of the script the one below it) and runtime/lr_schedules.py
(``get_torch_optimizer`` looks below the wrapper); torch/optim/lr_scheduler.py, which takes torch's own optimizers only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..common.problems import Problem
from .optimizers import TORCH_SCHEDULERS
from .view import View

_NEAREST = {
    "ConstantLR": "WarmupLR",
    "CosineAnnealingLR": "WarmupCosineLR",
    "CosineAnnealingWarmRestarts": "WarmupCosineLR",
    "CyclicLR": "OneCycle",
    "LinearLR": "WarmupDecayLR",
    "OneCycleLR": "OneCycle",
    "PolynomialLR": "WarmupDecayLR",
}
"""DeepSpeed's own schedulers with the nearest curve; the others have none."""
_NO_MOMENTUM = ("ASGD", "Adadelta", "Adafactor", "LBFGS", "Rprop", "adagrad", "muon")
"""Optimizers that have neither ``momentum`` nor ``betas`` among their defaults."""
_LONGEST_CALL = 120


def scheduler_conflicts(view: View) -> Iterator[Problem]:
    """A scheduler of torch with an optimizer that it does not take."""
    name = view.get("scheduler.type")
    if not isinstance(name, str) or name not in TORCH_SCHEDULERS:
        return
    if view.wrapped_by:
        nearest = _NEAREST.get(name)
        yield Problem(
            "scheduler.type",
            f"{name} is torch's, and takes no optimizer that DeepSpeed wraps, as it does with {view.wrapped_by}; "
            + (f"write {nearest}, which is DeepSpeed's, with its parameters, or " if nearest else "")
            + f"remove scheduler and give deepspeed.initialize lr_scheduler={_call(view, name)}",
        )
    elif (
        name in ("CyclicLR", "OneCycleLR")
        and view.optimizer in _NO_MOMENTUM
        and view.flag("scheduler.params.cycle_momentum", True)
    ):
        yield Problem(
            "scheduler.params.cycle_momentum",
            f"must be false: {name} would cycle the momentum, and the optimizer {view.get('optimizer.type')} has none",
        )


def _call(view: View, name: str) -> str:
    """What the script writes instead, with the parameters as Python writes them, or dots where that would be long."""
    params: Any = view.get("scheduler.params")
    given = [f"{key}={value!r}" for key, value in params.items()] if isinstance(params, dict) else []
    if sum(map(len, given)) > _LONGEST_CALL or not all(map(str.isprintable, given)):
        given = ["…"]
    return f"lambda optimizer: torch.optim.lr_scheduler.{name}({', '.join(['optimizer', *given])})"
