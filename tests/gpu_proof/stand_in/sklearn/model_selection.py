# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A stand-in for sklearn.model_selection: a stratified split by a seed. Its choice is not scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy


def train_test_split(
    numbers: Iterable[int], *, test_size: float, random_state: int, stratify: Sequence[Any]
) -> tuple[list[int], list[int]]:
    """Return numbers to train on and numbers held out, the same share of every class."""
    everything, labels = list(numbers), numpy.asarray(stratify)
    generator = numpy.random.default_rng(random_state)
    held: set[int] = set()
    for label in sorted(set(labels.tolist())):
        members = numpy.flatnonzero(labels == label)
        held.update(generator.permutation(members)[: round(test_size * len(members))].tolist())
    train = [everything[place] for place in range(len(everything)) if place not in held]
    return train, [everything[place] for place in sorted(held)]
