# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which job can go on with fewer ranks, and with what batch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.batch import solve
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.shrink import ShrinkError, refusal, shrink
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("config", "old", "new", "steps"),
    [
        ({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2}, 4, 3, 4),
        ({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3}, 4, 2, 6),
        ({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3}, 2, 1, 6),
        ({"train_micro_batch_size_per_gpu": 2}, 4, 2, 2),
        ({"train_batch_size": 24}, 4, 2, 2),
        ({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "pipeline": {"stages": 2}}, 4, 2, 4),
        # all ranks count for a batch, tensor-parallel ones too
        ({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, "tensor_parallel": {"autotp_size": 2}}, 4, 2, 4),
    ],
)
def test_shrinking_keeps_the_batch(config: dict[str, Any], old: int, new: int, steps: int) -> None:
    before = copy.deepcopy(config)
    changed, text = shrink({**config, "bf16": {"enabled": True}}, old, new)
    ranks = new // config.get("pipeline", {}).get("stages", 1)
    assert changed["gradient_accumulation_steps"] == steps
    assert changed["train_batch_size"] == changed["train_micro_batch_size_per_gpu"] * steps * ranks
    assert changed["bf16"] == {"enabled": True}
    assert f"stays {changed['train_batch_size']} " in text
    assert config == before


def test_what_shrinking_says() -> None:
    config = {"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2, "data_parallel_size": 4}
    assert shrink(config, 4, 3) == (
        {**config, "gradient_accumulation_steps": 4, "data_parallel_size": 3},
        "3 instead of 4 ranks: gradient_accumulation_steps 3 becomes 4, so train_batch_size stays 24 and the micro "
        "batch 2; a step takes 1.33 times as long.",
    )


@pytest.mark.parametrize(
    ("config", "old", "new", "text"),
    [
        (
            {"train_batch_size": 16, "train_micro_batch_size_per_gpu": "auto"},
            4,
            2,
            "train_micro_batch_size_per_gpu is 'auto': the script sets it, so the batch for 2 ranks is not known here. "
            "Give the three batch sizes as numbers in ds_config.json, and the same to the script.",
        ),
        ({}, 4, 2, "ds_config.json has neither train_batch_size nor train_micro_batch_size_per_gpu: give one."),
        (
            {"elasticity": {"enabled": True}},
            4,
            2,
            "elasticity sets the batch sizes itself: shrink by hand, within its min_gpus and max_gpus.",
        ),
        (
            {"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1},
            4,
            2,
            "train_batch_size 10 is not micro batch 2 * accumulation 1 * 4 data-parallel ranks: the configuration does "
            "not fit the job as it is.",
        ),
        (
            {"train_batch_size": 8, "pipeline": {"stages": 2}},
            4,
            3,
            "pipeline.stages 2 does not divide the 3 ranks of world_size 3.",
        ),
        (
            {"train_batch_size": 8, "pipeline": {"stages": "auto"}},
            4,
            2,
            "pipeline.stages is 'auto': the script sets it, and the ranks it takes are not known.",
        ),
        (
            {"train_batch_size": 8, "tensor_parallel": {"autotp_size": 2}},
            4,
            1,
            "tensor_parallel.autotp_size 2 does not divide 1 data-parallel ranks.",
        ),
        (
            {"train_batch_size": 8, "expert_parallel": {"autoep_size": 4}},
            4,
            2,
            "expert_parallel.autoep_size 4 does not divide 2 data-parallel ranks.",
        ),
        (
            {"train_batch_size": 8, "zero_optimization": {"zero_hpz_partition_size": 4}},
            4,
            2,
            "zero_optimization.zero_hpz_partition_size 4 does not divide 2 data-parallel ranks.",
        ),
    ],
)
def test_what_cannot_be_shrunk_says_why(config: dict[str, Any], old: int, new: int, text: str) -> None:
    with pytest.raises(ShrinkError) as raised:
        shrink(config, old, new)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("total", "micro", "new", "becomes", "steps"),
    [(16, 2, 3, 18, 3), (8, 2, 3, 6, 1), (20, 1, 3, 21, 7), (4, 1, 3, 3, 1), (4, 1, 5, 5, 1)],
)
def test_a_batch_that_cannot_stay_becomes_the_nearest(
    total: int, micro: int, new: int, becomes: int, steps: int
) -> None:
    changed, text = shrink({"train_batch_size": total, "train_micro_batch_size_per_gpu": micro}, 4, new)
    assert (changed["train_batch_size"], changed["gradient_accumulation_steps"]) == (becomes, steps)
    assert f"train_batch_size {total} becomes {becomes}, the nearest multiple of micro batch {micro} * {new} " in text
    assert text.endswith("The learning rate stays as it is.")


@pytest.mark.parametrize(
    "config",
    [
        {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"},
        {"train_micro_batch_size_per_gpu": "auto"},
        {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4},
    ],
)
def test_a_batch_that_the_script_sets_is_left_to_it(config: dict[str, Any]) -> None:
    assert shrink(config, 4, 3) == (
        config,
        "3 instead of 4 ranks: the script sets the batch, which gets smaller where it does not make up for them.",
    )


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 12), st.data())
def test_shrinking_holds_for_any_numbers(micro: int, steps: int, old: int, data: st.DataObject) -> None:
    new = data.draw(st.integers(1, old))
    total = micro * steps * old
    changed, text = shrink({"train_batch_size": total, "train_micro_batch_size_per_gpu": micro}, old, new)
    made, after = changed["train_batch_size"], changed["gradient_accumulation_steps"]
    assert changed["train_micro_batch_size_per_gpu"] == micro and made == micro * after * new
    unit = micro * new
    assert abs(made - total) == min(total % unit, unit - total % unit) if total >= unit else made == unit
    assert (f"stays {total}" in text) == (made == total)
    again, problems = solve(changed, new)
    assert not problems and again is not None and again["train_batch_size"] == made


ZERO1 = (
    "zero_optimization.stage is 1, and DeepSpeed does not load a checkpoint of ZeRO into another number of ranks. "
    "Possible with stage 0, or from a universal checkpoint (checkpoint.load_universal: true)."
)
BATCH = {"train_batch_size": 24, "train_micro_batch_size_per_gpu": 2}
BF16: dict[str, Any] = {**BATCH, "bf16": {"enabled": True}}


@pytest.mark.parametrize(
    ("config", "release", "why"),
    [
        (None, "0.15.4", ""),
        (BATCH, "0.15.4", ""),
        ({**BATCH, "zero_optimization": {"stage": 0}}, "", ""),
        ({**BATCH, "fp16": {"enabled": True}}, "0.15.4", ""),
        ({**BATCH, "zero_optimization": {"stage": 1}}, "0.19.8", ZERO1),
        ({**BATCH, "zero_optimization": True}, "0.19.8", ZERO1),
        ({**BATCH, "zero_optimization": {"stage": "1"}}, "0.19.8", ZERO1),
        ({**BATCH, "zero_optimization": {"stage": 1, "elastic_checkpoint": True}}, "0.19.8", ZERO1),
        ({**BATCH, "zero_optimization": {"stage": 3}, "checkpoint": {"load_universal": True}}, "0.19.8", ""),
        (BF16, "0.18.9", ""),
        (BF16, "0.19.8+cpu", ""),
        (BF16, "", ""),
        (
            BF16,
            "0.17.6",
            "DeepSpeed 0.17.6 splits bf16's optimizer states among the ranks, also without ZeRO. Possible from 0.18.9 "
            "on, or with fp16 or fp32.",
        ),
        (
            {**BF16, "pipeline": {"stages": 2}},
            "0.19.8",
            "with bf16 and a pipeline each rank keeps a part of the optimizer's state. Possible with fp16 or fp32.",
        ),
        ({}, "0.19.8", "ds_config.json has neither train_batch_size nor train_micro_batch_size_per_gpu: give one."),
    ],
)
def test_what_a_job_with_that_configuration_could_not(config: dict[str, Any] | None, release: str, why: str) -> None:
    assert refusal(config, [2, 1, 1], release) == why


def test_one_node_that_could_be_left_out_is_enough() -> None:
    config = {**BATCH, "pipeline": {"stages": 2}}
    assert refusal(config, [2, 2], "") == ""
    assert refusal(config, [2, 1, 2, 1], "") == ""
    assert refusal(config, [3, 1], "") == "pipeline.stages 2 does not divide the 3 ranks of world_size 3."
    assert refusal(config, [4], "") == ""  # no node could be left out: nothing to refuse
