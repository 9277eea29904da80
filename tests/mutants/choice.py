# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which mutants are tried: evenly of every target and kind, and the same ones after an unrelated edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tests.mutants.mutant import Mutant

MOST = 400
"""Mutants that are tried at most."""

Cell = TypeVar("Cell")


def shares(sizes: Mapping[Cell, int], most: int = MOST) -> dict[Cell, int]:
    """Return how many of each cell are tried: equal numbers, and where a cell has fewer, the others get the rest."""
    given = dict.fromkeys(sizes, 0)
    left = min(most, sum(sizes.values()))
    while left:
        hungry = [cell for cell in sizes if given[cell] < sizes[cell]]
        each = max(1, left // len(hungry))
        for cell in hungry:
            more = min(each, sizes[cell] - given[cell], left)
            given[cell] += more
            left -= more
    return given


def choose(cells: Mapping[Cell, Sequence[Mutant]], most: int = MOST) -> dict[Cell, list[Mutant]]:
    """Return the mutants of each cell that are tried. Which ones of a cell depends on their names alone."""
    given = shares({cell: len(found) for cell, found in cells.items()}, most)
    return {cell: sorted(found, key=lambda mutant: mutant.order)[: given[cell]] for cell, found in cells.items()}
