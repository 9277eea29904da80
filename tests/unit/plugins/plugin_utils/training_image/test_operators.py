# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The operators that are compiled into the image follow from the ds_config."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.training_image.operators import needed_operators

ADAMW = {"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}
TORCH_ADAM = {"optimizer": {"type": "AdamW", "params": {"torch_adam": True}}}


def offloaded(device: str) -> dict[str, Any]:
    return {"zero_optimization": {"offload_optimizer": {"device": device}}}


@pytest.mark.parametrize(
    ("accelerator", "preset", "config", "expected"),
    [
        ("cuda", "zero2", ADAMW, ["FUSED_ADAM"]),
        ("cuda", None, ADAMW, ["FUSED_ADAM"]),
        ("cuda", "zero2", {"optimizer": {"type": "Adam"}}, ["FUSED_ADAM"]),
        ("cuda", "zero2", {}, ["FUSED_ADAM"]),
        ("cuda", "zero2_offload", ADAMW, ["CPU_ADAM"]),
        ("cuda", "zero2_offload", {}, ["CPU_ADAM", "FUSED_ADAM"]),
        ("cuda", "zero3_offload_optimizer", ADAMW, ["CPU_ADAM"]),
        ("cuda", "superoffload", ADAMW, ["CPU_ADAM"]),
        ("cuda", "zenflow", ADAMW, ["CPU_ADAM"]),
        ("cuda", "auto", ADAMW, ["CPU_ADAM", "FUSED_ADAM"]),
        ("cuda", "auto", {**ADAMW, **offloaded("none")}, ["FUSED_ADAM"]),
        ("cuda", "zero2", {**ADAMW, **offloaded("cpu")}, ["CPU_ADAM"]),
        ("cuda", "zero2_offload", {**ADAMW, **offloaded("none")}, ["FUSED_ADAM"]),
        ("cuda", "zero3", {**ADAMW, **offloaded("nvme")}, ["AIO", "CPU_ADAM", "PIN_MEMORY"]),
        ("cuda", "zero3_infinity", ADAMW, ["AIO", "CPU_ADAM", "PIN_MEMORY"]),
        (
            "cuda",
            "zero3",
            {**ADAMW, "zero_optimization": {"offload_param": {"device": "nvme"}}},
            ["AIO", "FUSED_ADAM", "PIN_MEMORY"],
        ),
        ("cuda", "zero2", TORCH_ADAM, []),
        ("cuda", "zero2", {"optimizer": {"type": "SGD"}}, []),
        ("cuda", "zero2", {"optimizer": {"type": "Lion"}}, ["FUSED_LION"]),
        ("cuda", "zero2_offload", {"optimizer": {"type": "Lion"}}, ["CPU_LION"]),
        ("cuda", "zero2", {"optimizer": {"type": "Adagrad"}}, []),
        ("cuda", "zero2_offload", {"optimizer": {"type": "Adagrad"}}, ["CPU_ADAGRAD"]),
        ("cuda", "zero2", {"optimizer": {"type": "Lamb"}}, ["FUSED_LAMB"]),
        ("cuda", "zero2", {"optimizer": {"type": "Muon"}}, ["FUSED_ADAM"]),
        (
            "cuda",
            "zero3",
            {**ADAMW, "zero_optimization": {"zero_quantized_weights": True}},
            ["FUSED_ADAM", "QUANTIZER"],
        ),
        ("cpu", "zero2", TORCH_ADAM, ["SHM_COMM"]),
        ("cpu", "zero2", ADAMW, ["FUSED_ADAM", "SHM_COMM"]),
        ("cpu", "zero2", {"optimizer": {"type": "Lamb"}}, ["SHM_COMM"]),
        ("cpu", "zero2", {"optimizer": "AdamW", "zero_optimization": []}, ["FUSED_ADAM", "SHM_COMM"]),
    ],
)
def test_operators(accelerator: str, preset: str | None, config: dict[str, Any], expected: list[str]) -> None:
    assert needed_operators(accelerator, preset, config) == expected


@pytest.mark.parametrize(
    ("accelerator", "preset", "config", "expected"),
    [
        ("cuda", "zero2", {}, []),
        ("cuda", "zero2", ADAMW, ["FUSED_ADAM"]),
        ("cuda", "zero3_infinity", {}, ["AIO", "PIN_MEMORY"]),
        ("cpu", None, {}, ["SHM_COMM"]),
    ],
)
def test_an_optimizer_of_the_script_can_be_left_out(
    accelerator: str, preset: str | None, config: dict[str, Any], expected: list[str]
) -> None:
    assert needed_operators(accelerator, preset, config, named_only=True) == expected
