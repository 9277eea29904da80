# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How busy GPUs are, over answers in nvidia-smi's format (written after nvidia-smi(1), not recorded)."""

from __future__ import annotations

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.common.command_io import CommandResult
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.activity import PAUSE, gather_activity
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.readings import FIELDS, KEYS, parse_activity

MIB = 1024 * 1024
ONE = "0, 97, 71234, 81559, 612.31, 700.00, 64\n"
MIG = "1, [N/A], 12, 81559, 80.5, [Not Supported], 41\n"


class Smi:
    """Answers with one text after the other, and records what it is asked."""

    def __init__(self, *answers: CommandResult | None) -> None:
        self.answers, self.requested = list(answers), 0

    def nvidia_smi(self, *arguments: str) -> CommandResult | None:
        assert arguments == (f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
        self.requested += 1
        return self.answers.pop(0)


def test_one_reading() -> None:
    text = "Warning: something\n" + ONE + MIG + "GPU 00000000:3B:00.0: GPU is lost\n2, 5\n"
    assert parse_activity(text) == {
        0: {
            "index": 0,
            "utilization": 97.0,
            "memory_used_bytes": 71234 * MIB,
            "memory_bytes": 81559 * MIB,
            "power_watts": 612.31,
            "power_limit_watts": 700.0,
            "temperature_celsius": 64.0,
        },
        1: {
            "index": 1,
            "utilization": None,
            "memory_used_bytes": 12 * MIB,
            "memory_bytes": 81559 * MIB,
            "power_watts": 80.5,
            "power_limit_watts": None,
            "temperature_celsius": 41.0,
        },
    }


def test_the_mean_and_the_highest_of_three_readings() -> None:
    paused: list[float] = []
    smi = Smi(*(CommandResult(0, ONE.replace("97", busy) + MIG) for busy in ("0", "50", "100")))
    first, second = gather_activity(smi, sleep=paused.append)
    assert (first["utilization"], first["utilization_highest"]) == (50.0, 100.0)
    assert (second["utilization"], second["utilization_highest"]) == (None, None)
    assert paused == [PAUSE, PAUSE]
    assert sorted(first) == sorted(KEYS)


def test_a_gpu_that_one_reading_lacks() -> None:
    smi = Smi(CommandResult(0, ONE + MIG), CommandResult(0, MIG), CommandResult(0, MIG))
    assert [gpu["index"] for gpu in gather_activity(smi, sleep=lambda _: None)] == [0, 1]


def test_a_warning_beside_the_rows_is_passed_over() -> None:
    smi = Smi(*[CommandResult(14, f"{ONE}WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n")] * 3)
    assert [gpu["utilization"] for gpu in gather_activity(smi, sleep=lambda _: None)] == [97.0]


@pytest.mark.parametrize("answer", [None, CommandResult(124, stderr="no answer within 60 seconds")])
def test_without_an_answer_there_are_none_and_it_is_asked_once(answer: CommandResult | None) -> None:
    smi = Smi(answer)
    assert gather_activity(smi, sleep=lambda _: None) == []
    assert smi.requested == 1
