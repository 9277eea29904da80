# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Each pair once, no node twice in a round, no more rounds than necessary."""

from __future__ import annotations

from itertools import combinations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.fabric.pair_rounds import rounds


@pytest.mark.parametrize("count", [*range(13), 63, 64])
def test_every_pair_once_and_no_one_twice_in_a_round(count: int) -> None:
    names = [f"n{index}" for index in range(count)]
    found = rounds(names)
    assert sorted(pair for pairs in found for pair in pairs) == sorted(combinations(names, 2))
    for pairs in found:
        busy = [name for pair in pairs for name in pair]
        assert len(busy) == len(set(busy))
    assert len(found) <= max(0, count - 1 + count % 2)


def test_the_earlier_of_the_names_given_comes_first() -> None:
    assert rounds(["z", "a"]) == [[("z", "a")]]
