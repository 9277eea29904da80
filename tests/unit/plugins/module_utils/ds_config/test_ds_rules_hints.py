# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What DeepSpeed takes and does slowly or not at all: texts, releases, silence where all is well, and any input."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import KNOWN_VERSIONS, NEWEST, Version
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.presets import available, preset
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.rules import conflicts, warnings
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import BLOCKS
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

Z = "zero_optimization"
CPU, NVME = {"device": "cpu"}, {"device": "nvme", "nvme_path": "/nvme"}
ON = {"enabled": True}
STEPS = "measures by waiting for the GPU, which slows training down; for a few steps only"
GATHERS = (
    "gathers the whole model in the first rank's memory at each save, which may outlast the time-out of collectives"
    " (DEEPSPEED_TIMEOUT); zero_to_fp32.py converts a checkpoint afterwards"
)
CLIPPING = (
    "gradient_clipping: is missing: DeepSpeed 0.19.3 and newer clip at 1, older ones not at all;"
    " write what is meant (0 is off)"
)


def zero(at: int, **more: Any) -> dict[str, Any]:
    return {Z: {"stage": at, **more}}


def optimizer(name: str, **params: Any) -> dict[str, Any]:
    return {"optimizer": {"type": name, "params": params}}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        # old keys
        (zero(2, cpu_offload=True), [f"{Z}.cpu_offload: is deprecated; use offload_optimizer"]),
        (
            zero(2, cpu_offload_use_pin_memory=True),
            [f"{Z}.cpu_offload_use_pin_memory: is ignored by DeepSpeed; set pin_memory in the offload block"],
        ),
        (zero(1, elastic_checkpoint=True), []),
        (
            zero(3, elastic_checkpoint=True),
            [f"{Z}.elastic_checkpoint: has no effect with stage 3; use checkpoint.load_universal"],
        ),
        # idle keys
        (
            zero(2, stage3_max_live_parameters=10, zero_quantized_weights=True, sub_group_size=100),
            [
                f"{Z}.{key}: has no effect with stage 2; it belongs to stage 3"
                for key in ("stage3_max_live_parameters", "zero_quantized_weights", "sub_group_size")
            ],
        ),
        (zero(2, stage3_gather_16bit_weights_on_model_save=False, zero_hpz_partition_size=1), []),
        (
            zero(3, allgather_bucket_size=100, round_robin_gradients=True),
            [
                f"{Z}.{key}: has no effect with stage 3; it belongs to stages 1 and 2"
                for key in ("allgather_bucket_size", "round_robin_gradients")
            ],
        ),
        (zero(0, overlap_comm=False), []),
        (zero(0, overlap_comm=True), [f"{Z}.overlap_comm: has no effect without ZeRO; set stage 1, 2 or 3"]),
        ({"fp16": {"enabled": False, "loss_scale": 8}}, []),
        ({"bf16": {}}, []),
        ({"fp16": {"loss_scale": 8}}, ["fp16.enabled: is missing, so that fp16 is off; set it to true"]),
        (
            {"fp16": {**ON, "loss_scale": 8, "hysteresis": 2}},
            ["fp16.hysteresis: has no effect with a fixed loss scale; set fp16.loss_scale: 0"],
        ),
        (
            {"pipeline": {}, **zero(1, overlap_comm=True)},
            [f"{Z}.overlap_comm: is switched off by the pipeline engine"],
        ),
        # offload
        (zero(3, offload_param=CPU, offload_optimizer=CPU), []),
        (zero(2, offload_param={"device": "none"}), []),
        (
            zero(2, offload_param=CPU),
            [f"{Z}.offload_param: has no effect with stage 2; parameters are offloaded with stage 3"],
        ),
        (
            zero(0, offload_optimizer=CPU),
            [f"{Z}.offload_optimizer: has no effect without ZeRO; set stage 1, 2 or 3"],
        ),
        (
            zero(1, offload_optimizer=NVME),
            [f"{Z}.offload_optimizer.device: nvme means the CPU's memory with stage 1; the disk is used with stage 3"],
        ),
        (
            zero(3, offload_optimizer={**CPU, "pipeline_read": True, "fast_init": True, "pipeline_write": False}),
            [f"{Z}.offload_optimizer.{key}: works with device nvme only" for key in ("pipeline_read", "fast_init")],
        ),
        ({**zero(3, offload_optimizer={**NVME, "buffer_count": 4}), **optimizer("Adam")}, []),
        (
            {**zero(3, offload_optimizer={**NVME, "buffer_count": 3}), **optimizer("Adam")},
            [
                f"{Z}.offload_optimizer.buffer_count: should be at least 4 with Adam:"
                " parameter, gradient, momentum and variance"
            ],
        ),
        (
            zero(2, offload_optimizer={**CPU, "super_offload": True}),
            [f"{Z}.offload_optimizer.super_offload: has no effect without stage 3"],
        ),
        (
            zero(3, offload_optimizer={"cpuadam_cores_perc": 0.5, "ratio": 0.5}),
            [
                f"{Z}.offload_optimizer.cpuadam_cores_perc: has no effect without super_offload: true",
                f"{Z}.offload_optimizer.ratio: has no effect without a device cpu or nvme",
            ],
        ),
        (zero(0, zenflow={}), [f"{Z}.zenflow: has no effect without ZeRO; set stage 1 or 2"]),
        (
            zero(3, zenflow={}),
            [f"{Z}.zenflow: is made for an offloaded optimizer; set offload_optimizer.device: cpu"],
        ),
        (
            {**zero(2, zenflow={}, offload_optimizer=CPU), "gradient_accumulation_steps": 4},
            [
                f"{Z}.zenflow.update_interval: takes the place of gradient_accumulation_steps,"
                " which has no effect with zenflow"
            ],
        ),
        # memory
        (zero(2, overlap_comm=True, reduce_bucket_size=500_000_000), []),
        (
            {**zero(2, overlap_comm=True, reduce_bucket_size=2_000_000_000), "bf16": ON},
            [
                f"{Z}.reduce_bucket_size: takes 8 GB of every GPU (two buffers, because of overlap_comm);"
                " 2e8 to 5e8 is usual"
            ],
        ),
        (
            zero(3, reduce_bucket_size=2_000_000_000),
            [f"{Z}.reduce_bucket_size: takes 8 GB of every GPU (one buffer); 2e8 to 5e8 is usual"],
        ),
        (zero(3, reduce_bucket_size=2_000_000_000, contiguous_gradients=False), []),
        (zero(3, offload_optimizer=NVME), []),
        (
            zero(3, offload_optimizer=NVME, sub_group_size=1_000_000_000_000),
            [
                f"{Z}.sub_group_size: with buffer_count 4 lets each rank pin up to 16000 GB of host memory;"
                " 1e8 to 1e9 is usual"
            ],
        ),
        # what is slow
        ({"wall_clock_breakdown": True}, [f"wall_clock_breakdown: {STEPS}"]),
        (
            {"flops_profiler": ON, "comms_logger": ON},
            [f"{k}.enabled: {STEPS}" for k in ("flops_profiler", "comms_logger")],
        ),
        (
            zero(3, stage3_gather_16bit_weights_on_model_save=True),
            [f"{Z}.stage3_gather_16bit_weights_on_model_save: {GATHERS}"],
        ),
        (
            {**zero(2, offload_optimizer=CPU), **optimizer("AdamW", torch_adam=True)},
            ["optimizer.params.torch_adam: is slow on the CPU, where the offloaded optimizer works"],
        ),
        (
            {**zero(2, offload_optimizer=CPU), **optimizer("SGD")},
            ["optimizer.type: 'SGD' has no version for the CPU, where the offloaded optimizer works"],
        ),
        ({"vocabulary_size": 50304}, []),
        (
            {"vocabulary_size": 50257},
            ["vocabulary_size: 50257 is not a multiple of 8, which tensor cores need to be fast"],
        ),
        # what only the script, the image or the model can make work
        ({"activation_checkpointing": {"cpu_checkpointing": False}}, []),
        (
            {"activation_checkpointing": {"cpu_checkpointing": True}},
            ["activation_checkpointing: works only if the model calls deepspeed.checkpointing; the engine does not"],
        ),
        (
            {"activation_checkpointing": {"contiguous_memory_optimization": True, "partition_activations": True}},
            [
                "activation_checkpointing.number_checkpoints: is missing, and contiguous_memory_optimization needs it;"
                " give it, unless the script does in its code",
                "activation_checkpointing: works only if the model calls deepspeed.checkpointing; the engine does not",
            ],
        ),
        (
            {"compile": {"deepcompile": True}},
            [
                "compile.deepcompile: works only if the script calls engine.compile()",
                "compile.deepcompile: does no more than torch.compile without ZeRO; set stage 1, 2 or 3",
            ],
        ),
        (
            {"compile": {"offload_activation": True}},
            ["compile.offload_activation: has no effect without compile.deepcompile: true"],
        ),
        (optimizer("MuAdam"), ["optimizer.type: 'MuAdam' needs the Python package mup"]),
        ({"aio": {"use_gds": True}}, ["aio.use_gds: works with NVIDIA GPUs and GPUDirect Storage only"]),
        (
            {"pipeline": {}, "bf16": ON, "gradient_accumulation_steps": 8},
            [f"bf16.enabled: gradients add up in bf16 with a pipeline without ZeRO; {Z}.stage 1 is more exact"],
        ),
    ],
)
def test_warnings(config: dict[str, Any], found: list[str]) -> None:
    assert [str(warning) for warning in warnings({"gradient_clipping": 1, **config}, NEWEST)] == found


def test_a_default_that_changed() -> None:
    assert [str(warning) for warning in warnings({}, Version(0, 19, 3))] == [CLIPPING]
    assert warnings({}, Version(0, 19, 2)) == []
    assert warnings({"gradient_clipping": "auto"}, NEWEST) == []


def locked(*keys: str, default: bool, memlock: int = 64) -> list[str]:
    return [
        f"{key}: pins host memory{' (the default)' if default else ''}, but the job's processes may lock {memlock} KiB"
        " only; raise memlock (ulimit -l, docker run --ulimit memlock=-1), or set it to false, which is slower"
        for key in keys
    ]


OPTIMIZER, PARAM = f"{Z}.offload_optimizer.pin_memory", f"{Z}.offload_param.pin_memory"
PINNED = {**CPU, "pin_memory": True}


@pytest.mark.parametrize(
    ("config", "version", "found"),
    [
        (zero(3, offload_optimizer=CPU, offload_param=CPU), NEWEST, locked(OPTIMIZER, PARAM, default=True)),
        (zero(3, offload_optimizer=CPU, offload_param=CPU), Version(0, 19, 4), []),
        (zero(2, offload_optimizer=PINNED), Version(0, 15, 4), locked(OPTIMIZER, default=False)),
        (zero(2, offload_optimizer={**CPU, "pin_memory": False}), NEWEST, []),
        (zero(2, offload_optimizer={"device": "none"}), NEWEST, []),
        (
            {**zero(3), "compile": {"deepcompile": True, "offload_activation": True}},
            NEWEST,
            [
                "compile.deepcompile: works only if the script calls engine.compile()",
                *locked("compile.offload_activation_pin_memory", default=True),
            ],
        ),
    ],
)
def test_pinned_memory_and_memlock(config: dict[str, Any], version: Version, found: list[str]) -> None:
    config = {"gradient_clipping": 1, **config}
    small = [str(warning) for warning in warnings(config, version, memlock=64 * 1024)]
    assert sorted(small) == sorted(found)
    silent = [text for text in found if "pins host memory" not in text]
    for enough in (None, -1, 2**30, 2**40):
        assert [str(warning) for warning in warnings(config, version, memlock=enough)] == silent


@pytest.mark.parametrize("version", KNOWN_VERSIONS, ids=str)
@pytest.mark.parametrize("integration", ["deepspeed", "huggingface", "accelerate"])
def test_no_preset_warns_on_its_own(version: Version, integration: str) -> None:
    for name in available(version):
        for precision in ({}, {"fp16": ON}, {"bf16": ON}):
            assert warnings({**preset(name, integration, version), **precision}, version) == [], name


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.builds(pow, st.just(10), st.just(5000)),
    st.floats(allow_nan=True),
    st.sampled_from(["auto", "cpu", "nvme", "fp16", "bf16", "Adam", "Muon", "step", "sum", "\ud800", "x" * 500]),
)
JSON = st.recursive(
    VALUES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
)
BLOCK_NAMES = sorted({name.split(".")[0] for name in BLOCKS if name})


def blocks(name: str) -> st.SearchStrategy[Any]:
    """A mapping with keys of the block, inner blocks among them, and any values."""
    keys = sorted(BLOCKS.get(name, {})) or ["x"]
    inner = {
        key: st.one_of(VALUES, JSON, *([blocks(f"{name}.{key}")] if f"{name}.{key}" in BLOCKS else [])) for key in keys
    }
    return st.lists(st.sampled_from(keys), unique=True, max_size=6).flatmap(
        lambda chosen: st.fixed_dictionaries({key: inner[key] for key in chosen})
    )


CONFIGS = st.one_of(
    st.dictionaries(st.text(max_size=8), JSON, max_size=4),
    st.lists(st.sampled_from(BLOCK_NAMES), unique=True, max_size=6).flatmap(
        lambda chosen: st.fixed_dictionaries({name: st.one_of(blocks(name), blocks(name), JSON) for name in chosen})
    ),
    st.dictionaries(st.sampled_from(sorted(BLOCKS[""])), JSON, max_size=8),
)


@settings(max_examples=examples(1500), deadline=None, derandomize=True)
@given(
    config=CONFIGS,
    version=st.sampled_from(KNOWN_VERSIONS),
    ranks=st.sampled_from([None, 1, 3, 8]),
    memlock=st.sampled_from([None, -1, 0, 65536]),
)
def test_any_input_ends_in_words(
    config: dict[str, Any], version: Version, ranks: int | None, memlock: int | None
) -> None:
    for problem in [*conflicts(config, version, world_size=ranks), *warnings(config, version, memlock)]:
        assert problem.path
        assert 0 < len(str(problem)) <= 500
