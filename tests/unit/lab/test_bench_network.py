# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Rows of `make bench` from reports that are made up."""

from __future__ import annotations

from typing import Any

from ansible_collections.swarmspeed.cluster.tests.bench.network import rows


def report(rate: float) -> dict[str, Any]:
    pairs = [{"gigabits_per_second": rate * part} for part in (1, 2, 9)]
    group = [
        {"op": op, "bytes": size, "busbw_gigabytes_per_second": rate * size / 1000}
        for op in ("all_reduce", "all_gather")
        for size in (1000, 4000)
    ]
    network = {"pairs": pairs, "collectives": group}
    return {"floor": {"pairs": pairs}, "networks": {"host": network, "overlay": network}}


def test_rows() -> None:
    found = {row.name: row for row in rows(report(number) for number in (1, 2))}
    assert found["pair, overlay"].values == [2.0, 4.0]
    assert found["all_reduce, host"].values == [4.0, 8.0]
    assert (found["all_reduce, host"].unit, found["pair, host"].unit) == ("GB/s", "Gbit/s")
    assert {row.floor for row in found.values()} <= {"", *found}
