# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The batch equation of DeepSpeed: derive the missing value, refuse what does not fit, name what would.

``train_batch_size == train_micro_batch_size_per_gpu * gradient_accumulation_steps * data-parallel ranks``
(DeepSpeed 0.19.8, runtime/config.py, ``_set_batch_related_parameters`` and ``_batch_assertion``). DeepSpeed derives
with integer division and asserts at start-up, on every rank; here the same happens before anything is written. Which
ranks count is in job/batch.py: the check in the container (job/ds_config_check.py) goes by the same.
"""

from __future__ import annotations

from typing import Any

from ..common.problems import Problem
from ..job.batch import batch_ranks, positive

TOTAL = "train_batch_size"
MICRO = "train_micro_batch_size_per_gpu"
STEPS = "gradient_accumulation_steps"


def solve(config: dict[str, Any], world_size: int | None) -> tuple[dict[str, int] | None, list[Problem]]:
    """The three values and ``data_parallel_size``, or ``None`` where they are not known yet; and what does not fit.

    Not known: without ``world_size``, with a value that an integration fills in, with a pipeline whose number of
    stages only the training script knows, or with ``elasticity`` (before 0.19.8), which sets the batch itself. What can
    be checked without the number of ranks is checked all the same.
    """
    elastic = config.get("elasticity")
    if isinstance(elastic, dict) and elastic.get("enabled") is True:
        return None, _elastic(config, elastic)
    total, micro, steps = config.get(TOTAL), config.get(MICRO), config.get(STEPS)
    if any(value is not None and not positive(value) for value in (total, micro, steps)):
        return None, []  # "auto", or wrong, which the schema has reported
    if total is None and micro is None:
        text = f"is missing: give {TOTAL} or {MICRO}; DeepSpeed does not start without one of them"
        return None, [Problem(TOTAL, text)]
    ranks, (path, words) = batch_ranks(config, world_size) if world_size is not None else (None, ("", ""))
    errors = [Problem(path, words)] if path else []
    known = ranks or 1
    unit = (micro or 1) * (steps or 1) * known
    if not errors and total and (total % unit or (micro and steps and ranks and total != unit)):
        errors = [Problem(TOTAL, _misfit(total, micro, steps, ranks))]
    if errors or ranks is None:
        return None, errors
    steps = steps or (total // (micro * known) if total and micro else 1)
    micro = micro or (total or unit) // (steps * known)
    total = total or unit
    return {TOTAL: total, MICRO: micro, STEPS: steps, "data_parallel_size": ranks}, []


def _elastic(config: dict[str, Any], elastic: dict[str, Any]) -> list[Problem]:
    """Elastic training computes the batch sizes, and DeepSpeed refuses any other unless configured to ignore them."""
    if elastic.get("ignore_non_elastic_batch_info") is True:
        return []
    text = "is set by elasticity: remove it, or set elasticity.ignore_non_elastic_batch_info: true"
    return [Problem(key, text) for key in (TOTAL, MICRO, STEPS) if key in config]


def _misfit(total: int, micro: int | None, steps: int | None, ranks: int | None) -> str:
    parts = [(MICRO, micro), (STEPS, steps), ("data-parallel ranks", ranks)]
    given = [(name, value) for name, value in parts if value is not None]
    unit = (micro or 1) * (steps or 1) * (ranks or 1)
    product = " * ".join(f"{name} {value}" for name, value in given)
    if len(given) == len(parts) and micro and steps and ranks:
        offers = [f"{TOTAL} {unit}"]
        if total % (micro * ranks) == 0:
            offers.append(f"{STEPS} {total // (micro * ranks)}")
        if total % (steps * ranks) == 0:
            offers.append(f"{MICRO} {total // (steps * ranks)}")
        return f"{total} is not {product} = {unit}; possible is {' or '.join(offers)}"
    below = total // unit * unit
    nearest = f"{below} or {below + unit}" if below else str(unit)
    return f"{total} is not a multiple of {product} = {unit}; the nearest possible is {nearest}"
