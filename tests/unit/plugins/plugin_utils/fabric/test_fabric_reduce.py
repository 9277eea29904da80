# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a collective over all nodes tells.

NCCL's lines are made up after its sources, net_socket.cc and net_ib; they are not recorded from a GPU.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.all_reduce import (
    NOT_TRIED,
    judge_collective,
    nccl_devices,
)

EXPECTED = {"gpu1": "eth0", "gpu2": "eth0"}
GOOD = {"ok": True, "said": "99 reductions of 1024 KiB over 2 nodes", "interfaces": ["eth0"], "seconds": 2.01}
SOCKET = "gpu1:12:34 [0] NCCL INFO NET/Socket : Using [0]eth0:10.64.0.4<0>"
INFINIBAND = "gpu1:12:34 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.4<0>"


@pytest.mark.parametrize(
    "log, found",
    [
        ([SOCKET], ("Socket", ["eth0"])),
        (["NCCL INFO Bootstrap : Using eth9:10.0.0.1<0>", INFINIBAND], ("IB", ["mlx5_0:1", "mlx5_1:1"])),
        (["x NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:10.9.0.1<0>"], ("Socket", ["eth0", "eth1"])),
        (["x NCCL INFO NET/Socket : Using [0]eth0.12:10.0.0.1<0>"], ("Socket", ["eth0.12"])),
        (["NCCL INFO NET/OFI Using aws-ofi-nccl"], ("", [])),
        ([], ("", [])),
    ],
)
def test_what_nccl_says_it_uses(log: list[str], found: tuple[str, list[str]]) -> None:
    assert nccl_devices(log) == found


def judged(backend: str = "gloo", **answers: Any) -> tuple[dict[str, Any], list[str], list[str]]:
    return judge_collective(answers, EXPECTED, backend)


def test_where_it_went_well_the_interfaces_are_reported() -> None:
    section, problems, notes = judged(gpu1=GOOD, gpu2=GOOD)
    assert (problems, notes) == ([], [])
    assert section == {
        "backend": "gloo",
        "interfaces": {"gpu1": "eth0", "gpu2": "eth0"},
        "seconds": 2.01,
        "ok": True,
        "said": "99 reductions of 1024 KiB over 2 nodes",
    }


def test_infiniband_is_reported_and_not_held_against_the_interface() -> None:
    answer = {**GOOD, "log": [INFINIBAND]}
    section, problems, _notes = judged("nccl", gpu1=answer, gpu2=answer)
    assert section["interfaces"]["gpu1"] == "mlx5_0:1, mlx5_1:1"
    assert section["ok"] and not problems


@pytest.mark.parametrize(
    "backend, more", [("gloo", {"interfaces": ["eth1"]}), ("nccl", {"log": [SOCKET.replace("eth0", "eth1")]})]
)
def test_another_interface_than_that_of_the_network_is_wrong(backend: str, more: dict[str, Any]) -> None:
    good = {**GOOD, "log": [SOCKET]}
    section, (text,), _notes = judged(backend, gpu1=good, gpu2={**good, **more})
    assert not section["ok"]
    assert text.startswith(f"gpu2: {backend} took eth1, and the training network is on eth0. Most likely: wrong")
    assert ("NCCL_SOCKET_IFNAME" if backend == "nccl" else "GLOO_SOCKET_IFNAME") in text


def test_who_says_what_is_wrong_is_reported_and_not_who_waited() -> None:
    wrong = {"ok": False, "said": "[enforce fail at ...] ifa != nullptr. Unable to find address for: eth9"}
    late = {"ok": False, "said": "Timed out after 41 seconds waiting for clients. 1/2 clients joined."}
    section, (text,), _notes = judged(gpu1=late, gpu2=wrong)
    assert text.startswith("gpu2: a collective of two seconds over all nodes (gloo): ")
    assert "Unable to find address for: eth9. Most likely: wrong interface: there is none of that name." in text
    assert section["said"] == text and not section["ok"]


@pytest.mark.parametrize(
    "reported, reason",
    [
        ("Gloo connectFullMesh failed with [..] Connection refused", "its address is not one that the others reach"),
        ("No module named 'torch'", "torch is not in what the ranks run in"),
        ("Timed out after 41 seconds waiting for clients.", "a node did not come"),
    ],
)
def test_each_end_has_its_reason(reported: str, reason: str) -> None:
    _section, (text,), _notes = judged(gpu1={"ok": False, "said": reported}, gpu2={"ok": False, "said": reported})
    assert text.startswith("gpu1, gpu2: ") and reason in text


def test_beside_a_job_that_leaves_no_memory_nothing_is_tried() -> None:
    busy = {"ok": False, "tried": False, "said": "only 300 MiB are free on GPU 0"}
    late = {"ok": False, "said": "Timed out after 41 seconds"}
    section, problems, (note,) = judged("nccl", gpu1=busy, gpu2=late)
    assert not problems and not section["ok"]
    assert note == "The collective was not tried: gpu1: only 300 MiB are free on GPU 0."


@pytest.mark.parametrize("answers", [{}, {"gpu1": {}, "gpu2": {}}])
def test_where_pairs_failed_it_was_not_tried(answers: dict[str, Any]) -> None:
    section, problems, notes = judged(**answers)
    assert (section["said"], section["ok"], problems, notes) == (NOT_TRIED, False, [], [])
