# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The classes of optimizers and schedulers that DeepSpeed's engine takes from a configuration."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch
from deepspeed.runtime import config, lr_schedules

_OPTIMIZERS = {
    "FusedAdam": "deepspeed.ops.adam",
    "DeepSpeedCPUAdam": "deepspeed.ops.adam",
    "DeepSpeedCPUAdagrad": "deepspeed.ops.adagrad",
    "FusedLamb": "deepspeed.ops.lamb",
    "DeepSpeedCPULion": "deepspeed.ops.lion",
    "FusedLion": "deepspeed.ops.lion",
    "OnebitAdam": "deepspeed.runtime.fp16.onebit.adam",
    "ZeroOneAdam": "deepspeed.runtime.fp16.onebit.zoadam",
    "OnebitLamb": "deepspeed.runtime.fp16.onebit.lamb",
    "Adam": "torch.optim",
    "AdamW": "torch.optim",
    "Adagrad": "torch.optim",
}


def parameters() -> dict[str, Any]:
    """``names`` that DeepSpeed knows itself, ``torch`` classes, and for each class the names of its parameters."""
    classes = {}
    for name, module in _OPTIMIZERS.items():
        try:
            classes[name] = _names(getattr(importlib.import_module(module), name))
        except ModuleNotFoundError:  # the 1-bit optimizers left in 0.19.7
            continue
    torch_schedulers = _classes(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler)
    own = {name: _names(getattr(lr_schedules, name)) for name in lr_schedules.VALID_LR_SCHEDULES}
    return {
        "names": sorted(config.DEEPSPEED_OPTIMIZERS),
        "torch_optimizers": _classes(torch.optim, torch.optim.Optimizer),
        "torch_schedulers": torch_schedulers,
        "optimizers": classes,
        "schedulers": own,
        "needed": {name: _needed(getattr(lr_schedules, name)) for name in own},
        "torch_needed": {name: _needed(getattr(torch.optim.lr_scheduler, name)) for name in torch_schedulers},
    }


def rates(name: str, params: dict[str, Any]) -> list[float]:
    """What the scheduler sets in its first steps for an optimizer with one parameter group."""
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = getattr(lr_schedules, name)(optimizer, **params)
    found = []
    for dummy in range(4):
        optimizer.step()
        scheduler.step()
        found.append(float(optimizer.param_groups[0]["lr"]))
    return found


def _names(kind: type) -> list[str]:
    return list(inspect.signature(kind).parameters)


def _needed(kind: type) -> list[str]:
    given = inspect.signature(kind).parameters.values()
    return [each.name for each in given if each.default is each.empty and each.name != "optimizer"]


def _classes(module: Any, base: type) -> list[str]:
    return sorted(
        name
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, base) and kind is not base and not name.startswith("_")
    )
