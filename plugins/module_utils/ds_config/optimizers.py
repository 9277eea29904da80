# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Optimizers and schedulers that a ds_config.json may name, and the parameters that their classes take.

DeepSpeed checks neither before its engine starts. Source: runtime/engine.py (``_configure_basic_optimizer``,
``get_optimizer_configuration``, ``_scheduler_from_config``), the classes in ops/ and runtime/fp16/onebit, and
runtime/lr_schedules.py of DeepSpeed 0.15.4 to 0.19.8; ``torch.optim`` of torch 2.13.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from ..common.problems import shown
from .facts import Version
from .field import AMOUNT, COUNT, FLAG, NUMBER, SIZE, WHOLE, Field, before, choice, gone, needed, since

_MOMENTUM = Field("number", ge=0, lt=1)
_RATE = Field("rate", ge=0)
_BETAS = Field("numbers", ge=0, lt=1, size=2)
_ONE_BIT = "take AdamW; 1-bit optimizers left DeepSpeed"
_GRAD_NORM = "set gradient_clipping at the top level"

_ADAM: dict[str, Field] = {"lr": AMOUNT, "betas": _BETAS, "eps": AMOUNT, "weight_decay": AMOUNT}
_NO_AMSGRAD = {"amsgrad": Field("flag", choices=("false",))}
"""The class has the parameter and refuses true."""
_TORCH = {"foreach": FLAG, "maximize": FLAG, "differentiable": FLAG, "fused": FLAG}
_TORCH_ADAM = {**_ADAM, **_TORCH, "amsgrad": FLAG, "capturable": FLAG}
# read and taken out by the engine before the class sees the rest
_ENGINE = {"torch_adam": FLAG, "adam_w_mode": FLAG, "fp32_optimizer_states": since("0.19.1", FLAG)}
_FUSED_ADAM = {**_ADAM, **_NO_AMSGRAD, "bias_correction": FLAG, "set_grad_none": FLAG}
_CPU_ADAM = {**_ADAM, "amsgrad": FLAG, "bias_correction": FLAG}
_LAMB = {
    **_ADAM,
    **_NO_AMSGRAD,
    "bias_correction": FLAG,
    "eps_inside_sqrt": FLAG,
    "max_coeff": AMOUNT,
    "min_coeff": AMOUNT,
}
_NETWORK = {"cuda_aware": FLAG, "comm_backend_name": choice("nccl", "mpi", "compressed", "hccl")}
_ONE_BIT_ADAM = {
    **_ADAM,
    **_NO_AMSGRAD,
    **_NETWORK,
    "freeze_step": COUNT,
    "bias_correction": FLAG,
    "eps_inside_sqrt": FLAG,
}
_LION = {"lr": AMOUNT, "betas": _BETAS, "weight_decay": AMOUNT}
_MUON_SINCE = "0.17.6"

_VARIANTS: dict[str, dict[str, Field]] = {
    "adam torch": {**_TORCH_ADAM, **_ENGINE},
    "adam cpu": {**_CPU_ADAM, **_ENGINE, "fp32_optimizer_states": FLAG},
    "adam": {**_FUSED_ADAM, **_ENGINE},
    "adagrad cpu": {
        "lr": AMOUNT,
        "eps": AMOUNT,
        "weight_decay": AMOUNT,
        "amsgrad": FLAG,
        "fp32_optimizer_states": FLAG,
    },
    "adagrad": {
        "lr": AMOUNT,
        "lr_decay": AMOUNT,
        "weight_decay": AMOUNT,
        "initial_accumulator_value": AMOUNT,
        "eps": AMOUNT,
        **_TORCH,
    },
    "lamb": _LAMB,
    "lion cpu": {**_LION, "fp32_optimizer_states": FLAG},
    "lion": {**_LION, "set_grad_none": FLAG},
    "muon": {
        **_ADAM,
        "momentum": _MOMENTUM,
        "muon_lr": since("0.18.9", AMOUNT),
        "adam_lr": since("0.18.9", AMOUNT),
        "ns_method": since("0.19.0", choice("gram", "standard")),
        **{name: since("0.19.6", FLAG) for name in ("torch_adam", "adam_w_mode", "fp32_optimizer_states", "foreach")},
    },
    "onebitadam": _ONE_BIT_ADAM,
    "zerooneadam": {
        **_ADAM,
        **_NO_AMSGRAD,
        **_NETWORK,
        "bias_correction": FLAG,
        "eps_inside_sqrt": FLAG,
        "var_freeze_step": COUNT,
        "var_update_scaler": COUNT,
        "local_step_scaler": COUNT,
        "local_step_clipper": COUNT,
    },
    "onebitlamb": {
        **_ONE_BIT_ADAM,
        **dict.fromkeys(
            ("max_coeff", "min_coeff", "coeff_beta", "factor_max", "factor_min", "factor_threshold"), AMOUNT
        ),
    },
}
OPTIMIZERS: dict[str, Field] = {
    **dict.fromkeys(("adam", "adamw", "adagrad", "lamb", "lion", "muadam", "muadamw", "musgd"), FLAG),
    "muon": since(_MUON_SINCE, FLAG),
    **{name: gone("0.19.7", FLAG, _ONE_BIT) for name in ("onebitadam", "zerooneadam", "onebitlamb")},
}
"""The names that DeepSpeed knows itself, in capital and small letters alike; the field says when."""
TORCH_OPTIMIZERS = (
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adamax",
    "LBFGS",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
)
"""Classes of ``torch.optim`` that DeepSpeed takes by their exact name, less those that it has itself."""
_MUP = ("muadam", "muadamw", "musgd")
"""Classes of the package mup, whose releases differ in their parameters."""
_SHOWN = {
    "adam": "Adam",
    "adamw": "AdamW",
    "adagrad": "Adagrad",
    "lamb": "Lamb",
    "lion": "Lion",
    "muon": "Muon",
    "muadam": "MuAdam",
    "muadamw": "MuAdamW",
    "musgd": "MuSGD",
}

_LAST = {"last_batch_iteration": Field("whole", ge=-1)}
_STEPS = before("0.19.3", WHOLE, COUNT)
_WARMUP = {
    "warmup_min_lr": _RATE,
    "warmup_max_lr": _RATE,
    "warmup_num_steps": _STEPS,
    "warmup_type": choice("log", "linear"),
    **_LAST,
}
SCHEDULERS: dict[str, dict[str, Field]] = {
    "LRRangeTest": {
        "lr_range_test_min_lr": _RATE,
        "lr_range_test_step_size": COUNT,
        "lr_range_test_step_rate": NUMBER,
        "lr_range_test_staircase": FLAG,
        **_LAST,
    },
    "OneCycle": {
        "cycle_min_lr": needed(before("0.19.6", AMOUNT, _RATE)),
        "cycle_max_lr": needed(before("0.19.6", AMOUNT, _RATE)),
        "decay_lr_rate": AMOUNT,
        "cycle_first_step_size": COUNT,
        "cycle_second_step_size": SIZE,
        "cycle_first_stair_count": SIZE,
        "cycle_second_stair_count": SIZE,
        "decay_step_size": SIZE,
        "cycle_momentum": FLAG,
        "cycle_min_mom": before("0.19.6", _MOMENTUM, replace(_MOMENTUM, kind="rate")),
        "cycle_max_mom": before("0.19.6", _MOMENTUM, replace(_MOMENTUM, kind="rate")),
        "decay_mom_rate": AMOUNT,
        **_LAST,
    },
    "WarmupLR": _WARMUP,
    "WarmupDecayLR": {"total_num_steps": needed(COUNT), **_WARMUP},
    "WarmupCosineLR": {
        "total_num_steps": needed(COUNT),
        "warmup_min_ratio": AMOUNT,
        "warmup_num_steps": _STEPS,
        "cos_min_ratio": AMOUNT,
        "warmup_type": choice("log", "linear"),
        **_LAST,
    },
}
"""DeepSpeed's own schedulers, by their exact names, with their parameters."""
TORCH_SCHEDULERS: dict[str, tuple[str, ...]] = {
    "ConstantLR": (),
    "CosineAnnealingLR": ("T_max",),
    "CosineAnnealingWarmRestarts": ("T_0",),
    "CyclicLR": ("base_lr", "max_lr"),
    "ExponentialLR": ("gamma",),
    "LinearLR": (),
    "MultiStepLR": ("milestones",),
    "OneCycleLR": ("max_lr",),
    "PolynomialLR": (),
    "ReduceLROnPlateau": (),
    "StepLR": ("step_size",),
}
"""Classes of ``torch.optim.lr_scheduler`` whose arguments JSON can hold, and the arguments without a default."""
_COSINE_FIXED = Version(0, 19, 3)
_NO_JSON = ("ChainedScheduler", "LambdaLR", "MultiplicativeLR", "SequentialLR")


def optimizer_fault(name: str, version: Version) -> str:
    """Why DeepSpeed of that release has no such optimizer, or an empty text."""
    known = OPTIMIZERS.get(name.lower())
    if known is not None and known.known_to(version):
        return ""
    if known is not None and known.gone is not None and version >= known.gone:
        return f"{shown(name)} was removed in DeepSpeed {known.gone}: {known.instead}"
    if name in TORCH_OPTIMIZERS or name == "Muon":
        return ""  # torch 2.9 and later have a Muon of their own
    if known is not None:
        return f"{shown(name)} came with DeepSpeed {known.since}; {version} does not support it"
    names = [_SHOWN.get(each, each) for each, field in OPTIMIZERS.items() if field.known_to(version)]
    return _no_such("an optimizer of DeepSpeed or torch.optim", name, [*names, *TORCH_OPTIMIZERS])


def scheduler_fault(name: str) -> str:
    """Why neither DeepSpeed nor torch has such a scheduler, or an empty text."""
    if name in SCHEDULERS or name in TORCH_SCHEDULERS:
        return ""
    if name in _NO_JSON:
        return f"{name} takes functions or other schedulers, which JSON cannot hold; create it in the script"
    return _no_such("a scheduler of DeepSpeed or torch.optim.lr_scheduler", name, [*SCHEDULERS, *TORCH_SCHEDULERS])


def steps_fault(name: str, params: dict[str, Any], version: Version) -> str:
    """Why the ``total_num_steps`` of a scheduler cannot work, or an empty text: WarmupCosineLR divided by zero once."""
    total, warmup = params.get("total_num_steps"), params.get("warmup_num_steps", 1000)
    whole = isinstance(total, int) and isinstance(warmup, int)
    if name == "WarmupCosineLR" and version < _COSINE_FIXED and whole and total == max(2, warmup):
        return f"must not equal warmup_num_steps ({total}): DeepSpeed {version} divides by their difference"
    return ""


def torch_arguments(name: str, params: dict[str, Any]) -> list[str]:
    """The arguments that a scheduler of torch needs and does not get."""
    missing = [key for key in TORCH_SCHEDULERS.get(name, ()) if key not in params]
    if name == "OneCycleLR" and not params.keys() & {"total_steps", "epochs", "steps_per_epoch"}:
        missing.append("total_steps")
    return missing


def optimizer_params(
    name: str, params: dict[str, Any], offloaded: bool, version: Version
) -> tuple[str, dict[str, Field] | None]:
    """The class that the engine builds, in words, and its parameters; ``None`` where they are not known here.

    ``offloaded``: the optimizer runs on the CPU (``offload_optimizer.device`` is cpu or nvme), which is another class.
    """
    kind = name.lower()
    known = OPTIMIZERS.get(kind)
    if known is None or not known.known_to(version) or kind in _MUP:
        return name, None
    kind = "adam" if kind == "adamw" else kind
    title = _SHOWN.get(kind, name)
    if kind == "adam" and FLAG.convert(params.get("torch_adam")):
        return "torch.optim's Adam", _VARIANTS["adam torch"]
    if offloaded and f"{kind} cpu" in _VARIANTS:
        return f"DeepSpeedCPU{title}", _VARIANTS[f"{kind} cpu"]
    return {"adam": "FusedAdam", "lamb": "FusedLamb", "lion": "FusedLion"}.get(kind, title), _VARIANTS[kind]


def elsewhere(name: str, key: str) -> str:
    """What to do with a parameter that the class does not take, where that is known; else an empty text."""
    if key == "max_grad_norm":
        return _GRAD_NORM
    kind = "adam" if name.lower() == "adamw" else name.lower()
    homes = {"torch": "torch_adam: true", "cpu": "zero_optimization.offload_optimizer"}
    for variant, home in homes.items():
        if key in _VARIANTS.get(f"{kind} {variant}", {}):
            return f"only with {home}"
    return "only without offload_optimizer" if key in _VARIANTS.get(kind, {}) else ""


def _no_such(what: str, name: str, known: list[str]) -> str:
    by_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name[:64].lower(), by_letters, n=1)
    text = f"{shown(name)} is not {what}"
    return f"{text}; did you mean {by_letters[near[0]]!r}?" if near else f"{text}; there are {', '.join(known)}"
