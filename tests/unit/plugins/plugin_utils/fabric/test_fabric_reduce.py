# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What a collective over all nodes tells.

NCCL's lines were printed on machines with GPUs. H100 is recorded (module_utils/fixtures/job): one without HCAs. The
others are published, and host names replaced: NVIDIA/nccl#1410 (H100s whose image has no libibverbs), nccl-tests#228
(HCAs used), nccl#1939 (no GPUDirect RDMA). Where a test replaces a word of them, that line is made up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.fabric.all_reduce import (
    NOT_TRIED,
    judge_collective,
    nccl_devices,
)

EXPECTED = {"gpu1": "eth0", "gpu2": "eth0"}
GOOD = {"ok": True, "said": "99 reductions of 1024 KiB over 2 nodes", "interfaces": ["eth0"], "seconds": 2.01}
POD = "pod:2340:2384 [4] NCCL INFO "
SOCKET = f"{POD}NET/Socket : Using [0]eth0:10.177.137.15<0>"
NO_LIBRARY = [f"{POD}Failed to open libibverbs.so[.1]", SOCKET, f"{POD}Using network Socket"]
INFINIBAND = (
    "user:5181:5232 [2] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_2:1/IB [RO]; OOB ibs85f0:192.168.1.10<0>"
)
DISABLED = "user:5183:5236 [4] NCCL INFO NCCL_IB_DISABLE set by environment to 0."
INDIRECT = "user:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
H100 = [
    line.partition("rank 0: ")[2]
    for line in (Path(__file__).parents[2] / "module_utils/fixtures/job/nccl_h100_x1.txt")
    .read_text(encoding="utf-8")
    .splitlines()
]
CHOSEN = "=mlx5_0:1,mlx5_2:1"


@pytest.mark.parametrize(
    "log, found",
    [
        ([SOCKET], ("Socket", ["eth0"])),
        (["NCCL INFO Bootstrap : Using eth9:10.0.0.1<0>", INFINIBAND], ("IB", ["mlx5_0:1", "mlx5_2:1"])),
        (NO_LIBRARY, ("Socket", ["eth0"])),
        # NCCL 2.28.9 without HCAs: "NET/IB : No device found.", and then "NET/IB : Using [RO]" all the same.
        (H100, ("Socket", ["lo"])),
        ([line for line in H100 if "Using network" not in line], ("Socket", ["lo"])),
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
    assert section["interfaces"]["gpu1"] == "mlx5_0:1, mlx5_2:1"
    assert section["ok"] and not problems


@pytest.mark.parametrize(
    "backend, more", [("gloo", {"interfaces": ["eth1"]}), ("nccl", {"log": [SOCKET.replace("eth0", "eth1")]})]
)
def test_another_interface_than_that_of_the_network_is_wrong(backend: str, more: dict[str, Any]) -> None:
    good = {**GOOD, "log": [SOCKET]}
    section, (text,), _notes = judged(backend, gpu1=good, gpu2={**good, **more})
    assert not section["ok"]
    assert text.startswith(f"gpu2: {backend} used eth1, but the training network is on eth0. Most likely: wrong")
    assert ("NCCL_SOCKET_IFNAME" if backend == "nccl" else "GLOO_SOCKET_IFNAME") in text


REMEDY = (
    "Remedy: the image (without Docker, the host) needs libibverbs1 and ibverbs-providers, which this collection's own "
    "image has, and the container the devices in /dev/infiniband and memlock without a limit (--tags "
    "training_image,training_container); if sockets are wanted, nccl_env_environment: {NCCL_IB_DISABLE: 1}."
)


@pytest.mark.parametrize(
    ("log", "interface", "why"),
    [
        (NO_LIBRARY, "eth0", "Most likely: there is no libibverbs. "),
        (
            H100,
            "lo",
            "Most likely: libibverbs found none of them, because its drivers are missing from the image, or the "
            "devices from the container. ",
        ),
        (
            [DISABLED.replace("to 0", "to 1"), SOCKET],
            "eth0",
            "Most likely: NCCL_IB_DISABLE=1 is in the ranks' environment. ",
        ),
        ([DISABLED, SOCKET], "eth0", ""),
    ],
)
def test_sockets_are_wrong_where_hcas_were_chosen(log: list[str], interface: str, why: str) -> None:
    answers = {name: {**GOOD, "log": log} for name in EXPECTED}
    expected = dict.fromkeys(EXPECTED, interface)
    section, (text,), notes = judge_collective(answers, expected, "nccl", dict.fromkeys(EXPECTED, CHOSEN))
    assert text == (
        f"gpu1, gpu2: NCCL fell back to sockets ({interface}), but nccl_env chose the HCAs mlx5_0:1,mlx5_2:1. "
        f"{why}{REMEDY}"
    )
    # The report takes it from here.
    assert (section["ok"], section["said"], notes) == (False, text, [])


@pytest.mark.parametrize(
    ("log", "hcas", "backend"),
    [
        (NO_LIBRARY, {}, "nccl"),  # nccl_env_environment: {NCCL_IB_DISABLE: 1}, an overlay, or no HCAs
        (NO_LIBRARY, {"gpu1": "", "gpu2": ""}, "nccl"),
        (NO_LIBRARY, {"gpu3": CHOSEN}, "nccl"),
        ([INFINIBAND], {"gpu1": CHOSEN, "gpu2": CHOSEN}, "nccl"),
        (["NCCL INFO NET/OFI Using aws-ofi-nccl"], {"gpu1": CHOSEN, "gpu2": CHOSEN}, "nccl"),
        ([], {"gpu1": CHOSEN, "gpu2": CHOSEN}, "gloo"),
    ],
)
def test_nothing_fails_where_sockets_are_wanted_or_hcas_taken(
    log: list[str], hcas: dict[str, str], backend: str
) -> None:
    answers = {name: {**GOOD, "log": log} for name in EXPECTED}
    section, problems, notes = judge_collective(answers, EXPECTED, backend, hcas)
    assert (section["ok"], problems, notes) == (True, [], [])


def test_one_node_that_took_sockets_is_named_alone() -> None:
    answers = {"gpu1": {**GOOD, "log": [INFINIBAND]}, "gpu2": {**GOOD, "log": NO_LIBRARY}}
    section, (text,), _notes = judge_collective(answers, EXPECTED, "nccl", dict.fromkeys(EXPECTED, CHOSEN))
    assert text.startswith("gpu2: NCCL fell back to sockets (eth0), but ") and not section["ok"]


def test_a_copy_through_the_hosts_memory_is_a_note() -> None:
    answers = {name: {**GOOD, "log": [INFINIBAND, INDIRECT, INDIRECT]} for name in EXPECTED}
    section, problems, (note,) = judge_collective(answers, EXPECTED, "nccl", dict.fromkeys(EXPECTED, CHOSEN))
    assert (section["ok"], problems) == (True, [])
    assert note == (
        "gpu1, gpu2: NCCL uses mlx5_0 without GPUDirect RDMA, so data passes through the host's memory. It needs the "
        "open kernel module (nvidia_driver_flavour: open) and a kernel with dma_buf (Linux 5.12 or later), not "
        "nvidia_peermem, which is deprecated; NCCL deliberately does without it on GPUs that are far from the HCA."
    )
    forged = {name: {**GOOD, "log": [INFINIBAND, f"{INDIRECT[:-7]}a\x1b[2J{'b' * 9000}'"]} for name in EXPECTED}
    assert judge_collective(forged, EXPECTED, "nccl")[1:] == ([], [])


def test_who_says_what_is_wrong_is_reported_and_not_who_waited() -> None:
    wrong = {"ok": False, "said": "[enforce fail at ...] ifa != nullptr. Unable to find address for: eth9"}
    late = {"ok": False, "said": "Timed out after 41 seconds waiting for clients. 1/2 clients joined."}
    section, (text,), _notes = judged(gpu1=late, gpu2=wrong)
    assert text.startswith("gpu2: a collective of two seconds over all nodes (gloo): ")
    assert "Unable to find address for: eth9. Most likely: wrong interface: there is no interface of that name." in text
    assert section["said"] == text and not section["ok"]


@pytest.mark.parametrize(
    "reported, reason",
    [
        ("Gloo connectFullMesh failed with [..] Connection refused", "the others cannot reach its address"),
        ("No module named 'torch'", "torch is missing where the ranks run"),
        ("Timed out after 41 seconds waiting for clients.", "a node did not take part"),
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
