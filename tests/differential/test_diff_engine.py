# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Combinations of keys against DeepSpeed's engines, which are started with a tiny model (tests/oracle/engine.py).

Both directions: what an engine refuses because of its configuration, ``conflicts`` finds, and what ``conflicts`` finds
an engine refuses, but for the rows of ``STRICTER``. Schema and optimizer parameters are the matter of other tests: only
keys and values that the release knows are combined here.
"""

from __future__ import annotations

import copy
import os
import random
import re
from collections.abc import Iterator
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import Version, parse_version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.rules import conflicts
from deepspeed_oracle import Oracle

from tests.effort import examples

STRICTER: list[tuple[str, tuple[int, int, int], str]] = [
    (
        r"^fp16\.(loss_scale_window|min_loss_scale): must be above 0",
        (0, 19, 3),
        "Before 0.19.3 DeepSpeed does not check: a window of 0 divides by zero at the first step, and a floor of 0 lets"
        " the loss scale reach 0.",
    ),
]
"""What we refuse and an engine starts with: pattern of our text, first release that refuses it too, reason."""

UNDECIDED: list[tuple[str, str]] = [
    (r"^NeedsOperatorError", "a compiled operator that is neither built nor stood in for here comes first"),
    (r"Not able to determine model policy", "AutoTP knows the layers of known models; the tiny model is none"),
    (r"requires at least one AutoEPMoELayer", "the tiny model has no experts"),
    (r"not currently supported on PyTorch", "0.18.9 with DeepCompile and stage 3 wants an older torch than is here"),
    (r"^TypeError: 'NoneType' object is not callable", "DeepCompile's offloading opens a CUDA stream"),
    (r"Cannot access accelerator device when none", "0.19.5 pins memory with torch, which needs a GPU for it"),
    (r"^IndexError: tuple index out of range", "0.18.9 to 0.19.5: HybridEngine with stage 3 asks partitioned weights"),
]
"""Refusals that the configuration alone does not decide, and behind which others are not seen: pattern, reason."""
SCRIPTS_OPTIMIZER = r"optimizer type <class 'torch\.optim|Hybrid Optimizer Only"
"""The same, where the file names no optimizer and the script brings one of torch."""

Z = "zero_optimization"
B = (True, False)
CHOICES: dict[str, tuple[Any, ...]] = {
    f"{Z}.stage": (0, 1, 2, 3),
    f"{Z}.offload_optimizer.device": ("cpu", "cpu", "nvme", "none"),
    f"{Z}.offload_optimizer.nvme_path": ("/tmp/oracle-nvme",),
    f"{Z}.offload_optimizer.ratio": (0.5, 1),
    f"{Z}.offload_optimizer.super_offload": B,
    f"{Z}.offload_param.device": ("cpu", "nvme", "none"),
    f"{Z}.offload_param.nvme_path": ("/tmp/oracle-nvme",),
    f"{Z}.overlap_comm": B,
    f"{Z}.reduce_scatter": B,
    f"{Z}.contiguous_gradients": B,
    f"{Z}.round_robin_gradients": B,
    f"{Z}.compute_grad_norm": B,
    f"{Z}.legacy_stage1": B,
    f"{Z}.allgather_bucket_size": (7, 8, 0),
    f"{Z}.reduce_bucket_size": (1, 1000),
    f"{Z}.zero_hpz_partition_size": (1, 2, 3),
    f"{Z}.zero_quantized_weights": B,
    f"{Z}.zero_quantized_gradients": B,
    f"{Z}.parameter_alignment": B,
    f"{Z}.zenflow.select_strategy": ("auto", "step", "epoch"),
    f"{Z}.zenflow.select_interval": (1, 8),
    f"{Z}.zenflow.update_interval": (4,),
    f"{Z}.zenflow.offload": B,
    f"{Z}.zenflow.overlap_step": B,
    "fp16.enabled": B,
    "fp16.loss_scale": (0, 128),
    "fp16.loss_scale_window": (0, 10),
    "fp16.min_loss_scale": (0, 1),
    "fp16.fp16_master_weights_and_grads": B,
    "bf16.enabled": B,
    "bf16.bf16_master_weights_and_grads": B,
    "bf16.bf16_optimizer_states": B,
    "torch_autocast.enabled": B,
    "torch_autocast.dtype": ("bf16", "fp16"),
    "data_types.grad_accum_dtype": ("fp32", "bf16", "fp16"),
    "data_types.param_dtype": ("fp32", "bf16", "fp16"),
    "communication_data_type": ("fp16", "bf16", "fp32"),
    "prescale_gradients": B,
    "gradient_predivide_factor": (1, 2),
    "gradient_allreduce_op": ("sum", "mean"),
    "gradient_clipping": (0, 1),
    "gradient_accumulation_steps": (1, 4),
    "managed_gradient_accumulation": B,
    "zero_allow_untested_optimizer": B,
    "pipeline.stages": (1,),
    "hybrid_engine.enabled": (True,),
    "tensor_parallel.autotp_size": (1, 2),
    "tensor_parallel.tp.tp_size": (1, 2, 4),
    "compile.deepcompile": B,
    "compile.offload_parameters": B,
    "compile.offload_opt_states": B,
    "compile.offload_activation": B,
    "compile.passes": (["z1"], ["autosp"], ["z1", "z3"]),
    "compile.autoep_non_moe": B,
    "activation_checkpointing.contiguous_memory_optimization": B,
    "activation_checkpointing.partition_activations": B,
    "activation_checkpointing.number_checkpoints": (2,),
    "amp.enabled": (False,),
}
SINCE: dict[str, tuple[int, int, int]] = {
    f"{Z}.zenflow": (0, 17, 6),
    f"{Z}.compute_grad_norm": (0, 19, 7),
    f"{Z}.parameter_alignment": (0, 19, 7),
    f"{Z}.offload_optimizer.super_offload": (0, 18, 9),
    "bf16.bf16_": (0, 18, 9),
    "torch_autocast": (0, 17, 6),
    "data_types.param_dtype": (0, 19, 2),
    "gradient_allreduce_op": (0, 19, 6),
    "managed_gradient_accumulation": (0, 19, 4),
    "tensor_parallel": (0, 16, 9),
    "compile": (0, 16, 9),
    "compile.passes": (0, 18, 9),
    "compile.autoep_non_moe": (0, 19, 8),
}
"""First known release with each path that begins so."""
GONE = {"amp": (0, 19, 8), "elasticity": (0, 19, 8)}
OPTIMIZERS: tuple[dict[str, Any] | None, ...] = (
    *[{"type": "AdamW", "params": {"lr": 0.001}}] * 8,
    *[{"type": "Adam", "params": {"lr": 0.001, "torch_adam": True}}] * 2,
    {"type": "adam", "params": {"adam_w_mode": False}},
    {"type": "AdamW", "params": {"bias_correction": True}},
    {"type": "AdamW"},
    {"type": "Adagrad", "params": {"lr": 0.01}},
    {"type": "Lion", "params": {"lr": 0.001}},
    *[{"type": "Muon", "params": {"lr": 0.001}}] * 2,
    *[{"type": "Lamb", "params": {"lr": 0.001}}] * 2,
    {"type": "SGD", "params": {"lr": 0.001}},
    *[None] * 2,
)
FIRST_MUON = (0, 17, 6)

ALWAYS, NEVER = ((0, 0, 0), (9, 0, 0)), ((9, 0, 0), (9, 0, 0))
ADAM: dict[str, Any] = {"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}
TORCH_ADAM: dict[str, Any] = {"optimizer": {"type": "AdamW", "params": {"lr": 0.001, "torch_adam": True}}}
CPU = {"device": "cpu"}


def since(*release: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Refused from this release on."""
    return release, (9, 0, 0)


def before(*release: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Refused until this release came."""
    return (0, 0, 0), release


def zero(stage: int, **more: Any) -> dict[str, Any]:
    """A configuration with Adam and this stage."""
    return {**ADAM, Z: {"stage": stage, **more}}


def named(name: str, stage: int, **more: Any) -> dict[str, Any]:
    """A configuration with this optimizer and stage."""
    return {"optimizer": {"type": name, "params": {"lr": 0.001}}, Z: {"stage": stage, **more}}


BF16, FP16 = {"bf16": {"enabled": True}}, {"fp16": {"enabled": True}}
FP32_SUMS = {"data_types": {"grad_accum_dtype": "fp32"}}
DEEP = {"deepcompile": True}
ZENFLOW = zero(2, offload_optimizer=CPU, zenflow={})
MASTER16, MASTER_B = {"enabled": True, "fp16_master_weights_and_grads": True}, {"bf16_master_weights_and_grads": True}
STATES_B = {**MASTER_B, "bf16_optimizer_states": True}
CHUNKS = {"contiguous_memory_optimization": True, "partition_activations": True}

# A configuration, the releases that refuse it (first, first that does not any more), and the number of ranks.
TABLE: list[tuple[dict[str, Any], tuple[tuple[int, ...], tuple[int, ...]], int]] = [
    (ADAM, NEVER, 1),
    ({**ADAM, **FP16, "bf16": {"enabled": False}}, NEVER, 1),
    ({**ADAM, **FP16, **BF16}, ALWAYS, 1),
    ({**zero(0), "fp16": MASTER16}, ALWAYS, 1),
    ({**zero(1, offload_optimizer=CPU), "fp16": MASTER16}, before(0, 18, 9), 1),
    ({**zero(2, offload_optimizer=CPU), "fp16": MASTER16}, NEVER, 1),
    ({**zero(3, offload_optimizer=CPU), "fp16": MASTER16}, before(0, 18, 9), 1),
    ({**zero(2), "fp16": MASTER16}, ALWAYS, 1),
    ({**zero(2, offload_optimizer=CPU), **TORCH_ADAM, "fp16": MASTER16}, ALWAYS, 1),
    ({**zero(0), "fp16": {**MASTER16, "enabled": False}}, since(0, 17, 6), 1),
    ({**zero(0), "bf16": MASTER_B}, since(0, 18, 9), 1),
    ({**zero(1), "bf16": MASTER_B}, since(0, 18, 9), 1),
    ({**zero(1), "bf16": STATES_B}, NEVER, 1),
    ({**zero(1), "bf16": {"bf16_optimizer_states": True}}, since(0, 18, 9), 1),
    ({**zero(3, offload_optimizer=CPU), "bf16": STATES_B}, NEVER, 1),
    ({**zero(3, offload_optimizer=CPU), **TORCH_ADAM, "bf16": STATES_B}, since(0, 19, 1), 1),
    ({**zero(2, offload_optimizer=CPU), "fp16": MASTER16, "bf16": MASTER_B}, since(0, 18, 9), 1),
    ({**ADAM, "fp16": {"enabled": True, "loss_scale_window": 0}}, since(0, 19, 3), 1),
    ({**ADAM, "fp16": {"enabled": True, "min_loss_scale": 0}}, since(0, 19, 3), 1),
    ({**ADAM, "fp16": {"enabled": True, "loss_scale": 8, "loss_scale_window": 0}}, NEVER, 1),
    *(({**zero(stage), "pipeline": {}}, ALWAYS if stage > 1 else NEVER, 2) for stage in range(4)),
    *(
        ({**zero(stage, compute_grad_norm=False), "gradient_clipping": 0}, NEVER if stage in (1, 2) else ALWAYS, 1)
        for stage in range(4)
    ),
    (zero(1, compute_grad_norm=False), ALWAYS, 1),
    ({**zero(2, compute_grad_norm=False, offload_optimizer=CPU), "gradient_clipping": 0}, ALWAYS, 1),
    ({**zero(1, compute_grad_norm=False), "gradient_clipping": 0, **BF16, **FP32_SUMS}, ALWAYS, 1),
    ({**zero(2, compute_grad_norm=False, offload_optimizer=CPU, zenflow={}), "gradient_clipping": 0}, ALWAYS, 1),
    *(({**zero(stage), "gradient_allreduce_op": "sum"}, ALWAYS if stage == 3 else NEVER, 1) for stage in range(4)),
    ({**ZENFLOW, "gradient_allreduce_op": "sum"}, ALWAYS, 1),
    ({**zero(1), "gradient_allreduce_op": "sum", "compile": DEEP}, ALWAYS, 1),
    (zero(2, offload_optimizer={"device": "cpu", "ratio": 0.5}), ALWAYS, 1),
    (zero(3, offload_optimizer={"device": "cpu", "ratio": 0.5}), NEVER, 1),
    ({**zero(3, offload_optimizer={"device": "cpu", "ratio": 0.5}), **TORCH_ADAM}, ALWAYS, 1),
    ({**zero(3, offload_optimizer={"device": "none", "ratio": 0.5}), **TORCH_ADAM}, NEVER, 1),
    (zero(2, cpu_offload=True), NEVER, 1),
    (zero(2, cpu_offload=True, offload_optimizer=CPU), ALWAYS, 1),
    (zero(3, cpu_offload_param=True, offload_param=CPU), ALWAYS, 1),
    *((zero(stage, legacy_stage1=True), ALWAYS if stage else NEVER, 1) for stage in range(4)),
    *((zero(stage, allgather_bucket_size=7), ALWAYS if stage in (1, 2) else NEVER, 1) for stage in range(4)),
    ({**zero(1, allgather_bucket_size=7), **BF16, **FP32_SUMS}, NEVER, 1),
    *(({**zero(stage), "prescale_gradients": True}, ALWAYS if stage > 1 else NEVER, 1) for stage in range(4)),
    *(({**zero(stage), "gradient_predivide_factor": 2}, ALWAYS if stage > 1 else NEVER, 1) for stage in range(4)),
    ({**zero(2, reduce_scatter=False), "prescale_gradients": True}, NEVER, 1),
    ({**zero(3, reduce_scatter=False), "gradient_predivide_factor": 2}, NEVER, 1),
    ({**zero(2), "prescale_gradients": True, "gradient_allreduce_op": "sum"}, NEVER, 1),
    *(({**zero(stage), "communication_data_type": "fp32"}, NEVER, 1) for stage in range(4)),
    (zero(3, zero_quantized_gradients=True, reduce_scatter=False), ALWAYS, 1),
    (zero(3, zero_quantized_gradients=True), NEVER, 1),
    (zero(3, offload_param={"device": "nvme"}), ALWAYS, 1),
    (zero(3, offload_optimizer={"device": "nvme"}), ALWAYS, 1),
    (zero(2, offload_optimizer={"device": "nvme"}), NEVER, 1),
    (zero(3, zero_hpz_partition_size=3), ALWAYS, 4),
    (zero(3, zero_hpz_partition_size=2), NEVER, 4),
    (zero(2, zero_hpz_partition_size=3), NEVER, 4),
    ({**zero(1), "managed_gradient_accumulation": False}, NEVER, 1),
    ({**zero(1, overlap_comm=True), "managed_gradient_accumulation": False}, ALWAYS, 1),
    ({**zero(2, overlap_comm=True), "managed_gradient_accumulation": False}, NEVER, 1),
    ({**zero(3), "managed_gradient_accumulation": False}, NEVER, 1),
    ({**zero(1), "managed_gradient_accumulation": False, "pipeline": {}}, ALWAYS, 1),
    ({**zero(1), "managed_gradient_accumulation": False, "compile": DEEP}, ALWAYS, 1),
    ({**ADAM, "managed_gradient_accumulation": False, "amp": {"enabled": True}}, ALWAYS, 1),
    ({**zero(2, offload_optimizer=CPU), "managed_gradient_accumulation": False}, ((0, 19, 4), (0, 19, 5)), 1),
    ({**zero(2, offload_param=CPU), "managed_gradient_accumulation": False}, ((0, 19, 4), (0, 19, 5)), 1),
    ({**zero(2, offload_param={"device": "none"}), "managed_gradient_accumulation": False}, NEVER, 1),
    ({**ADAM, "data_types": {"param_dtype": "bf16"}}, ALWAYS, 1),
    ({**ADAM, **BF16, "data_types": {"param_dtype": "bf16"}}, NEVER, 1),
    ({**ADAM, **BF16, "data_types": {"param_dtype": "fp32"}}, ALWAYS, 1),
    ({**ADAM, "data_types": {"grad_accum_dtype": "bf16"}}, ALWAYS, 1),
    ({**zero(1), "data_types": {"grad_accum_dtype": "bf16"}}, NEVER, 1),
    ({**ADAM, **FP16, **FP32_SUMS}, ALWAYS, 1),
    ({**ADAM, **BF16, **FP32_SUMS}, since(0, 18, 9), 1),
    ({**ADAM, **BF16, "data_types": {"grad_accum_dtype": "bf16"}}, before(0, 17, 6), 1),
    ({**ADAM, **BF16, "data_types": {"grad_accum_dtype": "bf16"}, "pipeline": {}}, NEVER, 1),
    ({**ADAM, "torch_autocast": {"enabled": True, "dtype": "bf16"}}, NEVER, 1),
    ({**ADAM, **BF16, "torch_autocast": {"enabled": True, "dtype": "bf16"}}, before(0, 18, 9), 1),
    ({**zero(3, zero_quantized_weights=True), "torch_autocast": {"enabled": True, "dtype": "bf16"}}, ALWAYS, 1),
    ({**zero(1), "amp": {"enabled": True}}, ALWAYS, 1),
    ({**ADAM, **FP16, "amp": {"enabled": True}}, ALWAYS, 1),
    ({**ADAM, "elasticity": {"enabled": True, "max_train_batch_size": 8, "micro_batch_sizes": [1]}}, ALWAYS, 1),
    ({**zero(3), "tensor_parallel": {"autotp_size": 2}}, before(0, 19, 4), 2),
    ({**zero(2), "tensor_parallel": {"autotp_size": 2}}, ALWAYS, 1),
    ({**zero(2), "tensor_parallel": {"autotp_size": 2, "tp": {"tp_size": 4}}}, since(0, 18, 9), 4),
    ({**zero(1), "tensor_parallel": {"autotp_size": 2}, "pipeline": {}}, ALWAYS, 2),
    ({**ADAM, "activation_checkpointing": {"contiguous_memory_optimization": True}}, ALWAYS, 1),
    ({**ADAM, "activation_checkpointing": CHUNKS}, NEVER, 1),
    ({**ADAM, "activation_checkpointing": {**CHUNKS, "number_checkpoints": 2}}, NEVER, 1),
    *((named(name, 1), NEVER, 1) for name in ("adam", "ADAMW", "Adagrad", "Lion")),
    *((named(name, 1), ALWAYS, 1) for name in ("SGD", "RMSprop", "Lamb")),
    *((named(name, 0), NEVER, 1) for name in ("SGD", "RMSprop", "Lamb")),
    ({**named("SGD", 2), "zero_allow_untested_optimizer": True}, NEVER, 1),
    *((named(name, 1), ALWAYS, 1) for name in ("OneBitAdam", "ZeroOneAdam", "OneBitLamb")),
    ({**named("Lamb", 0), "fp16": {"enabled": True, "loss_scale": 8}}, ALWAYS, 1),
    ({**named("Lamb", 0), "fp16": {"enabled": False, "loss_scale": 8}}, since(0, 17, 6), 1),
    ({**named("Lamb", 0), **BF16}, before(0, 17, 6), 1),
    (named("Muon", 0), NEVER, 1),
    (named("Muon", 2), before(0, 18, 9), 1),
    (named("Muon", 3), ALWAYS, 1),
    (named("Muon", 3, reduce_scatter=False), before(0, 18, 9), 1),
    (named("Muon", 3, reduce_scatter=False, zero_quantized_gradients=True), ALWAYS, 1),
    ({**named("Muon", 2, offload_optimizer=CPU), "zero_allow_untested_optimizer": True}, ((0, 19, 3), (0, 19, 8)), 1),
    ({**named("Muon", 1), **BF16, **FP32_SUMS, "zero_allow_untested_optimizer": True}, ((0, 19, 7), (0, 19, 8)), 1),
    ({**named("Muon", 0), **BF16, "pipeline": {}}, since(0, 19, 7), 1),
    (zero(3, offload_optimizer={"device": "cpu", "super_offload": True}), NEVER, 1),
    (zero(3, offload_optimizer={"device": "none", "super_offload": True}), ALWAYS, 1),
    (named("Adagrad", 3, offload_optimizer={"device": "cpu", "super_offload": True}), ALWAYS, 1),
    (ZENFLOW, before(0, 19, 3), 1),
    (zero(0, offload_optimizer=CPU, zenflow={}), NEVER, 1),
    ({**zero(0, offload_optimizer=CPU, zenflow={}), **BF16}, ALWAYS, 1),
    ({**zero(0, offload_optimizer=CPU, zenflow={"overlap_step": True}), **FP16}, before(0, 19, 3), 1),
    ({**zero(0, offload_optimizer=CPU, zenflow={}), **TORCH_ADAM, **BF16}, NEVER, 1),
    (
        {
            **zero(0, offload_optimizer=CPU, zenflow={"update_interval": 4}),
            **BF16,
            "gradient_accumulation_steps": 4,
            "pipeline": {},
        },
        before(0, 18, 9),
        1,
    ),
    (
        {
            **zero(1, offload_optimizer={"device": "nvme"}, zenflow={}),
            **BF16,
            **FP32_SUMS,
            "zero_allow_untested_optimizer": True,
        },
        before(0, 18, 9),
        1,
    ),
    ({**ZENFLOW, "zero_allow_untested_optimizer": True}, NEVER, 1),
    ({**ZENFLOW, **TORCH_ADAM}, since(0, 19, 1), 1),
    ({**ZENFLOW, "optimizer": {"type": "AdamW", "params": {}}, "zero_allow_untested_optimizer": True}, NEVER, 1),
    ({**ZENFLOW, "optimizer": {"type": "Adagrad", "params": {"lr": 0.1}}}, NEVER, 1),
    ({**ZENFLOW, "optimizer": {"type": "Adam"}, "zero_allow_untested_optimizer": True}, ALWAYS, 1),
    ({Z: ZENFLOW[Z], "zero_force_ds_cpu_optimizer": False}, ALWAYS, 1),
    (zero(2, zenflow={}), ALWAYS, 1),
    (zero(3, zenflow={}), NEVER, 1),
    (zero(0, zenflow={"select_strategy": "step"}), ALWAYS, 1),
    (zero(0, zenflow={"select_interval": 8}), ALWAYS, 1),
    (zero(0, zenflow={"select_strategy": "step", "select_interval": 2, "update_interval": 4}), ALWAYS, 1),
    (zero(0, zenflow={"select_strategy": "epoch", "select_interval": 2, "update_interval": 4}), NEVER, 1),
    (zero(3, offload_optimizer=CPU, overlap_comm=False, zenflow={"offload": True}), ALWAYS, 1),
    ({**zero(0, zenflow={}), "pipeline": {}}, ALWAYS, 1),
    ({**zero(0, zenflow={"update_interval": 4}), "gradient_accumulation_steps": 4, "pipeline": {}}, NEVER, 1),
    *(({**zero(stage), "compile": DEEP}, before(0, 17, 6) if stage in (0, 2) else NEVER, 1) for stage in range(4)),
    ({**zero(3), "compile": {**DEEP, "offload_parameters": True, "offload_opt_states": True}}, since(0, 19, 4), 1),
    ({**zero(3, offload_optimizer=CPU), "compile": {**DEEP, "offload_opt_states": True}}, since(0, 19, 4), 1),
    ({**zero(3), "compile": {**DEEP, "offload_parameters": True, "offload_activation": True}}, since(0, 19, 6), 1),
    ({**zero(1), "compile": {**DEEP, "passes": ["autotp", "z1"]}}, ALWAYS, 1),
    ({**zero(1), **BF16, **FP32_SUMS, "compile": DEEP}, ALWAYS, 1),
    ({**zero(1), "compile": {**DEEP, "autoep_non_moe": True}}, ALWAYS, 1),
    ({**zero(3), "compile": {"autoep_non_moe": True}}, ALWAYS, 1),
    ({**zero(1, offload_optimizer=CPU), "compile": {"autoep_non_moe": True}}, ALWAYS, 1),
    ({**zero(1), "pipeline": {}, "compile": {"autoep_non_moe": True}}, ALWAYS, 1),
]
MANY = {"0.19.8": 300}
"""Generated combinations: for the newest release; fewer for the others."""
FEW = 60


def put(config: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path."""
    *blocks, key = path.split(".")
    for block in blocks:
        config = config.setdefault(block, {})
    config[key] = value


def known(path: str, version: Version) -> bool:
    """Whether this release has the key."""
    return all(version >= since for prefix, since in SINCE.items() if path.startswith(prefix)) and all(
        version < gone for prefix, gone in GONE.items() if path.startswith(prefix)
    )


def paths_of(config: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every dotted path of a configuration, those of blocks among them."""
    for key, value in config.items():
        here = f"{path}.{key}" if path else key
        yield here
        if isinstance(value, dict):
            yield from paths_of(value, here)


def possible(config: dict[str, Any], version: Version) -> bool:
    """Whether this release has the keys, the optimizer and the passes."""
    name = config.get("optimizer", {}).get("type", "")
    passes = config.get("compile", {}).get("passes", ())
    return (
        all(known(path, version) for path in paths_of(config))
        and not (name == "Muon" and version < FIRST_MUON)
        and not (name in ("OneBitAdam", "ZeroOneAdam", "OneBitLamb") and version >= (0, 19, 7))
        and not ("autotp" in passes and version < (0, 19, 6))
    )


def combinations(version: Version, count: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Configurations that are right key by key, and numbers of ranks."""
    chance = random.Random(str(version))
    paths = [path for path in CHOICES if known(path, version)]
    for dummy in range(count):
        config: dict[str, Any] = {"train_micro_batch_size_per_gpu": 1}
        put(config, f"{Z}.stage", chance.choice((0, 1, 1, 2, 2, 3, 3)))
        for path in chance.sample(paths, chance.randint(0, 9)):
            put(config, path, chance.choice(CHOICES[path]))
        optimizer = copy.deepcopy(chance.choice(OPTIMIZERS))
        if optimizer is not None and not (optimizer["type"] == "Muon" and version < FIRST_MUON):
            config["optimizer"] = optimizer
        else:
            # Whether a script's optimizer suits an offload is the script's matter.
            config["zero_force_ds_cpu_optimizer"] = False
        if chance.random() < 0.3:
            config["zero_allow_untested_optimizer"] = True
        yield config, chance.choice((1, 2, 4))


def refusal(oracle: Oracle, config: dict[str, Any], world_size: int) -> str | None:
    """What the engine says against the configuration, an empty text where it starts, ``None`` where that is open."""
    text = oracle.refusal(
        "engine",
        config=config,
        world_size=world_size,
        client_optimizer="" if "optimizer" in config else "AdamW",
        compiled="compile" in config,
    )
    assert "the engine ended without an answer" not in text, (config, text)
    if any(re.search(pattern, text) for pattern, dummy in UNDECIDED):
        return None
    return None if "optimizer" not in config and re.search(SCRIPTS_OPTIMIZER, text) else text


def disagreement(version: Version, config: dict[str, Any], world_size: int, theirs: str) -> str:
    """Where ``conflicts`` and the engine differ, in words, or an empty text."""
    ours = [str(problem) for problem in conflicts(copy.deepcopy(config), version, world_size=world_size)]
    if bool(ours) == bool(theirs):
        return ""
    if theirs:
        return f"missed: {theirs[:200]!r} of {config} on {world_size} ranks"
    unexplained = [
        text for text in ours if not any(re.search(pattern, text) and version < end for pattern, end, dummy in STRICTER)
    ]
    return f"refused without reason: {unexplained} of {config} on {world_size} ranks" if unexplained else ""


def release_of(oracle: Oracle) -> Version:
    """The oracle's release, comparable."""
    version = parse_version(oracle.release)
    assert version is not None
    return version


def test_each_rule_and_its_releases(oracle: Oracle) -> None:
    version = release_of(oracle)
    wrong, decided = [], 0
    rows = [row for row in TABLE if possible(row[0], version)]  # the schema refuses the others
    for combination, (first, gone), world_size in rows:
        config = {"train_micro_batch_size_per_gpu": 1, **copy.deepcopy(combination)}
        theirs = refusal(oracle, config, world_size)
        if theirs is None:
            continue
        decided += 1
        if bool(theirs) is not (first <= version < gone):
            wrong.append(f"the table is wrong: {theirs[:200]!r} of {config}")
        wrong.append(disagreement(version, config, world_size, theirs))
    wrong = [text for text in wrong if text]
    assert not wrong, "\n".join(wrong[:10])
    assert decided > len(rows) * 0.9


def test_generated_combinations(oracle: Oracle) -> None:
    version = release_of(oracle)
    count = int(os.environ.get("ENGINE_COMBINATIONS", examples(MANY.get(oracle.release, FEW))))
    wrong, decided = [], 0
    for config, world_size in combinations(version, count):
        theirs = refusal(oracle, config, world_size)
        if theirs is not None:
            decided += 1
            wrong.append(disagreement(version, config, world_size, theirs))
    wrong = [text for text in wrong if text]
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:10])
    assert decided > count * 0.8
