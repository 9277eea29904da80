# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Keys that are right alone and wrong together: texts, releases, and what is no conflict.

That DeepSpeed agrees is shown by tests/differential/test_diff_engine.py, which starts its engine with such cases.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import KNOWN_VERSIONS, NEWEST, Version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.presets import available, preset
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.rules import conflicts, get, stage
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.view import View

Z = "zero_optimization"
ON = {"enabled": True}
CPU = {"device": "cpu"}
NVME = {"device": "nvme"}
ADAM = {"type": "AdamW", "params": {"lr": 0.001}}
TORCH_ADAM = {"type": "AdamW", "params": {"lr": 0.001, "torch_adam": True}}
NO_FOLDER = "is missing; device nvme needs the folder of a local disk"
DYNAMIC = "must be above 0 with dynamic loss scaling (fp16.loss_scale 0)"
OWN_ADAM = "needs DeepSpeed's own Adam on the CPU: Adam or AdamW without torch_adam, no zenflow"
MASTER16, MASTER_B = "fp16.fp16_master_weights_and_grads", "bf16.bf16_master_weights_and_grads"
STATES_B = "bf16.bf16_optimizer_states"
SCATTER = "only if zero_optimization.reduce_scatter is false"
CONTIGUOUS = "activation_checkpointing.contiguous_memory_optimization"


def zero(at: int, **more: Any) -> dict[str, Any]:
    return {Z: {"stage": at, **more}}


def master16(**more: Any) -> dict[str, Any]:
    return {"fp16": {"enabled": True, "fp16_master_weights_and_grads": True, **more}}


def named(name: str, at: int, **more: Any) -> dict[str, Any]:
    return {"optimizer": {"type": name, "params": {"lr": 0.001}}, **zero(at, **more)}


def zenflow(at: int, flow: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"optimizer": ADAM, **zero(at, zenflow=flow, **more)}


def accumulating(accumulated: str, **more: Any) -> dict[str, Any]:
    return {"data_types": {"grad_accum_dtype": accumulated}, **more}


def compiled(at: int, *on: str, **more: Any) -> dict[str, Any]:
    return {"compile": {"deepcompile": True, **dict.fromkeys(on, True)}, **zero(at, **more)}


def scheduled(name: str, at: int, **params: Any) -> dict[str, Any]:
    return {"optimizer": ADAM, **zero(at), "scheduler": {"type": name, "params": params}}


def wrapped(by: str) -> str:
    return (
        "scheduler.type: CosineAnnealingLR is torch's, and takes no optimizer that DeepSpeed wraps, as it does with"
        f" {by}; write WarmupCosineLR, which is DeepSpeed's, with its parameters, or remove scheduler and give"
        " deepspeed.initialize lr_scheduler=lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer,"
        " T_max=10)"
    )


def untested(name: str, version: str = "0.19.8") -> str:
    text = f"must be true: {name} is not among the optimizers that DeepSpeed {version} has tested with ZeRO"
    return f"zero_allow_untested_optimizer: {text}"


@pytest.mark.parametrize(
    ("config", "errors"),
    [
        ({}, []),
        # reading: precision
        ({"fp16": ON}, []),
        ({"fp16": ON, "bf16": {"enabled": False}}, []),
        ({"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}, []),
        ({"fp16": ON, "bf16": ON}, ["bf16.enabled: cannot be true together with fp16.enabled; keep one of them"]),
        (
            {"bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}},
            [f"{MASTER_B}: needs {Z}.stage 1, 2 or 3", f"{STATES_B}: needs {Z}.stage 1, 2 or 3"],
        ),
        ({"bf16": {"bf16_optimizer_states": True}, **zero(1)}, [f"{STATES_B}: needs {MASTER_B}: true"]),
        ({"fp16": {"enabled": False, "loss_scale_window": 0}}, []),
        ({"fp16": {"enabled": "auto", "loss_scale_window": 0}}, []),
        ({"fp16": {"enabled": True, "loss_scale": 8, "min_loss_scale": 0}}, []),
        (
            {"fp16": {"enabled": True, "loss_scale_window": 0, "min_loss_scale": -1}},
            [f"fp16.loss_scale_window: {DYNAMIC}", f"fp16.min_loss_scale: {DYNAMIC}"],
        ),
        # reading: ZeRO
        ({**zero(2, compute_grad_norm=False), "gradient_clipping": 0}, []),
        ({**zero(2, compute_grad_norm=False), "gradient_clipping": "auto"}, []),
        (zero(3, compute_grad_norm=False), [f"{Z}.compute_grad_norm: false works with stage 1 and 2 only"]),
        ({"gradient_allreduce_op": "mean", **zero(3)}, []),
        ({"gradient_allreduce_op": "sum", **zero(2)}, []),
        (
            {"gradient_allreduce_op": "sum", "compile": {"deepcompile": True}, **zenflow(3, {})},
            [
                f"gradient_allreduce_op: sum cannot be combined with {Z}.stage 3; use mean",
                f"gradient_allreduce_op: sum cannot be combined with {Z}.zenflow; use mean",
                "gradient_allreduce_op: sum cannot be combined with compile.deepcompile; use mean",
            ],
        ),
        (zero(3, offload_optimizer={"device": "cpu", "ratio": 0.3}), []),
        (
            zero(2, offload_optimizer={"device": "cpu", "ratio": 0.3}),
            [f"{Z}.offload_optimizer.ratio: below 1 (a part stays on the GPU) works with stage 3 only"],
        ),
        (zero(2, cpu_offload=True), []),
        (
            zero(2, cpu_offload=True, offload_optimizer=CPU),
            [
                f"{Z}.cpu_offload: is the old form of offload_optimizer, which is also set (perhaps by the preset); "
                "keep offload_optimizer"
            ],
        ),
        # engine: precision
        ({"data_types": {"param_dtype": "bfloat16"}, "bf16": ON}, []),
        ({"data_types": {"param_dtype": "bf16"}, "bf16": {"enabled": "auto"}}, []),
        (
            {"data_types": {"param_dtype": "half"}, "bf16": ON},
            ["data_types.param_dtype: is fp16, but the precision is bf16; enable the block fp16, or remove the key"],
        ),
        (
            {"data_types": {"param_dtype": "fp32"}, "fp16": ON},
            ["data_types.param_dtype: is fp32, but fp16.enabled is true; remove one of the two"],
        ),
        (accumulating("fp32", **zero(1), fp16=ON), []),
        (accumulating("fp32", bf16={"enabled": "auto"}), []),
        (
            accumulating("fp32", fp16=ON),
            [
                "data_types.grad_accum_dtype: fp32 does not work with precision fp16 without ZeRO in DeepSpeed 0.19.8;"
                f" set {Z}.stage 1, or remove the key"
            ],
        ),
        ({"torch_autocast": ON, "bf16": ON}, []),
        (
            {"torch_autocast": ON, **zero(3, zero_quantized_weights=True)},
            [f"{Z}.zero_quantized_weights: cannot be combined with torch_autocast.enabled"],
        ),
        # engine: pipeline and accumulation
        ({"pipeline": {}, **zero(1)}, []),
        *(
            (
                {"pipeline": {}, **zero(at)},
                [f"{Z}.stage: {at} cannot be combined with pipeline; use stage 0 or 1, or remove pipeline"],
            )
            for at in (2, 3)
        ),
        ({"managed_gradient_accumulation": False, **zero(2, overlap_comm=True)}, []),
        ({"managed_gradient_accumulation": False, **zero(3)}, []),
        (
            {"managed_gradient_accumulation": False, "pipeline": {}, **compiled(1, overlap_comm=True)},
            [
                "managed_gradient_accumulation: false cannot be combined with pipeline",
                "managed_gradient_accumulation: false cannot be combined with compile.deepcompile",
                f"managed_gradient_accumulation: false cannot be combined with {Z}.overlap_comm with stage 1",
            ],
        ),
        # engine: reduction
        ({"prescale_gradients": True, "gradient_predivide_factor": 2, **zero(1)}, []),
        ({"prescale_gradients": True, **zero(3, reduce_scatter=False)}, []),
        ({"prescale_gradients": True, "gradient_allreduce_op": "sum", **zero(2)}, []),
        (
            {"prescale_gradients": True, "gradient_predivide_factor": 2, **zero(2)},
            [
                f"gradient_predivide_factor: other than 1 works with {Z}.stage 2 {SCATTER}",
                f"prescale_gradients: true works with {Z}.stage 2 {SCATTER}",
            ],
        ),
        (zero(3, zero_quantized_gradients=True), []),
        (
            zero(3, zero_quantized_gradients=True, reduce_scatter=False),
            [f"{Z}.zero_quantized_gradients: needs {Z}.reduce_scatter: true with stage 3"],
        ),
        (zero(3, allgather_bucket_size=7), []),
        (
            zero(2, allgather_bucket_size=7),
            [f"{Z}.allgather_bucket_size: must be even with stage 1 and 2, not 7"],
        ),
        (zero(0, legacy_stage1=True), []),
        (zero(1, legacy_stage1=True), [f"{Z}.legacy_stage1: left DeepSpeed long ago; remove the key"]),
        # engine: norm
        (
            zero(1, compute_grad_norm=False),
            [
                f"{Z}.compute_grad_norm: false needs gradient_clipping: 0 (1 is the default): clipping needs the norm",
            ],
        ),
        (
            {"gradient_clipping": 0.5, **zenflow(2, {}, compute_grad_norm=False, offload_optimizer=CPU)},
            [
                f"{Z}.compute_grad_norm: false needs gradient_clipping: 0: clipping needs the norm",
                f"{Z}.compute_grad_norm: false cannot be combined with {Z}.zenflow",
                f"{Z}.compute_grad_norm: false cannot be combined with {Z}.offload_optimizer",
            ],
        ),
        (
            accumulating("fp32", bf16=ON, gradient_clipping=0, **zero(1, compute_grad_norm=False)),
            [
                f"{Z}.compute_grad_norm: false does not work with stage 1, bf16 and data_types.grad_accum_dtype fp32",
            ],
        ),
        # engine: disk, sizes, activations
        (zero(3, offload_param={**NVME, "nvme_path": "/nvme"}), []),
        (zero(2, offload_optimizer=NVME), []),
        (
            zero(3, offload_param=NVME, offload_optimizer=NVME),
            [f"{Z}.offload_optimizer.nvme_path: {NO_FOLDER}", f"{Z}.offload_param.nvme_path: {NO_FOLDER}"],
        ),
        ({"tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 2}}, **zero(3)}, []),
        (
            {"tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}}},
            [
                "tensor_parallel.tp.tp_size: is 4, but tensor_parallel.autotp_size is 2;"
                " keep tensor_parallel.autotp_size"
            ],
        ),
        (
            {"tensor_parallel": {"autotp_size": 2}, "pipeline": {}},
            ["tensor_parallel.autotp_size: above 1 cannot be combined with pipeline"],
        ),
        (
            {"activation_checkpointing": {"contiguous_memory_optimization": True}},
            [f"{CONTIGUOUS}: needs activation_checkpointing.partition_activations: true"],
        ),
        ({"activation_checkpointing": {"contiguous_memory_optimization": True, "partition_activations": True}}, []),
        # scheduler: torch's, and an optimizer that is not
        *((scheduled("CosineAnnealingLR", at, T_max=10), [wrapped(f"{Z}.stage {at}")]) for at in (1, 2, 3)),
        ({**scheduled("CosineAnnealingLR", 0, T_max=10), "fp16": ON}, [wrapped("fp16.enabled")]),
        ({**scheduled("CosineAnnealingLR", 0, T_max=10), "bf16": ON}, [wrapped("bf16.enabled")]),
        ({**scheduled("CosineAnnealingLR", 0, T_max=10), "bf16": {"enabled": "auto"}}, []),
        (scheduled("CosineAnnealingLR", 0, T_max=10), []),
        ({**scheduled("WarmupCosineLR", 3, total_num_steps=10), "bf16": ON}, []),
        (
            scheduled("StepLR", 2, step_size=3),
            [
                f"scheduler.type: StepLR is torch's, and takes no optimizer that DeepSpeed wraps, as it does with"
                f" {Z}.stage 2; remove scheduler and give deepspeed.initialize lr_scheduler=lambda optimizer:"
                " torch.optim.lr_scheduler.StepLR(optimizer, step_size=3)"
            ],
        ),
        (
            scheduled("MultiStepLR", 1, milestones=list(range(99))),
            [
                f"scheduler.type: MultiStepLR is torch's, and takes no optimizer that DeepSpeed wraps, as it does with"
                f" {Z}.stage 1; remove scheduler and give deepspeed.initialize lr_scheduler=lambda optimizer:"
                " torch.optim.lr_scheduler.MultiStepLR(optimizer, …)"
            ],
        ),
        (
            {**named("Adagrad", 0), "scheduler": {"type": "CyclicLR", "params": {"base_lr": 0.1, "max_lr": 1}}},
            [
                "scheduler.params.cycle_momentum: must be false: CyclicLR would cycle the momentum, and the optimizer"
                " Adagrad has none"
            ],
        ),
        (
            {
                **named("Adagrad", 0),
                "scheduler": {"type": "OneCycleLR", "params": {"max_lr": 1, "cycle_momentum": False}},
            },
            [],
        ),
        # optimizer: those whose first step fails
        (
            named("LBFGS", 0),
            ["optimizer.type: LBFGS needs a closure at each step, and DeepSpeed gives none; take AdamW"],
        ),
        (named("SparseAdam", 0), []),
        (
            {**named("SparseAdam", 2), "zero_allow_untested_optimizer": True},
            [
                f"optimizer.type: SparseAdam takes sparse gradients only, and with {Z}.stage 2 DeepSpeed makes dense"
                " ones; take Adam"
            ],
        ),
        # optimizer: tested with ZeRO
        *((named(name, 1), []) for name in ("adam", "ADAMW", "Adagrad", "Lion", "Muon")),
        *((named(name, 0), []) for name in ("SGD", "Lamb")),
        ({**named("SGD", 1), "zero_allow_untested_optimizer": True}, []),
        (named("SGD", 1), [untested("'SGD'")]),
        (named("Lamb", 2), [untested("'Lamb'")]),
        # optimizer: Lamb and Muon
        (
            {**named("Lamb", 0), "fp16": {"loss_scale": 8}},
            ["fp16.loss_scale: must be 0 (dynamic loss scaling) with the optimizer Lamb"],
        ),
        (named("Muon", 3), [f"optimizer.type: Muon needs {Z}.reduce_scatter: false with stage 3"]),
        (
            named("Muon", 3, reduce_scatter=False, zero_quantized_gradients=True),
            [
                f"{Z}.zero_quantized_gradients: needs {Z}.reduce_scatter: true with stage 3",
                f"optimizer.type: Muon cannot be combined with {Z}.zero_quantized_gradients",
            ],
        ),
        ({**named("Muon", 1), **accumulating("fp32", bf16=ON)}, []),
        (
            {**named("Muon", 0), "bf16": ON, "pipeline": {}},
            [
                "optimizer.type: Muon does not work with the separate optimizer for bf16 that this leads to;"
                " remove pipeline, or bf16"
            ],
        ),
        # optimizer: master weights
        ({**master16(), **zero(3, offload_optimizer=CPU)}, []),
        ({**master16(), **zero(3, cpu_offload=True)}, []),
        ({**master16(), **zero(2)}, [f"{MASTER16}: needs {Z}.offload_optimizer with device cpu"]),
        ({**master16(), **zero(2, offload_optimizer=CPU), "optimizer": TORCH_ADAM}, [f"{MASTER16}: {OWN_ADAM}"]),
        (
            {**zero(2), "bf16": {"bf16_master_weights_and_grads": True}},
            [f"{MASTER_B}: needs {Z}.offload_optimizer with device cpu, or {STATES_B}: true"],
        ),
        ({**zero(2), "bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}, []),
        (
            {**zero(2, offload_optimizer=CPU), **master16(), "bf16": {"bf16_master_weights_and_grads": True}},
            [f"{MASTER_B}: cannot be true together with {MASTER16}; keep one of them"],
        ),
        # optimizer: partly offloaded
        (
            {**zero(3, offload_optimizer={"device": "cpu", "ratio": 0.5}), "optimizer": TORCH_ADAM},
            [f"{Z}.offload_optimizer.ratio: below 1 {OWN_ADAM}"],
        ),
        ({**zero(3, offload_optimizer={"device": "cpu", "super_offload": True}), "optimizer": ADAM}, []),
        (
            named("Lion", 3, offload_optimizer={"device": "cpu", "super_offload": True}),
            [f"{Z}.offload_optimizer.super_offload: works with the optimizers Adam and AdamW only"],
        ),
        (
            named("Adam", 3, offload_optimizer={"super_offload": True}),
            [f"{Z}.offload_optimizer.super_offload: needs {Z}.offload_optimizer.device: cpu"],
        ),
        # optimizer: ZenFlow
        (zenflow(2, {}, offload_optimizer=CPU), []),
        (zenflow(3, {"offload": True}), []),
        (zenflow(2, {}), [f"{Z}.zenflow: needs {Z}.offload_optimizer with device cpu"]),
        (
            zero(2, zenflow={}, offload_optimizer=CPU),
            [
                f"{Z}.zenflow: needs optimizer.type and optimizer.params in this file with stage 2,"
                " at least params: {}"
            ],
        ),
        (
            {**zenflow(2, {}, offload_optimizer=CPU), "optimizer": TORCH_ADAM},
            [
                f"optimizer.params.torch_adam: cannot be combined with {Z}.zenflow and stage 2,"
                " whose own AdamW does not know it"
            ],
        ),
        (
            zenflow(2, {"offload": True}, offload_optimizer=CPU),
            [f"{Z}.zenflow.offload: needs {Z}.overlap_comm: true"],
        ),
        (
            zenflow(0, {"select_interval": 8}),
            [f"{Z}.zenflow.select_interval: needs select_strategy: step or epoch; with auto leave it out"],
        ),
        (
            zenflow(0, {"select_strategy": "epoch"}),
            [f"{Z}.zenflow.select_interval: must be a number with select_strategy epoch"],
        ),
        (
            zenflow(0, {"select_strategy": "step", "select_interval": 2, "update_interval": 4}),
            [f"{Z}.zenflow.select_interval: 2 is below update_interval 4; it must be at least that"],
        ),
        ({**zenflow(0, {"update_interval": 4}), "pipeline": {}, "gradient_accumulation_steps": 4}, []),
        ({**zenflow(0, {"update_interval": 4}), "pipeline": {}, "gradient_accumulation_steps": "auto"}, []),
        (
            {**zenflow(0, {"update_interval": 4}), "pipeline": {}},
            [f"{Z}.zenflow: works with pipeline only if update_interval is gradient_accumulation_steps, 1"],
        ),
        (
            {**zenflow(0, {}, offload_optimizer=CPU), "bf16": ON},
            [f"{Z}.zenflow: does not work with bf16 and stage 0; set stage 2"],
        ),
        ({**zenflow(0, {"overlap_step": True}, offload_optimizer=CPU), "bf16": ON}, []),
        ({**zenflow(0, {}), "bf16": ON}, []),
        # compile
        (
            {**compiled(1), **accumulating("fp32", bf16=ON)},
            [
                "compile.deepcompile: does not work with stage 1, bf16 and data_types.grad_accum_dtype fp32 together",
            ],
        ),
        (compiled(3, "offload_parameters"), []),
        (compiled(1, "offload_parameters", "offload_opt_states"), []),
        (
            compiled(3, "offload_parameters", "offload_opt_states"),
            ["compile.offload_opt_states: cannot be combined with compile.offload_parameters; keep one"],
        ),
        (
            compiled(3, "offload_opt_states", offload_optimizer=CPU),
            [f"compile.offload_opt_states: cannot be combined with {Z}.offload_optimizer; keep one"],
        ),
        (
            compiled(3, "offload_activation", offload_optimizer=CPU, offload_param=CPU),
            [
                "compile.offload_activation: cannot be combined with compile.offload_parameters"
                " (on because ZeRO offloads both to the CPU); keep one"
            ],
        ),
        (
            {"compile": {"deepcompile": True, "passes": ["autotp", "z1"]}},
            ["compile.passes: autotp cannot be combined with other passes yet"],
        ),
        (
            {
                **compiled(3, "autoep_non_moe", offload_optimizer=CPU, offload_param=CPU),
                "tensor_parallel": {"autotp_size": 2},
                "expert_parallel": {"comm_backend": "deepep"},
                "sequence_parallel_size": 2,
            },
            [
                f"compile.autoep_non_moe: cannot be combined with {other}"
                for other in (
                    "compile.deepcompile",
                    "expert_parallel.comm_backend other than comm",
                    "tensor_parallel.autotp_size above 1",
                    "sequence_parallel_size above 1",
                    f"{Z}.stage 3",
                    f"{Z}.offload_optimizer",
                    f"{Z}.offload_param",
                )
            ],
        ),
        (
            {"compile": {"autoep_non_moe": True}, "pipeline": {}},
            ["compile.autoep_non_moe: cannot be combined with pipeline"],
        ),
    ],
)
def test_conflicts(config: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in conflicts(config, NEWEST)] == errors


PRESCALED = f"prescale_gradients: true works with {Z}.stage 2 {SCATTER}"
OLD_STAGE = f"{MASTER16}: needs {Z}.stage 2 in DeepSpeed"
BF16_SUMS = f"does not work with precision bf16 without ZeRO in DeepSpeed 0.16.9; set {Z}.stage 1, or remove the key"


@pytest.mark.parametrize(
    ("version", "config", "errors"),
    [
        ((0, 16, 9), master16(enabled=False), []),
        ((0, 17, 6), master16(enabled=False), [f"{MASTER16}: needs {Z}.stage 1, 2 or 3"]),
        ((0, 17, 6), {**master16(), **zero(3, offload_optimizer=CPU)}, [f"{OLD_STAGE} 0.17.6"]),
        ((0, 17, 6), {**master16(), **zero(2, offload_optimizer=CPU)}, []),
        ((0, 18, 9), {**master16(), **zero(1, offload_optimizer=CPU)}, []),
        (
            (0, 18, 9),
            accumulating("fp32", bf16=ON),
            [f"data_types.grad_accum_dtype: fp32 {BF16_SUMS.replace('0.16.9', '0.18.9')}"],
        ),
        ((0, 17, 6), accumulating("fp32", bf16=ON), []),
        ((0, 17, 6), accumulating("bf16", bf16=ON), []),
        ((0, 16, 9), accumulating("bf16", bf16=ON), [f"data_types.grad_accum_dtype: bf16 {BF16_SUMS}"]),
        ((0, 16, 9), accumulating("bf16", bf16=ON, pipeline={}), []),
        (
            (0, 17, 6),
            {"torch_autocast": ON, "bf16": ON},
            ["torch_autocast.enabled: cannot be combined with bf16.enabled in DeepSpeed 0.17.6; keep one of them"],
        ),
        ((0, 19, 1), {"data_types": {"param_dtype": "bf16"}}, []),
        ((0, 19, 3), {"managed_gradient_accumulation": False, "pipeline": {}}, []),
        (
            (0, 19, 4),
            {
                "managed_gradient_accumulation": False,
                "amp": ON,
                **zero(0, offload_optimizer=CPU, offload_param=CPU),
            },
            [
                "managed_gradient_accumulation: false cannot be combined with amp.enabled",
                f"managed_gradient_accumulation: false cannot be combined with {Z}.offload_optimizer",
                f"managed_gradient_accumulation: false cannot be combined with {Z}.offload_param",
            ],
        ),
        ((0, 19, 5), {"managed_gradient_accumulation": False, **zero(2, offload_optimizer=CPU)}, []),
        (
            (0, 19, 2),
            {**zenflow(0, {"overlap_step": True}, offload_optimizer=CPU), "fp16": ON},
            [f"{Z}.zenflow: does not work with fp16 and stage 0; set stage 2"],
        ),
        ((0, 19, 5), {"prescale_gradients": True, "gradient_allreduce_op": "sum", **zero(2)}, [PRESCALED]),
        ((0, 19, 7), {"amp": ON, **zero(2)}, [f"amp.enabled: cannot be combined with {Z}.stage 2; use fp16 or bf16"]),
        ((0, 19, 7), {"amp": ON, "bf16": ON}, ["amp.enabled: cannot be combined with bf16.enabled; keep one of them"]),
        ((0, 19, 8), {"amp": ON, "bf16": ON}, []),
        (
            (0, 19, 7),
            {"elasticity": ON, "train_batch_size": 8, "gradient_accumulation_steps": 1},
            [
                "train_batch_size: cannot be combined with elasticity, which sets the batch itself; remove elasticity,"
                " or set elasticity.ignore_non_elastic_batch_info: true"
            ],
        ),
        ((0, 19, 7), {"elasticity": {**ON, "ignore_non_elastic_batch_info": True}, "train_batch_size": 8}, []),
        ((0, 19, 8), {"elasticity": ON, "train_batch_size": 8}, []),
        (
            (0, 19, 3),
            {"tensor_parallel": {"autotp_size": 2}, **zero(3)},
            [f"tensor_parallel.autotp_size: above 1 cannot be combined with {Z}.stage 3 before DeepSpeed 0.19.4"],
        ),
        ((0, 19, 4), {"tensor_parallel": {"autotp_size": 2}, **zero(3)}, []),
        ((0, 17, 6), {"tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}}}, []),
        ((0, 19, 6), named("OneBitAdam", 0), []),
        ((0, 19, 6), named("OneBitAdam", 1), ["optimizer.type: 'OneBitAdam' works without ZeRO only; set stage 0"]),
        ((0, 16, 9), {**named("Lamb", 0), "fp16": {"loss_scale": 8}}, []),
        (
            (0, 16, 9),
            {**named("lamb", 0), "bf16": ON},
            ["optimizer.type: Lamb cannot be combined with bf16 in DeepSpeed 0.16.9"],
        ),
        ((0, 17, 6), {**named("lamb", 0), "bf16": ON}, []),
        ((0, 17, 6), named("Muon", 2), [untested("'Muon'", "0.17.6")]),
        (
            (0, 17, 6),
            {**named("Muon", 3, reduce_scatter=False), "zero_allow_untested_optimizer": True},
            [f"optimizer.type: Muon cannot be combined with {Z}.stage 3 in DeepSpeed 0.17.6"],
        ),
        ((0, 19, 2), named("Muon", 2, offload_optimizer=CPU), []),
        (
            (0, 19, 7),
            named("Muon", 2, offload_optimizer=CPU),
            [
                f"optimizer.type: Muon with {Z}.offload_optimizer needs {Z}.reduce_scatter: false in DeepSpeed 0.19.7",
            ],
        ),
        (
            (0, 19, 7),
            {**named("Muon", 1), **accumulating("fp32", bf16=ON)},
            [
                "optimizer.type: Muon does not work with the separate optimizer for bf16 that this leads to;"
                " remove data_types.grad_accum_dtype"
            ],
        ),
        ((0, 19, 2), zenflow(2, {}, offload_optimizer=CPU), [untested("'AdamW' with zenflow", "0.19.2")]),
        ((0, 19, 0), {**zenflow(2, {}, offload_optimizer=CPU), "optimizer": TORCH_ADAM}, []),
        (
            (0, 19, 0),
            {
                **zero(3, offload_optimizer=CPU),
                "optimizer": TORCH_ADAM,
                "bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True},
            },
            [],
        ),
        (
            (0, 19, 1),
            {
                **zero(3, offload_optimizer=CPU),
                "optimizer": TORCH_ADAM,
                "bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True},
            },
            [f"{MASTER_B}: {OWN_ADAM}"],
        ),
        (
            (0, 16, 9),
            compiled(2),
            [f"compile.deepcompile: works with {Z}.stage 1 and 3 only in DeepSpeed 0.16.9"],
        ),
        ((0, 17, 6), compiled(2), []),
        ((0, 19, 3), compiled(3, "offload_parameters", "offload_opt_states"), []),
        ((0, 19, 5), compiled(3, "offload_parameters", "offload_activation"), []),
    ],
)
def test_releases_differ(version: tuple[int, int, int], config: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in conflicts(config, Version(*version))] == errors


def test_sizes_that_must_divide_the_ranks() -> None:
    config = {"tensor_parallel": {"autotp_size": 4}, **zero(3, zero_hpz_partition_size=4)}
    assert conflicts(config, NEWEST) == conflicts(config, NEWEST, world_size=8) == []
    assert [str(error) for error in conflicts(config, NEWEST, world_size=6)] == [
        "tensor_parallel.autotp_size: 4 does not divide the 6 ranks",
        f"{Z}.zero_hpz_partition_size: 4 does not divide the 6 ranks",
    ]


@pytest.mark.parametrize("version", KNOWN_VERSIONS, ids=str)
def test_no_preset_is_refused_for_what_it_brings_itself(version: Version) -> None:
    for name in available(version):
        config = preset(name, "deepspeed", version)
        own = [error for error in conflicts(config, version, world_size=8) if not error.path.endswith("nvme_path")]
        # ZenFlow cannot start without an optimizer in the file, which is the user's to choose.
        assert own == [] or name == "zenflow", (name, own)


@pytest.mark.parametrize(
    "config",
    [
        {Z: 3},
        {Z: {"stage": "x", "offload_param": [], "zenflow": 1}},
        {Z: {"stage": True, "allgather_bucket_size": True}},
        {"fp16": None, "bf16": "x", "optimizer": [], "compile": 1, "pipeline": None, "data_types": "bf16"},
        {"optimizer": {"type": 7, "params": 3}, **zero(0)},
    ],
)
def test_wrong_types_are_no_matter_of_rules(config: dict[str, Any]) -> None:
    assert conflicts(config, NEWEST) == []
    assert stage(config) == 0
    assert get(config, f"{Z}.offload_param.device") is None


def test_what_the_engine_sees() -> None:
    view = View({"fp16": {"enabled": "auto"}, Z: {"cpu_offload": True, "overlap_comm": "auto"}}, NEWEST)
    assert view.precision is None
    assert (view.optimizer_device, view.param_device) == ("cpu", "none")
    assert view.flag(f"{Z}.overlap_comm", default=True) is None
    assert view.number(f"{Z}.reduce_bucket_size", 5) == 5
    assert (view.has("fp16.enabled"), view.has("fp16.loss_scale"), view.has("bf16.enabled")) == (True, False, False)
    assert View({"optimizer": {"type": "ADAM"}}, NEWEST).optimizer == "adam"
    assert View({"optimizer": {"type": "SGD"}}, NEWEST).optimizer == "SGD"
