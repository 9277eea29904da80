# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Whether GPUs are free, by output of nvidia-smi. Texts in this file are stand-ins, written after nvidia-smi(1).

The list with MIG and the output of a free H100 are recorded: see the README of gpu_info's fixtures.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.launch.gpus import (
    Card,
    Finding,
    judge,
    parse_apps,
    parse_cards,
)

from tests.effort import examples

FIXTURES = Path(__file__).parents[2] / "module_utils/fixtures/gpu"
MIG = (FIXTURES / "list_a100_mig.txt").read_text(encoding="utf-8")
FREE_LIST = (FIXTURES / "list_h100.txt").read_text(encoding="utf-8")
FREE = (FIXTURES / "cards_h100.csv").read_text(encoding="utf-8")
UUID = "GPU-11111111-2222-3333-4444-555555555555"
LIST = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0a)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-1b)
"""
GPUS = "0, GPU-0a, 4, 81920, Default\n1, GPU-1b, 41234, 81920, Default\n"
APPS = "GPU-1b, 4242, 41000, /usr/bin/python3, train.py\nGPU-1b, [Not Found], [N/A], [Not Found]\n"


def smi(gpus: str = GPUS, apps: str = "", listed: str = LIST) -> dict[str, Any]:
    texts = {"list": listed, "gpus": gpus, "apps": apps}
    return {name: {"rc": 0, "out": text, "err": ""} for name, text in texts.items()}


def found(answer: dict[str, Any], *slots: int) -> list[tuple[str, str]]:
    return [(finding.kind, finding.text) for finding in judge(answer, slots)]


def test_rows() -> None:
    assert parse_cards(GPUS)[1] == Card(1, "GPU-1b", 41234, 81920, "Default")
    assert parse_cards("0, GPU-0a, [N/A], [N/A], [N/A]\n") == [Card(0, "GPU-0a", None, None, "[N/A]")]
    assert parse_cards("No devices were found\n0, GPU-0a\n") == []
    assert parse_apps(APPS) == {"GPU-1b": ["4242 /usr/bin/python3, train.py", "a process outside the container"]}
    assert parse_apps("No running processes found\n") == {}


def test_a_warning_of_nvidia_smi_keeps_no_job_from_starting() -> None:
    answer = smi(gpus="0, GPU-0a, 4, 81920, Default\nWARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", apps=APPS)
    warned = {name: {**part, "rc": 14} for name, part in answer.items()}
    assert found(warned, 0) == [] and found({**warned, "gpus": {**warned["gpus"], "rc": 15}}, 0)[0][0] == "broken"


def test_a_recorded_h100() -> None:
    assert parse_cards(FREE) == [Card(0, UUID, 0, 81559, "Default")]
    assert found(smi(FREE, listed=FREE_LIST), 0) == []  # without a process it prints no rows of processes
    text = "slot 1 of the job: nvidia-smi lists only 1 GPU(s) where the ranks run"
    assert found(smi(FREE, listed=FREE_LIST), 0, 1) == [("absent", text)]
    # The memory is what the launch reported there with 2 GiB held; the rows are composed.
    holder = f"{UUID}, 1375, 2658, /usr/bin/python3\n"
    busy = FREE.replace(" 0, 81559", " 2667, 81559")
    assert found(smi(busy, holder, FREE_LIST), 0) == [
        ("busy", "GPU 0 is in use by 1375 /usr/bin/python3: 2667 of 81559 MiB of its memory")
    ]


def test_rows_survive_a_round_trip() -> None:
    dice = random.Random(3)
    for dummy in range(examples(200)):
        cards = [
            Card(index, f"GPU-{dice.randrange(16**6):06x}", dice.randrange(99999), dice.randrange(99999), "Default")
            for index in range(dice.randrange(9))
        ]
        text = "".join(f"{card.index}, {card.uuid}, {card.used}, {card.total}, {card.mode}\n" for card in cards)
        assert parse_cards(text) == cards


def test_only_the_slots_of_the_job_count() -> None:
    assert found(smi(), 0) == []
    assert found(smi(), 0, 1) == [("busy", "GPU 1 is in use: 41234 of 81920 MiB of its memory")]
    assert found(smi(apps=APPS), 1) == [
        (
            "busy",
            "GPU 1 is in use by 4242 /usr/bin/python3, train.py, a process outside the container: 41234 of 81920 MiB "
            "of its memory",
        )
    ]


@pytest.mark.parametrize(("used", "count"), [(500, 0), (501, 1)])
def test_what_a_driver_holds_is_free(used: int, count: int) -> None:
    assert len(found(smi(f"0, GPU-0a, {used}, 81920, Default\n"), 0)) == count


def test_without_the_processes_memory_is_judged() -> None:
    answer = smi(apps=APPS)
    answer["apps"] = {"rc": 6, "out": APPS, "err": "not supported"}
    assert found(answer, 1) == [("busy", "GPU 1 is in use: 41234 of 81920 MiB of its memory")]


def test_a_small_process_is_a_note() -> None:
    assert found(smi(apps="GPU-0a, 99, 300, /usr/bin/dcgm\n"), 0) == [
        ("note", "GPU 0 has a process of little memory: 99 /usr/bin/dcgm")
    ]


@pytest.mark.parametrize(
    ("mode", "apps", "expected"),
    [
        ("Prohibited", "", [("mode", "GPU 0 accepts no process: its compute mode is Prohibited")]),
        ("Exclusive_Process", "", []),
        (
            "Exclusive_Process",
            "GPU-0a, 99, 3, x\n",
            [("mode", "GPU 0 accepts no process: its compute mode is Exclusive_Process, and it is in use by 99 x")],
        ),
    ],
)
def test_compute_modes(mode: str, apps: str, expected: list[tuple[str, str]]) -> None:
    assert found(smi(f"0, GPU-0a, 4, 81920, {mode}\n", apps), 0) == expected


def test_a_slot_without_a_gpu() -> None:
    text = "slots 2, 3 of the job: nvidia-smi lists only 2 GPU(s) where the ranks run"
    assert found(smi(), 0, 2, 3) == [("absent", text)]
    assert found(smi(), 2)[0][1].startswith("slot 2 of the job:")


def test_memory_that_is_not_reported_is_not_judged() -> None:
    assert found(smi("0, GPU-0a, [N/A], [N/A], Default\n"), 0) == []
    assert found(smi("0, GPU-0a, 600, [N/A], Default\n"), 0) == [("busy", "GPU 0 is in use: 600 MiB of its memory")]


def test_divided_gpus_are_not_judged() -> None:
    assert found(smi(listed=MIG), 0, 9) == [
        ("note", "its GPUs are partitioned (MIG): whether an instance is busy was not checked")
    ]


@pytest.mark.parametrize("name", ["list", "gpus"])
def test_nvidia_smi_that_fails_says_why(name: str) -> None:
    answer = smi()
    answer[name] = {"rc": 255, "out": "Failed to initialize NVML: Unknown Error\n", "err": ""}
    text = "nvidia-smi fails where the ranks run: Failed to initialize NVML: Unknown Error"
    assert list(judge(answer, [0])) == [Finding("broken", text)]
    answer[name] = {"rc": 127, "out": "", "err": "nvidia-smi: No such file or directory"}
    assert found(answer, 0)[0][1].endswith("run: nvidia-smi: No such file or directory")
    answer[name] = {"rc": 9, "out": "", "err": ""}
    assert found(answer, 0)[0][1] == "nvidia-smi fails where the ranks run: 9"
