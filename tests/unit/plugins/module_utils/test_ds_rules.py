# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keys that are right alone and wrong together. The same cases were seen to be refused by DeepSpeed 0.19.8."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_facts import NEWEST, Version
from ansible_collections.swarmspeed.cluster.plugins.module_utils._ds_rules import conflicts, get, stage, warnings


def zero(at: int, **more: Any) -> dict[str, Any]:
    return {"zero_optimization": {"stage": at, **more}}


ON = {"enabled": True}
NO_FOLDER = "is missing; device nvme needs the folder of a local disk"
DYNAMIC = "must be above 0 with dynamic loss scaling (fp16.loss_scale 0)"


@pytest.mark.parametrize(
    ("config", "errors"),
    [
        ({}, []),
        ({"fp16": ON}, []),
        ({"fp16": ON, "bf16": {"enabled": False}}, []),
        ({"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}, []),
        (
            {"fp16": ON, "bf16": ON},
            ["bf16.enabled: cannot be true together with fp16.enabled; keep one of them"],
        ),
        ({"pipeline": {}, **zero(1)}, []),
        *(
            (
                {"pipeline": {}, **zero(at)},
                [
                    f"zero_optimization.stage: {at} cannot be combined with pipeline;"
                    " use stage 0 or 1, or remove pipeline"
                ],
            )
            for at in (2, 3)
        ),
        (zero(2, compute_grad_norm=False), []),
        (
            zero(3, compute_grad_norm=False),
            ["zero_optimization.compute_grad_norm: false works with stage 1 and 2 only"],
        ),
        ({"gradient_allreduce_op": "mean", **zero(3)}, []),
        ({"gradient_allreduce_op": "sum", **zero(2)}, []),
        (
            {"gradient_allreduce_op": "sum", "compile": {"deepcompile": True}, **zero(3, zenflow={})},
            [
                "gradient_allreduce_op: sum cannot be combined with zero_optimization.stage 3; use mean",
                "gradient_allreduce_op: sum cannot be combined with zero_optimization.zenflow; use mean",
                "gradient_allreduce_op: sum cannot be combined with compile.deepcompile; use mean",
            ],
        ),
        (zero(3, offload_param={"device": "nvme", "nvme_path": "/nvme"}), []),
        (
            zero(3, offload_param={"device": "nvme"}, offload_optimizer={"device": "nvme"}),
            [
                f"zero_optimization.offload_optimizer.nvme_path: {NO_FOLDER}",
                f"zero_optimization.offload_param.nvme_path: {NO_FOLDER}",
            ],
        ),
        (zero(3, offload_optimizer={"device": "cpu", "ratio": 0.3}), []),
        (
            zero(2, offload_optimizer={"device": "cpu", "ratio": 0.3}),
            [
                "zero_optimization.offload_optimizer.ratio: below 1 (a part stays on the GPU) works with stage 3 only",
            ],
        ),
        (
            {"bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}},
            [
                "bf16.bf16_master_weights_and_grads: needs zero_optimization.stage 1, 2 or 3",
                "bf16.bf16_optimizer_states: needs zero_optimization.stage 1, 2 or 3",
            ],
        ),
        (
            {"bf16": {"bf16_optimizer_states": True}, **zero(1)},
            ["bf16.bf16_optimizer_states: needs bf16.bf16_master_weights_and_grads: true"],
        ),
        ({"fp16": {"enabled": False, "loss_scale_window": 0}}, []),
        ({"fp16": {"enabled": True, "loss_scale": 8, "min_loss_scale": 0}}, []),
        (
            {"fp16": {"enabled": True, "loss_scale_window": 0, "min_loss_scale": -1}},
            [f"fp16.loss_scale_window: {DYNAMIC}", f"fp16.min_loss_scale: {DYNAMIC}"],
        ),
        (zero(2, cpu_offload=True), []),
        (
            zero(2, cpu_offload=True, offload_optimizer={"device": "cpu"}),
            [
                "zero_optimization.cpu_offload: is the old form of offload_optimizer, which is set too"
                " (perhaps by the preset); keep offload_optimizer"
            ],
        ),
    ],
)
def test_conflicts(config: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in conflicts(config, NEWEST)] == errors


@pytest.mark.parametrize(
    ("version", "at", "needs"),
    [
        ((0, 17, 6), 0, "1, 2 or 3"),
        ((0, 17, 6), 1, "2 in DeepSpeed 0.17.6"),
        ((0, 17, 6), 2, None),
        ((0, 17, 6), 3, "2 in DeepSpeed 0.17.6"),
        ((0, 18, 9), 0, "1, 2 or 3"),
        ((0, 18, 9), 1, None),
        ((0, 18, 9), 3, None),
    ],
)
def test_fp16_master_weights_by_release(version: tuple[int, int, int], at: int, needs: str | None) -> None:
    found = conflicts({"fp16": {"fp16_master_weights_and_grads": True}, **zero(at)}, Version(*version))
    expected = [f"fp16.fp16_master_weights_and_grads: needs zero_optimization.stage {needs}"] if needs else []
    assert [str(error) for error in found] == expected


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({}, []),
        (zero(3, offload_param={"device": "cpu"}, offload_optimizer={"device": "cpu"}), []),
        (zero(2, offload_param={"device": "none"}), []),
        (
            zero(2, offload_param={"device": "cpu"}),
            ["zero_optimization.offload_param: has no effect with stage 2; parameters are offloaded with stage 3"],
        ),
        (
            zero(0, offload_optimizer={"device": "cpu"}),
            ["zero_optimization.offload_optimizer: has no effect without ZeRO; set stage 1, 2 or 3"],
        ),
        (zero(2, cpu_offload=True), ["zero_optimization.cpu_offload: is deprecated; use offload_optimizer"]),
        (
            zero(2, cpu_offload_use_pin_memory=True),
            [
                "zero_optimization.cpu_offload_use_pin_memory: is ignored by DeepSpeed;"
                " set pin_memory in the offload block"
            ],
        ),
    ],
)
def test_warnings(config: dict[str, Any], found: list[str]) -> None:
    assert [str(warning) for warning in warnings(config)] == found


@pytest.mark.parametrize(
    "config",
    [{"zero_optimization": 3}, {"zero_optimization": {"stage": "x", "offload_param": []}}, {"fp16": None, "bf16": "x"}],
)
def test_wrong_types_are_no_matter_of_rules(config: dict[str, Any]) -> None:
    assert conflicts(config, NEWEST) == []
    assert warnings(config) == []
    assert stage(config) == 0
    assert get(config, "zero_optimization.offload_param.device") is None
