# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""For how many ranks a configuration is read before the start; with real releases in tests/differential."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.batch import solve
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.batch import batch_ranks
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.ds_config_check import BATCH, for_ranks
from hypothesis import given
from hypothesis import strategies as st

FULL = dict(zip(BATCH, (24, 2, 3)))


@pytest.mark.parametrize(
    ("config", "world_size", "given_", "ranks"),
    [
        (FULL, 4, FULL, 4),
        ({**FULL, "pipeline": {"stages": 2}}, 8, {**FULL, "pipeline": {"stages": 2}}, 4),
        ({**FULL, "sequence_parallel_size": 2, "data_parallel_size": 4}, 8, FULL, 4),
        ({**FULL, "tensor_parallel": {"autotp_size": 2}}, 4, {**FULL, "tensor_parallel": {"autotp_size": 2}}, 4),
        # only the script knows the stages: a batch in full cannot be judged, one to be derived can be read
        ({**FULL, "pipeline": {}}, 8, {BATCH[1]: 2, BATCH[2]: 3, "pipeline": {}}, 1),
        ({BATCH[0]: 24, "pipeline": {"stages": "auto"}}, 64, {BATCH[0]: 24, "pipeline": {"stages": "auto"}}, 1),
    ],
)
def test_the_ranks_that_deepspeed_counts(
    config: dict[str, Any], world_size: int, given_: dict[str, Any], ranks: int
) -> None:
    before = dict(config)
    assert for_ranks(config, world_size) == (given_, ranks)
    assert config == before


def test_what_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^pipeline.stages 3 does not divide the 8 ranks of world_size 8$"):
        for_ranks({**FULL, "pipeline": {"stages": 3}}, 8)


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 4))
def test_the_module_and_the_check_count_alike(world_size: int, stages: int, sequence: int) -> None:
    config = {BATCH[1]: 2, "pipeline": {"stages": stages}, "sequence_parallel_size": sequence}
    ranks, (path, _words) = batch_ranks(config, world_size)
    solved, problems = solve(config, world_size)
    assert [problem.path for problem in problems] == ([path] if path else [])
    assert (solved or {}).get("data_parallel_size") == ranks
    if ranks:
        assert ranks * stages * sequence == world_size and for_ranks(config, world_size)[1] == ranks
