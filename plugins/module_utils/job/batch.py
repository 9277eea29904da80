# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Among how many ranks DeepSpeed splits a batch.

Also part of the supervisor's archive: standard library, Python 3.8 or later. Read in DeepSpeed 0.15.4, 0.16.9, 0.17.6,
0.18.9 and 0.19.8 (``initialize`` in __init__.py, runtime/config.py, runtime/pipe/module.py and topology.py):

- A script whose model is a PipelineModule has its configuration read for ``world size / num_stages`` ranks. The number
  of stages is an argument of the script's; DeepSpeed itself reads ``pipeline.stages`` nowhere. So a number there is
  taken as what the script says, and without one the ranks are not known.
- ``sequence_parallel_size`` divides, ``tensor_parallel.autotp_size`` does not: the batch equation counts all its ranks.
"""

from __future__ import annotations

from typing import Any

AUTO = "auto"


def positive(value: object) -> bool:
    """Whether it is a whole number above 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def batch_ranks(config: dict[str, Any], world_size: int) -> tuple[int | None, tuple[str, str]]:
    """The ranks, or ``None`` where only the script knows them; and (path, words) of what does not fit, else empty."""
    pipeline = config.get("pipeline")
    stages = pipeline.get("stages", AUTO) if isinstance(pipeline, dict) else 1
    if stages == AUTO and world_size > 1:
        return None, ("", "")
    ranks = world_size
    for path, divisor in (
        ("pipeline.stages", 1 if stages == AUTO else stages),
        ("sequence_parallel_size", config.get("sequence_parallel_size", 1)),
    ):
        if not positive(divisor):
            return None, ("", "")
        if ranks % divisor:
            return None, (path, f"{divisor} does not divide the {ranks} ranks of world_size {world_size}")
        ranks //= divisor
    wanted = config.get("data_parallel_size")
    if positive(wanted) and wanted != ranks:
        return None, ("data_parallel_size", f"is {wanted}, but world_size {world_size} leaves {ranks}")
    return ranks, ("", "")
