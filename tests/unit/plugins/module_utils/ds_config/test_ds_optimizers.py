# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Optimizers and schedulers: names, and parameters of the class that a configuration leads to."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import NEWEST, parse_version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.optimizers import (
    OPTIMIZERS,
    SCHEDULERS,
    TORCH_OPTIMIZERS,
    TORCH_SCHEDULERS,
    torch_arguments,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import Checker

OFFLOAD = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}


def errors(config: dict[str, Any], version: str = str(NEWEST), integration: str = "deepspeed") -> list[str]:
    release = parse_version(version)
    assert release is not None
    checker = Checker(release, integration)
    checker.mapping(config)
    return [str(error) for error in checker.errors]


def optimizer(kind: Any, **params: Any) -> dict[str, Any]:
    return {"optimizer": {"type": kind, "params": params}}


def scheduler(kind: Any, **params: Any) -> dict[str, Any]:
    return {"scheduler": {"type": kind, "params": params}}


@pytest.mark.parametrize("name", ["Adam", "adamw", "ADAGRAD", "Lamb", "Lion", "Muon", "MuAdam", *TORCH_OPTIMIZERS])
def test_known_optimizers(name: str) -> None:
    assert errors(optimizer(name, lr=1e-3)) == []


@pytest.mark.parametrize(
    ("name", "version", "text"),
    [
        ("AdamX", "0.19.8", "'AdamX' is not an optimizer of DeepSpeed or torch.optim; did you mean 'Adamax'?"),
        ("sgd", "0.19.8", "'sgd' is not an optimizer of DeepSpeed or torch.optim; did you mean 'SGD'?"),
        (
            "OneBitAdam",
            "0.19.7",
            "'OneBitAdam' was removed in DeepSpeed 0.19.7: take AdamW; 1-bit optimizers left DeepSpeed",
        ),
        ("muon", "0.16.9", "'muon' came with DeepSpeed 0.17.6; 0.16.9 does not support it"),
    ],
)
def test_unknown_optimizers(name: str, version: str, text: str) -> None:
    assert errors(optimizer(name), version) == [f"optimizer.type: {text}"]


def test_one_bit_optimizers_while_they_were_there() -> None:
    assert errors(optimizer("OneBitAdam", lr=1e-3, freeze_step=400, cuda_aware=False), "0.19.6") == []
    assert errors(optimizer("ZeroOneAdam", var_freeze_step=10), "0.15.4") == []
    assert errors(optimizer("OneBitLamb", coeff_beta=0.9), "0.15.4") == []


def test_an_optimizer_like_nothing_is_answered_with_the_list() -> None:
    (error,) = errors(optimizer("zzzzz"))
    assert error.startswith("optimizer.type: 'zzzzz' is not an optimizer of DeepSpeed or torch.optim; there are Adam, ")
    assert len(error) <= 400


@pytest.mark.parametrize(
    ("config", "version"),
    [
        (optimizer("AdamW", lr="1e-5", betas=[0.9, 0.95], eps=1e-8, weight_decay=0.1), "0.15.4"),
        (optimizer("Adam", torch_adam=True, fused=True, amsgrad=True), "0.19.8"),
        (optimizer("Adam", torch_adam="true", foreach=False), "0.15.4"),
        (optimizer("Adam", adam_w_mode=False, bias_correction=True, set_grad_none=True), "0.15.4"),
        ({**optimizer("Adam", fp32_optimizer_states=False), **OFFLOAD}, "0.15.4"),
        (optimizer("Adam", fp32_optimizer_states=False), "0.19.1"),
        ({**optimizer("Lion", fp32_optimizer_states=False), **OFFLOAD}, "0.15.4"),
        ({**optimizer("Lamb", max_coeff=10), **OFFLOAD}, "0.15.4"),
        (optimizer("SGD", anything={"lr": "auto_"}), "0.19.8"),
        (optimizer("Muon", momentum=0.9, muon_lr=0.02, adam_lr=1e-4, ns_method="standard"), "0.19.0"),
        ({"optimizer": {"type": "AdamW"}}, "0.19.8"),
        ({**optimizer("Adam", fp32_optimizer_states=True), "zero_optimization": {"cpu_offload": True}}, "0.15.4"),
    ],
)
def test_parameters_that_the_class_takes(config: dict[str, Any], version: str) -> None:
    assert errors(config, version) == []


@pytest.mark.parametrize(
    ("config", "version", "error"),
    [
        (
            optimizer("AdamW", max_grad_norm=1),
            "0.19.8",
            "optimizer.params.max_grad_norm: is not a parameter of FusedAdam: set gradient_clipping at the top level",
        ),
        (
            optimizer("SGD", max_grad_norm=1),
            "0.19.8",
            "optimizer.params.max_grad_norm: is not a parameter of SGD: set gradient_clipping at the top level",
        ),
        (
            optimizer("AdamW", fused=True),
            "0.19.8",
            "optimizer.params.fused: is not a parameter of FusedAdam: only with torch_adam: true",
        ),
        (
            {**optimizer("AdamW", set_grad_none=True), **OFFLOAD},
            "0.19.8",
            "optimizer.params.set_grad_none: is not a parameter of DeepSpeedCPUAdam: only without offload_optimizer",
        ),
        (
            optimizer("Lion", fp32_optimizer_states=True),
            "0.19.8",
            "optimizer.params.fp32_optimizer_states: is not a parameter of FusedLion:"
            " only with zero_optimization.offload_optimizer",
        ),
        (
            optimizer("Adam", fp32_optimizer_states=True),
            "0.19.0",
            "optimizer.params.fp32_optimizer_states: came with DeepSpeed 0.19.1; 0.19.0 does not support it",
        ),
        (
            optimizer("AdamW", learning_rate=1e-3),
            "0.19.8",
            "optimizer.params.learning_rate: is not a parameter of FusedAdam, which has lr, betas, eps, weight_decay,"
            " amsgrad, bias_correction, set_grad_none, torch_adam, adam_w_mode, fp32_optimizer_states",
        ),
        (
            optimizer("AdamW", weigth_decay=0),
            "0.19.8",
            "optimizer.params.weigth_decay: is not a parameter of FusedAdam; did you mean 'weight_decay'?",
        ),
        (
            optimizer("Adam", amsgrad=True),
            "0.19.8",
            "optimizer.params.amsgrad: must be false; the class has the parameter and refuses true, not true",
        ),
        (
            optimizer("Adam", betas=[0.9]),
            "0.19.8",
            "optimizer.params.betas: must be a list of 2 numbers of at least 0 and below 1, not [0.9]",
        ),
        (
            optimizer("Adam", betas=[0.9, 1]),
            "0.19.8",
            "optimizer.params.betas: must be a list of 2 numbers of at least 0 and below 1, not [0.9, 1]",
        ),
        (optimizer("Adam", lr=-1), "0.19.8", "optimizer.params.lr: must be a number of at least 0, not -1"),
        (
            optimizer("Muon", ns_method="gram"),
            "0.18.9",
            "optimizer.params.ns_method: came with DeepSpeed 0.19.0; 0.18.9 does not support it",
        ),
    ],
)
def test_parameters_that_the_class_does_not_take(config: dict[str, Any], version: str, error: str) -> None:
    assert errors(config, version) == [error]


@pytest.mark.parametrize("name", [*SCHEDULERS, *TORCH_SCHEDULERS])
def test_known_schedulers(name: str) -> None:
    params = {key: 5 for key, field in SCHEDULERS.get(name, {}).items() if field.needed}
    params |= dict.fromkeys(torch_arguments(name, {}), 5)
    assert errors(scheduler(name, **params)) == []


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            scheduler("warmuplr"),
            "scheduler.type: 'warmuplr' is not a scheduler of DeepSpeed or torch.optim.lr_scheduler;"
            " did you mean 'WarmupLR'?",
        ),
        (
            scheduler("LambdaLR"),
            "scheduler.type: LambdaLR takes functions or other schedulers, which JSON cannot hold;"
            " create it in the script",
        ),
        (
            scheduler("WarmupDecayLR", warmup_num_steps=5),
            "scheduler.params.total_num_steps: is missing; DeepSpeed does not work without it",
        ),
        (
            scheduler("OneCycle", cycle_min_lr=0.1),
            "scheduler.params.cycle_max_lr: is missing; DeepSpeed does not work without it",
        ),
        (
            scheduler("CosineAnnealingLR", eta_min=0),
            "scheduler.params.T_max: is missing; CosineAnnealingLR does not work without it",
        ),
        (
            scheduler("OneCycleLR", max_lr=0.1),
            "scheduler.params.total_steps: is missing; OneCycleLR does not work without it",
        ),
        (
            scheduler("WarmupLR", warmup_num_steps=0),
            "scheduler.params.warmup_num_steps: must be a whole number above 0, not 0",
        ),
        (
            scheduler("WarmupLR", warmup_type="cosine"),
            "scheduler.params.warmup_type: must be one of log, linear, not 'cosine'",
        ),
        (
            scheduler("WarmupCosineLR", total_num_steps=9, warmup_max_lr=1),
            "scheduler.params.warmup_max_lr: is not a parameter of WarmupCosineLR; did you mean 'warmup_min_ratio'?",
        ),
        (
            scheduler("WarmupLR", warmup_min_lr=[]),
            "scheduler.params.warmup_min_lr: must be a number or a list of numbers of at least 0, not []",
        ),
    ],
)
def test_what_schedulers_do_not_take(config: dict[str, Any], error: str) -> None:
    assert errors(config) == [error]


def test_schedulers_of_older_releases() -> None:
    assert errors(scheduler("WarmupLR", warmup_num_steps=0), "0.19.2") == []
    cycle = scheduler("OneCycle", cycle_min_lr=[0.1], cycle_max_lr=0.2)
    assert errors(cycle, "0.19.6") == []
    assert errors(cycle, "0.19.5") == ["scheduler.params.cycle_min_lr: must be a number of at least 0, not [0.1]"]
    cosine = scheduler("WarmupCosineLR", total_num_steps=5, warmup_num_steps=5)
    assert errors(cosine, "0.19.3") == []
    assert errors(cosine, "0.19.2") == [
        "scheduler.params.total_num_steps: must not equal warmup_num_steps (5):"
        " DeepSpeed 0.19.2 divides by their difference"
    ]


def test_auto_in_parameters() -> None:
    config = {**optimizer("AdamW", lr="auto", betas="auto"), **scheduler("WarmupDecayLR", total_num_steps="auto")}
    assert errors(config, integration="huggingface") == []
    assert errors(config, integration="accelerate") == [
        'optimizer.params.betas: "auto" is not filled in here by integration accelerate: give a value'
    ]
    assert errors(optimizer("SGD", lr="auto"), integration="huggingface") == []
    assert len(errors(config)) == 3
    assert errors({"optimizer": {"type": "auto"}}, integration="huggingface") == [
        'optimizer.type: "auto" is not filled in here by integration huggingface: give a value'
    ]


def test_names_are_there_once() -> None:
    assert not {name.lower() for name in TORCH_OPTIMIZERS} & set(OPTIMIZERS)
    assert not set(SCHEDULERS) & set(TORCH_SCHEDULERS)
