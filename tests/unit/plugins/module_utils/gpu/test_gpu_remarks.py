# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What nvidia-smi only warns of is a note with its words and its GPU; only a GPU that cannot compute is a problem.

The first host is composed after pytorch/pytorch#87464, NVIDIA/DCGM#2 and microsoft/pai#3756, where ``nvidia-smi -q -x``
ends with 0; the others are made up from it.
"""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.explain import MOST_REMARKS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.gather import gather_gpu

from tests.gpu_hosts import H100, MATRIX, PROPRIETARY, QUERY, FakeGpuIO, gpu_xml, report

ADVICE = (
    " That alone keeps no GPU from computing; the infoROM holds serial number, ECC mode and counts of memory errors, "
    "so what is reported of these may be wrong. Have the server's vendor flash it or replace the GPU."
)
CORRUPTED = "WARNING: infoROM is corrupted at gpu "


def address(index: int) -> str:
    return f"0000:{0x1A + index:02x}:00.0"


def row(index: int, memory: str = "32768") -> str:
    return f"{index}, GPU-00000000-0000-0000-0000-00000000000{index}, {memory}, 7.0, Tesla V100-SXM2-32GB"


def host(answer: CommandResult, gpus: int = 2, topology: CommandResult | str = "", inside: str = "") -> FakeGpuIO:
    """V100s, of which the first has something more in its report."""
    elements = [
        gpu_xml(f"GPU-00000000-0000-0000-0000-00000000000{index}", address(index), "" if index else inside)
        for index in range(gpus)
    ]
    return FakeGpuIO(
        devices=[{**H100, "device": "0x1db5", "address": address(index)} for index in range(gpus)],
        driver=PROPRIETARY.format("570.148.08"),
        library="libnvidia-ml.so.570.148.08",
        smi={QUERY: answer, "-q": report(*elements, cuda="12.8"), "topo": topology},
    )


def rows(gpus: int = 2) -> str:
    return "\n".join(map(row, range(gpus))) + "\n"


def warned(index: int) -> str:
    return CORRUPTED + address(index).upper()


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (CommandResult(14, rows() + warned(1)), f"GPU 1: nvidia-smi says '{warned(1)}'.{ADVICE}"),
        (CommandResult(14, rows(), warned(0)), f"GPU 0: nvidia-smi says '{warned(0)}'.{ADVICE}"),
        (CommandResult(14, rows()), f"nvidia-smi says 'infoROM is corrupted (exit status 14)'.{ADVICE}"),
        # One of no GPU that is known; another warning; with an exit status that has no such meaning, and with none.
        (CommandResult(14, rows() + CORRUPTED + "0000:FF:00.0"), f"nvidia-smi says '{CORRUPTED}0000:FF:00.0'.{ADVICE}"),
        (CommandResult(1, "Warning: something new\n" + rows()), "nvidia-smi says 'Warning: something new'."),
        (CommandResult(0, rows() + "WARNING: something new"), "nvidia-smi says 'WARNING: something new'."),
    ],
)
def test_a_warning_is_a_note_with_its_own_words_and_its_gpu(answer: CommandResult, note: str) -> None:
    found = gather_gpu(host(answer))
    assert (found["slots"], found["problems"], found["notes"]) == (2, [], [note])


def test_of_eight_gpus_each_warning_is_kept_whole_and_no_row_is_quoted() -> None:
    found = gather_gpu(host(CommandResult(14, f"{rows(8)}{warned(3)}\n{warned(7)}\n"), gpus=8))
    assert (found["slots"], found["problems"]) == (8, [])
    assert found["notes"] == [f"GPU {index}: nvidia-smi says '{warned(index)}'.{ADVICE}" for index in (3, 7)]


@pytest.mark.parametrize(
    ("answer", "inside", "problem"),
    [
        (
            CommandResult(14, f"{row(0, '[GPU is lost]')}\n{row(1)}\n{warned(0)}"),
            "",
            f"A GPU is listed but broken: {row(0, '[GPU is lost]')}. Check `dmesg | grep Xid`, then reboot this host.",
        ),
        (
            CommandResult(14, f"{row(1)}\n{warned(1)}"),
            "",
            "Only 1 of 2 NVIDIA GPUs (0000:1a:00.0, 0000:1b:00.0) answer. Check `dmesg | grep -e Xid -e NVRM`; one "
            "that has fallen off the bus comes back with a power cycle.",
        ),
        (
            CommandResult(14, rows() + warned(0)),
            "<temperature><gpu_temp>ERR!</gpu_temp></temperature>",
            "GPU 0 gives ERR! instead of gpu_temp: it or its driver has failed. Check `dmesg | grep -e Xid -e NVRM`, "
            "then reboot this host.",
        ),
    ],
    ids=["lost", "off the bus", "ERR!"],
)
def test_a_gpu_that_cannot_compute_is_a_problem_beside_a_warning(
    answer: CommandResult, inside: str, problem: str
) -> None:
    found = gather_gpu(host(answer, inside=inside))
    assert found["problems"] == [problem]
    assert len(found["notes"]) == 1 and CORRUPTED in found["notes"][0]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (CommandResult(14, warned(0)), f"nvidia-smi ended with status 14 and printed: {warned(0)}."),
        (CommandResult(10, rows(8) + "Something new"), "nvidia-smi ended with status 10 and printed: Something new."),
    ],
    ids=["no GPU answers", "no warning"],
)
def test_an_exit_status_without_a_warning_or_without_gpus_stays_a_problem(answer: CommandResult, problem: str) -> None:
    found = gather_gpu(host(answer, gpus=8))
    assert found["problems"][0].startswith(problem) and "GPU-0" not in found["problems"][0]
    assert found["notes"] == []


def test_the_topology_is_read_beside_a_warning() -> None:
    answer = CommandResult(14, rows() + warned(1))
    found = gather_gpu(host(answer, topology=CommandResult(14, f"{MATRIX}{warned(1)}")))
    assert found["topology"]["gpus"] == {"0": {"1": "NV18"}, "1": {"0": "NV18"}}
    assert gather_gpu(host(answer, topology=CommandResult(9, MATRIX)))["topology"] is None


def test_there_are_not_more_notes_than_gpus_and_none_is_long() -> None:
    flood = "".join(f"WARNING: {number} {'x' * 1000}\n" for number in range(10_000))
    notes = gather_gpu(host(CommandResult(14, rows() + flood)))["notes"]
    assert len(notes) == MOST_REMARKS and max(map(len, notes)) < 400
