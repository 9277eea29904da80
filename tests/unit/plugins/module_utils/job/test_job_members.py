# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Which ranks run where."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.members import placed, ranks_by_node, world_size
from hypothesis import given
from hypothesis import strategies as st

SLOTS = st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=8, unique=True), max_size=8)


@pytest.mark.parametrize(
    ("slots", "ranks"),
    [
        ([], {}),
        ([[0]], {"n0": range(0, 1)}),
        ([[0, 1], [4], [2, 3, 7]], {"n0": range(0, 2), "n1": range(2, 3), "n2": range(3, 6)}),
    ],
)
def test_ranks_go_along_the_nodes(slots: list[list[int]], ranks: dict[str, range]) -> None:
    assert ranks_by_node([{"name": f"n{number}", "slots": item} for number, item in enumerate(slots)]) == ranks


@given(SLOTS)
def test_each_rank_is_on_one_node(slots: list[list[int]]) -> None:
    members = [{"name": f"n{number}", "slots": item, "address": "a"} for number, item in enumerate(slots)]
    ranks = ranks_by_node(members)
    assert [rank for found in ranks.values() for rank in found] == list(range(world_size(members)))
    assert [len(found) for found in ranks.values()] == [len(item) for item in slots]
    assert [item["first_rank"] for item in placed(members)] == [found.start for found in ranks.values()]
    assert placed(placed(members)) == placed(members)
    assert all(item["address"] == "a" for item in placed(members)) and all("first_rank" not in item for item in members)
