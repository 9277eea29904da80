# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Optimizer, scheduler, precision, stage and offload together: what ``deepspeed.initialize`` refuses, we refuse.

Whole configurations, judged as the module does. The engine runs on a CPU, with stand-ins for compiled operators
(tests/oracle/engine.py); what is not decided without a GPU is skipped, with the reason.
"""

from __future__ import annotations

import copy
import itertools
import random
import re
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import Request, build
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import Version, parse_version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.optimizers import (
    SCHEDULERS,
    TORCH_OPTIMIZERS,
    TORCH_SCHEDULERS,
)
from deepspeed_oracle import Oracle

from tests.effort import examples

Z = "zero_optimization"
RATE = {"lr": 0.001}
OPTIMIZER: dict[str, dict[str, Any] | None] = {
    "adamw": {"type": "AdamW", "params": RATE},
    "torch": {"type": "Adam", "params": {**RATE, "torch_adam": True}},
    **{name: {"type": name, "params": RATE} for name in ("Adagrad", "Lion", "Lamb", *TORCH_OPTIMIZERS)},
    "the script's": None,
}
PARAMS: dict[str, dict[str, Any]] = {
    "OneCycle": {"cycle_min_lr": 0.0001, "cycle_max_lr": 0.001},
    "WarmupDecayLR": {"total_num_steps": 10},
    "WarmupCosineLR": {"total_num_steps": 10},
    "CosineAnnealingLR": {"T_max": 10},
    "CosineAnnealingWarmRestarts": {"T_0": 5},
    "CyclicLR": {"base_lr": 0.0001, "max_lr": 0.001},
    "ExponentialLR": {"gamma": 0.9},
    "MultiStepLR": {"milestones": [3]},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 10},
    "StepLR": {"step_size": 3},
}
SCHEDULER = (None, *SCHEDULERS, *TORCH_SCHEDULERS)
PRECISION: dict[str, dict[str, Any]] = {
    "fp32": {},
    "fp16": {"fp16": {"enabled": True}},
    "bf16": {"bf16": {"enabled": True}},
    "bf16 and fp32": {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}},
}
NVME = {"device": "nvme", "nvme_path": "/tmp/oracle-nvme"}
PLACE: dict[str, dict[str, Any]] = {
    **{f"stage {stage}": {Z: {"stage": stage}} for stage in range(4)},
    **{f"stage {stage}, cpu": {Z: {"stage": stage, "offload_optimizer": {"device": "cpu"}}} for stage in (1, 2, 3)},
    "pipeline": {Z: {"stage": 1}, "pipeline": {}},
    "nvme": {Z: {"stage": 3, "offload_optimizer": NVME}},
}
EACH = 200
"""Combinations for each place, of a thousand or so."""

OPERATORS = "offload to NVMe uses the compiled operators async_io and, in newer releases, pin_memory"
STRICTER = ((r"^optimizer\.type: (LBFGS|SparseAdam) ", "the engine may start, and its first step fails"),)
"""Our errors where the engine starts: pattern, reason."""


def release_of(oracle: Oracle) -> Version:
    version = parse_version(oracle.release)
    assert version is not None
    return version


def made(optimizer: str, scheduler: str | None, precision: str, place: str) -> dict[str, Any]:
    """The configuration of one combination."""
    config: dict[str, Any] = {"train_micro_batch_size_per_gpu": 1, **PRECISION[precision], **PLACE[place]}
    config["zero_allow_untested_optimizer"] = True
    if OPTIMIZER[optimizer] is None:
        config["zero_force_ds_cpu_optimizer"] = False
    else:
        config["optimizer"] = OPTIMIZER[optimizer]
    if scheduler:
        config["scheduler"] = {"type": scheduler, "params": PARAMS.get(scheduler, {})}
    return copy.deepcopy(config)


def ours(config: dict[str, Any], oracle: Oracle) -> list[str]:
    """What we say against it, on one rank."""
    plan = build(Request(config=copy.deepcopy(config), deepspeed_version=oracle.release, world_size=1))
    return [str(problem) for problem in plan.errors]


def theirs(config: dict[str, Any], oracle: Oracle) -> str:
    """What the engine says against it."""
    return oracle.refusal("engine", config=config, client_optimizer="" if "optimizer" in config else "AdamW")


def difference(config: dict[str, Any], reported: str, refused: list[str]) -> str:
    """Where the two differ, in words, or an empty text."""
    if reported and not refused:
        return f"missed: {reported[:200]!r} of {config}"
    extra = [text for text in refused if not any(re.search(pattern, text) for pattern, dummy in STRICTER)]
    return f"refused without reason: {extra} of {config}" if extra and not reported else ""


@pytest.mark.parametrize("place", PLACE)
def test_what_initialize_refuses(oracle: Oracle, place: str) -> None:
    every = list(itertools.product(OPTIMIZER, SCHEDULER, PRECISION))
    chance = random.Random(f"{oracle.release} {place}")
    wrong, decided = [], 0
    for optimizer, scheduler, precision in chance.sample(every, examples(EACH)):
        config = made(optimizer, scheduler, precision, place)
        refused, reported = ours(config, oracle), theirs(config, oracle)
        if not reported.startswith("NeedsOperatorError"):
            decided += 1
            wrong.append(difference(config, reported, refused))
    wrong = [text for text in wrong if text]
    assert not wrong, f"{len(wrong)} of {decided}:\n" + "\n".join(wrong[:10])
    if not decided:
        assert place == "nvme"
        pytest.skip(f"needs a GPU: {OPERATORS}")


@pytest.mark.parametrize("place", [name for name in PLACE if name != "nvme"])
@pytest.mark.parametrize("scheduler", ["CosineAnnealingLR", "WarmupCosineLR"])
def test_a_scheduler_of_torch_where_the_optimizer_is_wrapped(oracle: Oracle, place: str, scheduler: str) -> None:
    for precision in ("fp32", "fp16"):
        config = made("adamw", scheduler, precision, place)
        reported, refused = theirs(config, oracle), ours(config, oracle)
        expected = scheduler in TORCH_SCHEDULERS and (place != "stage 0" or precision != "fp32")
        assert bool(re.search(r"^TypeError: .* is not an Optimizer", reported)) is expected, (precision, reported)
        assert [text.partition(":")[0] for text in refused] == (["scheduler.type"] if expected else [])


@pytest.mark.parametrize("place", [name for name in PLACE if name not in ("nvme", "pipeline")])
def test_the_remedy_works(oracle: Oracle, place: str) -> None:
    """The scheduler of torch as a callable of the script, with an optimizer that needs no compiled operator."""
    config = made("torch", "CosineAnnealingLR", "bf16", place)
    scheduler = config.pop("scheduler")
    assert oracle.refusal("engine", config=config, client_scheduler=scheduler, stepped=True) == ""
    assert ours(config, oracle) == []


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("CosineAnnealingLR", {}),
        ("OneCycleLR", {"max_lr": 0.1}),
        ("OneCycleLR", {"max_lr": 0.1, "epochs": 2, "steps_per_epoch": 5}),
        ("CyclicLR", {"base_lr": 0.1}),
        ("StepLR", {"step_size": 3}),
        ("StepLR", {"step_size": 3, "_comment": "every three"}),
    ],
)
def test_arguments_of_a_scheduler_of_torch(oracle: Oracle, name: str, params: dict[str, Any]) -> None:
    config = {**made("adamw", None, "fp32", "stage 0"), "scheduler": {"type": name, "params": params}}
    assert bool(ours(config, oracle)) is bool(theirs(config, oracle))


@pytest.mark.parametrize("name", ["LBFGS", "SparseAdam", "RAdam"])
@pytest.mark.parametrize("place", ["stage 0", "stage 1", "stage 2", "stage 3"])
def test_optimizers_whose_first_step_fails(oracle: Oracle, place: str, name: str) -> None:
    config = made(name, None, "fp32", place)
    against = oracle.refusal("engine", config=config, stepped=True)
    assert bool(against) is (name != "RAdam"), against
    # Without ZeRO a model may have nothing but sparse gradients.
    assert bool(ours(config, oracle)) is (name == "LBFGS" or (name == "SparseAdam" and place != "stage 0"))


REPORTED = {
    "a torch scheduler with stage 2, and comments": (
        {
            "train_batch_size": 4,
            "optimizer": {"type": "AdamW", "params": {"lr": 5.0e-4, "weight_decay": 1.0e-5}},
            "_comment": "the scheduler",
            "scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 10, "eta_min": 5e-6}},
            "fp16": {"enabled": True},
            "_comment2": "zero2",
            Z: {"stage": 2},
        },
        True,
    ),
    "the same without the scheduler": (
        {
            "train_batch_size": 4,
            "optimizer": {"type": "AdamW", "params": {"lr": 5.0e-4, "weight_decay": 1.0e-5}},
            "//": "the optimizer",
            "fp16": {"enabled": True},
            Z: {"stage": 2},
        },
        False,
    ),
    "activation checkpointing as Megatron has it": (
        {
            "train_batch_size": 8,
            Z: {"stage": 2},
            "optimizer": {"type": "Adam", "params": {"lr": 0.00015}},
            "fp16": {"enabled": True, "loss_scale": 0},
            "activation_checkpointing": {"partition_activations": True, "contiguous_memory_optimization": True},
        },
        False,
    ),
}
"""Configurations after public reports, and whether ``deepspeed.initialize`` refuses them."""


@pytest.mark.parametrize("name", REPORTED)
def test_configurations_of_reports(oracle: Oracle, name: str) -> None:
    config, refused = REPORTED[name]
    reported = theirs(config, oracle)
    assert bool(reported) is refused, reported
    assert bool(ours(config, oracle)) is refused


@pytest.mark.parametrize("period", [0, 1, -1])
def test_quantization_period(oracle: Oracle, period: int) -> None:
    """DeepSpeed's scripts of compression have 0, and the engine starts with it."""
    if release_of(oracle) >= (0, 19, 8):
        pytest.skip("compression_training left DeepSpeed in 0.19.8")
    group = {"params": {"start_bits": 8, "target_bits": 8, "quantization_period": period}, "modules": ["0"]}
    shared = {"enabled": True, "schedule_offset": 0, "quantize_groups": 1, "quantize_weight_in_forward": True}
    weights = {"shared_parameters": shared, "different_groups": {"wq1": group}}
    config = {**made("adamw", None, "fp32", "stage 0"), "compression_training": {"weight_quantization": weights}}
    assert theirs(config, oracle) == ""
    assert bool(ours(config, oracle)) is (period < 0)
