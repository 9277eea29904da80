# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the console says of the GPUs of a job and of NCCL while it follows the log. All values are invented."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job import live
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.live import AGAIN, CONNECTING, INTERVAL, Vitals

GIB = 1 << 30
IDLES = "chat: GPU 1 of gpu2 (rank 3) idles at 1 %, while the others are at 97 %."
NONE = "chat: none of its GPUs is computing."
ETH = {"network": "Socket", "devices": ["eth0"], "interface": "=eth0", "hcas": ""}


def row(index: int, busy: float | None, memory: float = 71, heat: float = 64) -> list[Any]:
    return [index, busy, busy, int(memory * GIB), 80 * GIB, 612.3, 700.0, heat]


def job(*busy: float | None, memory: float = 71, heat: float = 64, **change: Any) -> dict[str, Any]:
    """Two nodes with half of the GPUs each."""
    half = len(busy) // 2
    parts = {"gpu1": busy[:half], "gpu2": busy[half:]}
    gpus = {node: [row(index, one, memory, heat) for index, one in enumerate(part)] for node, part in parts.items()}
    members = [{"name": f"gpu{node + 1}", "slots": list(range(half)), "first_rank": node * half} for node in range(2)]
    about = {"members": members, "attempt": 1, "log_path": "/srv/jobs/chat/launcher.log", "world_size_expected": 4}
    return {**about, "gpus": gpus, "nccl": {}, **change}


class Console:
    """A view of the job with a clock of its own."""

    def __init__(self) -> None:
        self.now = 50.0
        self._vitals = Vitals("chat", lambda: self.now)

    def after(self, seconds: float, *busy: float | None, **change: Any) -> list[str]:
        self.now += seconds
        return self._vitals.lines(job(*busy, **change))


@pytest.fixture
def console() -> Console:
    return Console()


def test_a_line_of_all_gpus(console: Console) -> None:
    assert console.after(0, 93, 97, 99, 97) == [
        "chat: 4 GPUs: 93–99 % busy, 71 of 80 GiB, 612 of 700 W, 64 °C",
    ]
    bare = [[0, 97.0, 97.0, None, None, None, None, None]]
    alone = [{"name": "gpu1", "slots": [0], "first_rank": 0}]
    assert Console().after(0, gpus={"gpu1": bare}, members=alone) == ["chat: 1 GPU: 97 % busy"]


def test_it_is_said_again_only_where_something_has_changed(console: Console) -> None:
    assert len(console.after(0, 97, 97, 97, 97)) == 1
    assert console.after(INTERVAL, 97, 97, 97, 90) == []
    assert len(console.after(1, 60, 61, 62, 63)) == 1
    assert console.after(INTERVAL - 1, 97, 97, 97, 97) == []  # not sooner
    assert len(console.after(1, 97, 97, 97, 97.5)) == 1
    assert len(console.after(INTERVAL, 97, 97, 97, 97, memory=79)) == 1
    assert len(console.after(INTERVAL, 97, 97, 97, 97, memory=79, heat=74)) == 1
    assert console.after(10 * INTERVAL, 97, 97, 97, 97, memory=76, heat=70) == []


def test_one_that_idles_is_named_now_and_then(console: Console) -> None:
    begun = console.after(0, 97, 97, 97, 1)
    assert len(begun) == 2 and begun[1].startswith(IDLES)
    assert "Remedy: find out what that rank waits for" in begun[1]
    assert begun[1].endswith("gpu2:/srv/jobs/chat/ranks/rank-00003.log")
    assert console.after(AGAIN - 1, 97, 97, 97.5, 1) == []
    assert [line[: len(IDLES)] for line in console.after(1, 97, 97, 97, 1)] == [IDLES]
    assert console.after(1, 97, 97, 97, 96) == []
    assert [line[: len(IDLES)] for line in console.after(1, 97, 97, 97, 1)] == [IDLES]  # once more


def test_that_none_computes_is_said_when_it_lasts(console: Console) -> None:
    assert len(console.after(0, 0, 0, 0, 0)) == 1
    assert console.after(live.NONE_COMPUTES - 1, 0, 0, 0, 1) == []
    assert [line[: len(NONE)] for line in console.after(1, 0, 0, 0, 0)] == [NONE]
    assert console.after(AGAIN - 1, 0, 0, 1, 1) == []
    assert [line[: len(NONE)] for line in console.after(1, 0, 0, 0, 0)] == [NONE]
    console.after(1, 97, 97, 97, 97)
    console.after(INTERVAL, 0, 0, 0, 0)
    assert console.after(1, 0, 0, 0, 1) == []


def test_the_same_reading_is_read_once(console: Console) -> None:
    console.after(0, 97, 97, 97, 1)
    assert console.after(2 * AGAIN, 97, 97, 97, 1) == []


@pytest.mark.parametrize("gpus", [None, {}, {"gpu9": [row(0, 97)]}])
def test_without_gpus_of_the_job_nothing_is_said(console: Console, gpus: Any) -> None:
    assert console.after(0, gpus=gpus) == []


def nccl(connected: int, **change: Any) -> dict[str, Any]:
    return {"size": 4, "connected": connected, "rings": True, "nodes": {"gpu1": ETH, "gpu2": {**ETH, **change}}}


def test_nccl_is_said_once_when_all_have_connected(console: Console) -> None:
    assert console.after(0, gpus={}, nccl=nccl(1)) == []
    assert console.after(CONNECTING - 1, gpus={}, nccl=nccl(3)) == []
    whole = ["chat: NCCL has connected 4 of 4 ranks, all rings: sockets on eth0 (gpu1, gpu2)."]
    assert console.after(1, gpus={}, nccl=nccl(4)) == whole
    assert console.after(1, gpus={}, nccl=nccl(4)) == []
    assert console.after(1, gpus={}, nccl=nccl(4), attempt=2) == whole


def test_ranks_that_do_not_come_are_a_warning_after_a_while(console: Console) -> None:
    assert console.after(0, gpus={}, nccl=nccl(3)) == []
    late = console.after(CONNECTING, gpus={}, nccl=nccl(3))
    assert [line.partition(".")[0] for line in late] == [
        "chat: NCCL has connected 3 of 4 ranks, all rings: sockets on eth0 (gpu1, gpu2)",
        "chat: NCCL has connected 3 of 4 ranks so far",
    ]
    assert console.after(60, gpus={}, nccl=nccl(3)) == []


def test_a_wrong_interface_is_a_warning_at_once(console: Console) -> None:
    lines = console.after(0, gpus={}, nccl=nccl(4, devices=["docker_gwbridge"]))
    assert lines[1].startswith("chat: on gpu2 NCCL uses docker_gwbridge, but nccl_env chose eth0. Remedy: ")
