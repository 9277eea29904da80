# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A rank can print any line, also one that looks like a launcher's: no line ends or holds up who reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job import diagnose, exits, launcher_log
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor import loud_lines, nccl_log, progress
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.diagnosis.launcher_log import split_log
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.job.console import Console

from tests.growth import assert_growth

NINES = "9" * 5000
"""More digits than Python reads."""


def on_console(line: str) -> None:
    for hosts in (["lab1"], []):
        shown = Console(hosts, lambda: 0.0)
        shown.feed(f"{line}\n")
        shown.finish()


def by_launcher(line: str) -> None:
    watch = launcher_log.LogWatch()
    watch.feed(f"{line}\n".encode())
    watch.finish()


def by_diagnosis(line: str) -> None:
    found = diagnose.Diagnosis()
    for node, rank, text in split_log(f"lab1: rank 0: x\n{line}"):
        found.feed(node, rank, text)
    found.feed("lab1", None, line)
    found.result()


def by_filter(line: str) -> None:
    loud_lines.Loud().feed(line)
    progress.counts(line)


def by_nccl(line: str) -> None:
    nccl_log.NcclLog(8).feed(line)


def by_exits(line: str) -> None:
    exits.exits_in(line, exits.Summary())


READERS: tuple[Callable[[str], object], ...] = (
    *(on_console, by_launcher, by_diagnosis, by_filter, by_nccl),
    *(by_exits, launcher_log.plain),
)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "line",
    [
        "lab1: rank {}: hello",
        "lab1: rank 0: [rank{}]: Error: x",
        "[rank{}]: Traceback (most recent call last):",
        "[default{}]:x",
        "[launch.py:1:x] ['python', 'a.py'] exits with return code = {}",
        "[launch.py:1:x] dist_world_size={}",
        "[launch.py:1:x] nnodes={}, num_local_procs={}, node_rank={}",
        "pdsh@lab1: lab2: ssh exited with exit code {}",
        "failed (exitcode: {}) local_rank: 0 (pid: 1)",
        "  rank      : {} (local_rank: 0)",
        "  exitcode  : {} (pid: 1)",
        "lab1: rank 0: 5%|# | {}/{} [00:01<00:02]",
        "lab1: rank 0: Epoch {}/{} step {} of {}",
        "NCCL INFO comm 0x1 rank {} nranks {} x - Init COMPLETE",
    ],
)
def test_a_number_without_an_end_is_no_number(reader: Callable[[str], object], line: str) -> None:
    reader(line.replace("{}", NINES))
    reader(line.replace("{}", f"-{NINES}"))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "unit",
    [
        "[launch.py:1:x] ",
        "[launch.py:1:x] a exits with return code = 1x ",
        "pdsh@a",
        "pdsh@a: b: ",
        "[2026-01-01 ",
        "lab1: [2026-] [",
        " exits with return code = ",
        "lab1: rank 1: ",
        "5%|",
        "NCCL INFO comm 0x1 rank 1 nranks 2 ",
        "ErrorError",
        "\x1b]",
        "\x1b[0",
        "failed (exitcode: 1",
        "Running on the following workers: ",
    ],
)
def test_a_line_of_a_rank_costs_no_more_than_its_length(reader: Callable[[str], object], unit: str) -> None:
    def of_length(size: int) -> Callable[[], object]:
        line = unit * (size // len(unit))
        return lambda: reader(line)

    # Twice for each doubling where the time follows the length, four times where it follows the square.
    assert_growth(of_length(8_000), of_length(64_000), less_than=24)


def test_a_launcher_still_says_how_a_rank_ended() -> None:
    watch = launcher_log.LogWatch()
    command = ["/usr/bin/python3", "-u", "train.py", "--local_rank=0", *(f"--a{at}=[1, 2]" for at in range(200))]
    watch.feed(
        f"50%|##   | [2026-01-01 10:00:00,1] [ERROR] [launch.py:325:x] {command} exits with return code = -9\n".encode()
    )
    watch.feed(b"lab1: Warning: exits with return code = 3\n")
    watch.feed(b"pdsh@lab1: lab2: ssh exited with exit code 1\n")
    assert watch.exits == [("", -9, False), ("lab2", 1, True)]
