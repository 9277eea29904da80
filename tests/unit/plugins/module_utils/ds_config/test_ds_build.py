# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Configurations from presets and overrides, and that any input ends in a file or in words."""

from __future__ import annotations

import copy
import dataclasses
import json
import string
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.build import (
    PRECISIONS,
    Request,
    build,
    merge,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.facts import (
    INTEGRATIONS,
    KNOWN_VERSIONS,
    Version,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory import GPU_RESERVE
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.presets import PRESETS, available, preset
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.rules_releases import release_hints
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.schema import BLOCKS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.text import parse, render, same
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

BATCH = {"train_batch_size": 32}
DISK = {"offload_optimizer": {"nvme_path": "/nvme"}, "offload_param": {"nvme_path": "/nvme"}}
NEEDED: dict[str, dict[str, Any]] = {
    "zero3_infinity": {"zero_optimization": DISK},
    "zenflow": {"optimizer": {"params": {"lr": 1e-5}}},
}
"""What a preset cannot know."""
# the field's most asked question: ten billion parameters on two servers of four 24 GB cards
TEN_BILLION: dict[str, Any] = {
    "preset": "auto",
    "config": {"train_micro_batch_size_per_gpu": 1},
    "model": {"parameters": "10B"},
    "gpus": {"count": 4, "memory": "24564 MiB", "compute_capability": 8.6},
    "host_memory": "256GB",
    "world_size": 8,
}


def errors(**request: Any) -> list[str]:
    return [str(error) for error in build(Request(**request)).errors]


@pytest.mark.parametrize("version", [str(version) for version in KNOWN_VERSIONS])
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_suits_every_release(name: str, version: str) -> None:
    config = {**BATCH, **NEEDED.get(name, {})}
    for precision in PRECISIONS:
        plan = build(Request(preset=name, config=config, precision=precision, deepspeed_version=version, world_size=4))
        if name not in available(Version(*map(int, version.split(".")))):
            assert plan.errors[0].path == "preset"
            continue
        faults = list(release_hints(plan.config, Version(*map(int, version.split(".")))))
        assert (plan.errors, plan.warnings) == ([], faults)
        assert json.loads(render(plan.config)) == plan.config


def test_a_preset_in_full() -> None:
    plan = build(Request(preset="zero2_offload", config=BATCH, precision="bf16", world_size=4))
    assert plan.config == {
        "bf16": {"enabled": True},
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1,
        "train_batch_size": 32,
        "train_micro_batch_size_per_gpu": 8,
        "zero_optimization": {
            "allgather_bucket_size": 200000000,
            "contiguous_gradients": True,
            "offload_optimizer": {"device": "cpu", "pin_memory": True},
            "overlap_comm": False,
            "reduce_bucket_size": 200000000,
            "reduce_scatter": True,
            "round_robin_gradients": True,
            "stage": 2,
        },
    }
    assert plan.batch == {
        "train_batch_size": 32,
        "train_micro_batch_size_per_gpu": 8,
        "gradient_accumulation_steps": 1,
        "data_parallel_size": 4,
    }


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("zero0", 0),
        ("zero1", 1),
        ("zero2", 2),
        ("zero3", 3),
        ("zero2_offload", 2),
        ("zero3_offload", 3),
        ("pipeline", 1),
    ],
)
def test_stage_and_offload_of_presets(name: str, stage: int) -> None:
    zero = build(Request(preset=name, config=BATCH)).config["zero_optimization"]
    assert zero["stage"] == stage
    assert ("offload_optimizer" in zero) is name.endswith("_offload")
    assert ("offload_param" in zero) is (name == "zero3_offload")


@pytest.mark.parametrize("integration", ["huggingface", "accelerate"])
def test_presets_leave_to_hugging_face_what_it_fills_in(integration: str) -> None:
    plan = build(Request(preset="zero3", integration=integration, world_size=4))
    assert (plan.errors, plan.batch) == ([], None)
    autos = {key for key, value in plan.config.items() if value == "auto"}
    assert autos == {
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "gradient_clipping",
    }
    assert plan.config["fp16"] == plan.config["bf16"] == {"enabled": "auto"}
    assert plan.config["zero_optimization"]["reduce_bucket_size"] == "auto"
    assert (
        build(Request(preset="zero2", integration=integration)).config["zero_optimization"]["reduce_bucket_size"] == 2e8
    )


def test_presets_are_fresh_copies() -> None:
    before = copy.deepcopy(preset("zero3_offload", "deepspeed"))
    changed = preset("zero3_offload", "deepspeed")
    changed["zero_optimization"]["offload_param"]["device"] = "nvme"
    assert preset("zero3_offload", "deepspeed") == before
    assert before["zero_optimization"]["offload_optimizer"]["device"] == "cpu"


def test_overrides_are_laid_over_the_preset() -> None:
    overrides = {
        **BATCH,
        "gradient_clipping": None,
        "zero_optimization": {"overlap_comm": None, "reduce_bucket_size": "5e8", "prefetch_bucket_size": 7},
    }
    given_overrides = copy.deepcopy(overrides)
    config = build(Request(preset="zero3", config=overrides)).config
    assert overrides == given_overrides
    assert "gradient_clipping" not in config
    zero = config["zero_optimization"]
    assert (zero["reduce_bucket_size"], zero["stage3_prefetch_bucket_size"]) == (500000000, 7)
    assert "overlap_comm" not in zero
    assert "prefetch_bucket_size" not in zero


@pytest.mark.parametrize(
    ("base", "overrides", "merged"),
    [
        ({"a": 1, "b": {"c": 1, "d": 2}}, {"b": {"c": 3}}, {"a": 1, "b": {"c": 3, "d": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
        ({"a": 2}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
        ({"a": 2}, {"a": None, "z": None}, {}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
    ],
)
def test_merge(base: dict[str, Any], overrides: dict[str, Any], merged: dict[str, Any]) -> None:
    before = copy.deepcopy((base, overrides))
    assert merge(base, overrides) == merged
    assert (base, overrides) == before


def test_errors_of_all_kinds_come_together() -> None:
    plan = build(
        Request(
            preset="pipeline",
            config={
                "train_batch_size": 33,
                "fp16": {"enabled": True},
                "bf16": {"enabled": True, "enable": True},
                "zero_optimization": {"stage": 2, "cpu_offload": True},
                "pipeline": {"stages": 1},
            },
            integration="huggingface",
            precision="fp32",
            deepspeed_version="0.19",
            world_size=2,
        )
    )
    assert [(error.path, error.message.split(";")[0]) for error in plan.errors] == [
        ("deepspeed_version", "'0.19' is not a release"),
        ("preset", "pipeline is not driven by integration huggingface"),
        ("bf16.enable", "is not a key of DeepSpeed 0.19.8"),
        ("fp16.enabled", "is true, but precision is fp32"),
        ("bf16.enabled", "is true, but precision is fp32"),
        ("bf16.enabled", "cannot be true together with fp16.enabled"),
        ("zero_optimization.stage", "2 cannot be combined with pipeline"),
    ]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (
            {},
            f"nothing to write: give a preset ({', '.join(PRESETS)}), config, or both",
        ),
        (
            {"preset": "zero0"},
            "train_batch_size: is missing: give train_batch_size or train_micro_batch_size_per_gpu;"
            " DeepSpeed does not start without one of them",
        ),
        ({"config": [], "preset": "zero1"}, "config: must be a mapping of DeepSpeed's keys, not []"),
        ({"config": BATCH, "preset": 7}, f"preset: 7 is not one of auto, {', '.join(PRESETS)}"),
        ({"config": BATCH, "precision": "int8"}, "precision: 'int8' is not one of auto, fp32, fp16, bf16"),
        (
            {"config": BATCH, "integration": None},
            "integration: nothing is not one of deepspeed, huggingface, accelerate",
        ),
        ({"config": BATCH, "script_keys": "n_epochs"}, "script_keys: must be a list of keys, not 'n_epochs'"),
        ({"config": BATCH, "memlock": -2}, "memlock: must be a whole number of at least -1, not -2"),
        ({"config": BATCH, "host_memory": "much"}, None),
        ({"config": BATCH, "gpus": {"count": 0}}, None),
        ({"config": BATCH, "model": {"parameters": "many"}}, None),
        ({"config": BATCH, "world_size": 0}, "world_size: must be a whole number of at least 1, not 0"),
        ({"config": BATCH, "world_size": True}, "world_size: must be a whole number of at least 1, not true"),
        (
            {"config": BATCH, "world_size": 3},
            "train_batch_size: 32 is not a multiple of data-parallel ranks 3 = 3; the nearest possible is 30 or 33",
        ),
        (
            {"config": BATCH, "deepspeed_version": "newest"},
            "deepspeed_version: 'newest' is not a release; give all three numbers in quotes, as '0.19.8'",
        ),
        (
            {"config": {**BATCH, "fp16": {"enabled": False}}, "precision": "fp16"},
            "fp16.enabled: is false, but precision is fp16; remove one of the two",
        ),
        (
            {"config": {**BATCH, "bf16": None}, "precision": "bf16"},
            "bf16.enabled: is nothing, but precision is bf16; remove one of the two",
        ),
        (
            {"config": {**BATCH, "bf16": {"enabled": "auto"}}, "precision": "fp32", "integration": "accelerate"},
            "bf16.enabled: is 'auto', but precision is fp32; remove one of the two",
        ),
        (
            {"config": {"train_batch_size": float("inf"), "train_batch_sise": 1}},
            "train_batch_size: must be a finite number; JSON has neither infinity nor NaN",
        ),
    ],
)
def test_one_error(request_: dict[str, Any], error: str | None) -> None:
    found = errors(**request_)
    assert len(found) == 1
    # None: the words are those of the part that reads the value, and tested there
    assert found[0].startswith(list(request_)[1]) if error is None else found == [error]


@pytest.mark.parametrize(
    ("version", "facts"), [("0.20.1", "0.19.8"), ("0.17.2", "0.17.6"), ("0.12.0", "0.15.4"), ("v0.16.9+cu121", None)]
)
def test_an_unknown_release_is_checked_as_the_nearest_one(version: str, facts: str | None) -> None:
    plan = build(Request(config={**BATCH, "gradient_clipping": 1}, deepspeed_version=version))
    expected = [f"deepspeed_version: {version} is unknown here; checked as for {facts}"] if facts else []
    assert [str(warning) for warning in plan.warnings] == expected
    assert plan.errors == []


def test_the_fastest_preset_that_fits_and_why() -> None:
    plan = build(Request(**TEN_BILLION))
    assert (plan.errors, plan.warnings, plan.preset, plan.precision) == ([], [], "zero3_offload_optimizer", "bf16")
    assert plan.config["bf16"] == {"enabled": True}
    assert plan.config["zero_optimization"]["offload_optimizer"]["device"] == "cpu"
    assert [reason.split(":")[0] for reason in plan.reasons] == [
        "precision bf16",
        "zero0",
        "zero1",
        "zero2",
        "zero3",
        "zero2_offload",
        "zero3_offload_optimizer",
    ]
    assert plan.memory is not None and plan.memory.fits_gpu and plan.memory.fits_host
    # what was chosen is what is written: asked for by name, it is the same file with the same plan
    named = build(Request(**{**TEN_BILLION, "preset": plan.preset}))
    assert (named.config, named.memory) == (plan.config, plan.memory)


def test_overrides_count_in_the_choice_and_the_plan() -> None:
    short = build(Request(**TEN_BILLION))
    long = build(Request(**{**TEN_BILLION, "config": {"train_micro_batch_size_per_gpu": 4}}))
    assert (short.preset, long.preset) == ("zero3_offload_optimizer", "zero3_offload")
    assert short.memory is not None and long.memory is not None
    assert long.memory.of("gpu", "activations") == 4 * short.memory.of("gpu", "activations")


def test_a_plan_that_is_tight_is_a_warning_with_the_remedy() -> None:
    given = {**TEN_BILLION, "preset": "zero3_offload_optimizer"}
    plan = build(Request(**given))
    assert plan.memory is not None and not plan.memory.tight and plan.warnings == []
    counted = plan.memory.gpu - plan.memory.of("gpu", "reserve")
    nccl = sum(part.bytes for part in plan.memory.parts if part.name == "NCCL between ranks")
    size = (counted + nccl + GPU_RESERVE) * 25 // 24 // 1024**2 + 1
    plan = build(Request(**{**given, "gpus": {**TEN_BILLION["gpus"], "memory": f"{size} MiB"}}))
    assert plan.memory is not None and plan.memory.tight
    assert [str(warning) for warning in plan.warnings] == [
        "memory: a GPU has 13.3 GiB, the plan needs 13.3 GiB, and fragments can take more than is left. If the job"
        " ends with 'CUDA out of memory', set PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True in"
        " deepspeed_launch_environment"
    ]


def test_a_preset_that_does_not_fit_is_a_warning() -> None:
    plan = build(Request(**{**TEN_BILLION, "preset": "zero1", "host_memory": "8GB"}))
    assert plan.errors == []
    assert [str(warning).split(",", maxsplit=1)[0] for warning in plan.warnings] == [
        "memory: a GPU has 24.0 GiB",
        "memory: a host has 7.5 GiB",
    ]


def test_what_auto_misses() -> None:
    assert [error.split(":")[0] for error in errors(preset="auto", config=BATCH)] == [
        "model",
        "gpus.count",
        "gpus.memory",
        "world_size",
    ]
    wrong = errors(**{**TEN_BILLION, "config": {**BATCH, "zero_optimization": {"stagee": 1}}})
    assert wrong == ["zero_optimization.stagee: is not a key of DeepSpeed 0.19.8; did you mean 'stage'?"]


@pytest.mark.parametrize(
    ("capability", "requested", "block"),
    [
        ("9.0", {}, "bf16"),
        ("7.5", {}, "fp16"),
        ("6.1", {}, None),
        ("9.0", {"config": {**BATCH, "fp16": {"enabled": True}}}, "fp16"),
        ("9.0", {"precision": "fp32"}, None),
        ("9.0", {"preset": None}, None),
    ],
)
def test_precision_follows_the_gpus_unless_it_is_configured(
    capability: str, requested: dict[str, Any], block: str | None
) -> None:
    plan = build(
        Request(**{"preset": "zero1", "config": BATCH, "gpus": {"compute_capability": capability}, **requested})
    )
    assert plan.errors == []
    assert {"fp16", "bf16"} & plan.config.keys() == ({block} if block else set())


def test_precision_auto_leaves_it_to_the_config() -> None:
    assert build(Request(preset="zero1", config=BATCH)).config.keys().isdisjoint({"fp16", "bf16"})
    bf16 = {**BATCH, "bf16": {"enabled": True}}
    assert build(Request(preset="zero1", config=bf16)).config["bf16"] == {"enabled": True}
    config = build(Request(preset="zero1", config=bf16, integration="huggingface")).config
    assert ("fp16" in config, config["bf16"]) == (False, {"enabled": True})


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats()
    | st.sampled_from(["auto", "cpu", "5e8", "true", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(sorted({key for fields in BLOCKS.values() for key in fields})), inner, max_size=4
        )
        | st.dictionaries(st.text(string.printable, max_size=8), inner, max_size=2)
    ),
    max_leaves=12,
)
CONFIGS = st.dictionaries(st.sampled_from(sorted(BLOCKS[""])), VALUES, max_size=6)
# so that the fuzz also reaches what is written: one right batch size and few other keys
NEARLY_RIGHT = st.builds(
    lambda flags, zero: {**flags, "train_batch_size": 2520.0, "zero_optimization": zero},
    st.dictionaries(st.sampled_from(["dump_state", "wall_clock_breakdown"]), st.sampled_from(["yes", 1, False, None])),
    st.dictionaries(
        st.sampled_from(["stage", "max_live_parameters", "offload_param"]), st.sampled_from([None, 1, "2"])
    ),
)


@given(
    st.builds(
        Request,
        st.sampled_from([None, *PRESETS]),
        CONFIGS | NEARLY_RIGHT,
        st.sampled_from(PRECISIONS),
        st.sampled_from(INTEGRATIONS),
        st.sampled_from([str(version) for version in KNOWN_VERSIONS]),
        st.none() | st.integers(0, 9),
    )
)
@settings(max_examples=examples(400), deadline=None)
def test_any_input_is_written_or_refused_in_words(request_: Request) -> None:
    plan = build(request_)
    for error in plan.errors:
        assert error.message
        assert error.path or "nothing to write" in error.message
    if not plan.errors:
        # what is written is stable: given back as overrides, it is the same file
        written = parse(render(plan.config))
        again = build(dataclasses.replace(request_, preset=None, config=written, precision="auto"))
        assert (again.errors, render(again.config)) == ([], render(plan.config))
        assert same(parse(render(plan.config)), plan.config)


def test_a_smaller_micro_batch_is_the_first_remedy() -> None:
    requested = {**TEN_BILLION, "config": {"train_batch_size": 128}}
    assert errors(**requested)[0].startswith(
        "preset: auto found none that fits. What would: train_micro_batch_size_per_gpu 4 instead of 16 (zero3_offload)"
    )
    smaller = {**requested, "config": {"train_batch_size": 128, "train_micro_batch_size_per_gpu": 4}}
    assert build(Request(**smaller)).preset == "zero3_offload"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["auto", "10B", "8.6"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
GPUS = st.dictionaries(st.sampled_from(["count", "memory", "compute_capability"]), JSON)
MODELS = st.dictionaries(st.sampled_from(["parameters", "hidden_size", "num_hidden_layers", "vocab_size"]), JSON)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "preset": st.sampled_from(["auto", *PRESETS]) | JSON,
            "config": st.just(BATCH) | JSON,
            "precision": st.sampled_from(PRECISIONS) | JSON,
            "integration": st.sampled_from(INTEGRATIONS) | JSON,
            "deepspeed_version": JSON,
            "world_size": st.integers(1, 64) | JSON,
            "script_keys": st.lists(st.text(max_size=8), max_size=3) | JSON,
            "model": MODELS | JSON,
            "gpus": GPUS | JSON,
            "host_memory": JSON,
            "memlock": JSON,
        },
    )
)
@settings(max_examples=examples(1000), deadline=None, derandomize=True)
def test_any_json_in_any_parameter_ends_in_words(request_: dict[str, Any]) -> None:
    plan = build(Request(**request_))
    assert all(error.message and len(str(error)) < 1500 for error in plan.errors)
    assert plan.errors or json.loads(render(plan.config)) == plan.config
