# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The batch equation: derived values, misfits and the values offered instead."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.batch import MICRO, STEPS, TOTAL, solve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

SIZES = st.integers(1, 48) | st.none()


def batch(total: Any = None, micro: Any = None, steps: Any = None, **more: Any) -> dict[str, Any]:
    values = {TOTAL: total, MICRO: micro, STEPS: steps, **more}
    return {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize(
    ("config", "world_size", "solved"),
    [
        (batch(total=32, micro=16, steps=1), 2, (32, 16, 1, 2)),
        (batch(total=32, micro=8), 2, (32, 8, 2, 2)),
        (batch(total=32, steps=2), 2, (32, 8, 2, 2)),
        (batch(micro=8, steps=2), 2, (32, 8, 2, 2)),
        (batch(total=32), 2, (32, 16, 1, 2)),
        (batch(micro=8), 2, (16, 8, 1, 2)),
        (batch(total=8, micro=1, sequence_parallel_size=2), 8, (8, 1, 2, 4)),
        (batch(total=8, micro=1, pipeline={"stages": 4}), 8, (8, 1, 4, 2)),
        (batch(micro=1, data_parallel_size=4, sequence_parallel_size=2), 8, (4, 1, 1, 4)),
        (batch(micro=2, pipeline={"stages": "auto"}), 1, (2, 2, 1, 1)),
    ],
)
def test_the_missing_value_is_derived(config: dict[str, Any], world_size: int, solved: tuple[int, ...]) -> None:
    result, errors = solve(config, world_size)
    assert errors == []
    assert result == dict(zip([TOTAL, MICRO, STEPS, "data_parallel_size"], solved))


@pytest.mark.parametrize(
    ("config", "world_size", "error"),
    [
        (
            {},
            2,
            "train_batch_size: is missing: give train_batch_size or train_micro_batch_size_per_gpu;"
            " DeepSpeed does not start without one of them",
        ),
        (
            batch(steps=2),
            None,
            "train_batch_size: is missing: give train_batch_size or train_micro_batch_size_per_gpu;"
            " DeepSpeed does not start without one of them",
        ),
        (
            batch(total=33, micro=2, steps=5),
            3,
            "train_batch_size: 33 is not train_micro_batch_size_per_gpu 2 * gradient_accumulation_steps 5"
            " * data-parallel ranks 3 = 30; possible is train_batch_size 30",
        ),
        (
            batch(total=60, micro=2, steps=5),
            3,
            "train_batch_size: 60 is not train_micro_batch_size_per_gpu 2 * gradient_accumulation_steps 5"
            " * data-parallel ranks 3 = 30; possible is train_batch_size 30 or gradient_accumulation_steps 10"
            " or train_micro_batch_size_per_gpu 4",
        ),
        (
            batch(total=33, micro=2),
            3,
            "train_batch_size: 33 is not a multiple of train_micro_batch_size_per_gpu 2 * data-parallel ranks 3 = 6;"
            " the nearest possible is 30 or 36",
        ),
        (
            batch(total=2),
            3,
            "train_batch_size: 2 is not a multiple of data-parallel ranks 3 = 3; the nearest possible is 3",
        ),
        (
            batch(total=33, micro=2),
            None,
            "train_batch_size: 33 is not a multiple of train_micro_batch_size_per_gpu 2 = 2;"
            " the nearest possible is 32 or 34",
        ),
        (batch(micro=1, pipeline={"stages": 3}), 8, "pipeline.stages: 3 does not divide the 8 ranks of world_size 8"),
        (
            batch(micro=1, pipeline={"stages": 4}, sequence_parallel_size=3),
            8,
            "sequence_parallel_size: 3 does not divide the 2 ranks of world_size 8",
        ),
        (batch(micro=1, data_parallel_size=4), 8, "data_parallel_size: is 4, but world_size 8 leaves 8"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(
    config: dict[str, Any], world_size: int | None, error: str
) -> None:
    result, errors = solve(config, world_size)
    assert result is None
    assert [str(found) for found in errors] == [error]


@pytest.mark.parametrize(
    ("config", "world_size"),
    [
        (batch(total="auto", micro="auto"), 8),
        (batch(total=7, micro="auto"), 8),
        (batch(total=8, micro=2), None),
        (batch(micro=2, pipeline={}), 8),
        (batch(micro=2, pipeline={"stages": "auto"}), 8),
        (batch(total=-8), 8),
        (batch(total=True), 8),
        ({"elasticity": {"enabled": True}}, 8),
        (batch(total=8, elasticity={"enabled": True, "ignore_non_elastic_batch_info": True}), 8),
    ],
)
def test_what_is_not_known_yet(config: dict[str, Any], world_size: int | None) -> None:
    assert solve(config, world_size) == (None, [])


def test_elasticity_sets_the_batch_itself() -> None:
    result, errors = solve(batch(total=8, steps=1, elasticity={"enabled": True}), 8)
    assert result is None
    text = "is set by elasticity: remove it, or set elasticity.ignore_non_elastic_batch_info: true"
    assert [str(error) for error in errors] == [f"{TOTAL}: {text}", f"{STEPS}: {text}"]
    assert solve(batch(total=8, elasticity={"enabled": False}), 8)[0] is not None


@given(SIZES, SIZES, SIZES, st.integers(1, 9))
@settings(max_examples=examples(300), deadline=None, derandomize=True)
def test_the_equation_holds_or_no_whole_numbers_fit(
    total: int | None, micro: int | None, steps: int | None, world_size: int
) -> None:
    config = batch(total, micro, steps)
    result, errors = solve(config, world_size)
    fits = [
        (t, m, s)
        for m in ([micro] if micro else range(1, 49))
        for s in ([steps] if steps else range(1, 49))
        for t in [m * s * world_size]
        if total in (None, t)
    ]
    if result is None:
        assert errors
        # gradient accumulation without a second value is refused by DeepSpeed too
        assert not fits or (total is None and micro is None)
    else:
        assert not errors
        assert result[TOTAL] == result[MICRO] * result[STEPS] * world_size
        assert {key: result[key] for key in config} == config
