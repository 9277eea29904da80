# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Readings of GPUs beside a job. Stand-ins: shell scripts as nvidia-smi, in its format; all figures are invented."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.readings import ARGUMENTS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.gpu_watch import (
    EVERY,
    FAILURES,
    LIMIT,
    GpuWatch,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.job.supervisor.messages import MOST_GPUS

LINE = "0, {busy}, 71234, 81559, 612.31, 700.00, 64"


class Bench:
    """A watch over a program made from a script, with a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.now, self.program, self.ran = 100.0, path / "nvidia-smi", path / "ran"

    def watch(self, script: str, wanted: bool = True) -> GpuWatch:
        self.program.write_text(f'#!/bin/sh\necho "$*" >> {self.ran}\n{script}\n')
        self.program.chmod(0o755)
        return GpuWatch(wanted, program=str(self.program), clock=lambda: self.now)

    @property
    def runs(self) -> list[str]:
        return self.ran.read_text().splitlines() if self.ran.exists() else []

    def reading(self, watch: GpuWatch) -> list[list[float]]:
        """Begin one, wait for its end, and let the time until the next one pass."""
        assert watch.poll() == []
        deadline = time.monotonic() + 20
        while watch._process is not None and watch._process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        found = watch.poll()
        self.now += EVERY
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_three_readings_make_a_report(bench: Bench) -> None:
    watch = bench.watch(f"""n=$(wc -l < {bench.ran}); echo "0, $((n * 10)), 71234, 81559, 612.31, 700.00, 64" """)
    assert [bench.reading(watch) for dummy in range(2)] == [[], []]
    assert bench.reading(watch) == [[0, 20.0, 30.0, 71234 << 20, 81559 << 20, 612.31, 700.0, 64.0]]
    assert bench.runs == [" ".join(ARGUMENTS)] * 3
    assert bench.reading(watch) == []


def test_a_warning_beside_the_rows_is_passed_over(bench: Bench) -> None:
    watch = bench.watch(
        f"echo {LINE.format(busy=50)}; echo 'WARNING: infoROM is corrupted at gpu 0000:3B:00.0'; exit 14"
    )
    found = [row for dummy in range(3) for row in bench.reading(watch)]
    assert [row[1] for row in found] == [50.0]


def test_it_is_not_run_more_often(bench: Bench) -> None:
    watch = bench.watch(f"echo {LINE.format(busy=1)}")
    bench.reading(watch)
    bench.now -= 0.1
    for dummy in range(5):
        assert watch.poll() == []
    assert len(bench.runs) == 1


def test_one_that_hangs_is_ended_and_not_run_again(bench: Bench) -> None:
    watch = bench.watch("exec sleep 600")
    began = time.monotonic()
    assert watch.poll() == []
    process = watch._process
    assert process is not None
    while not bench.runs:
        assert time.monotonic() - began < 20
        time.sleep(0.01)
    for later in (LIMIT - 0.1, LIMIT, LIMIT + EVERY, 10 * LIMIT):
        bench.now = 100.0 + later
        assert watch.poll() == []
    assert process.wait(timeout=20) == -9
    assert time.monotonic() - began < 20
    assert len(bench.runs) == 1


@pytest.mark.parametrize("script", ["exit 9", "echo 'No devices were found'", "echo 0, 1"])
def test_after_some_errors_in_a_row_it_is_not_run_again(bench: Bench, script: str) -> None:
    watch = bench.watch(script)
    for dummy in range(2 * FAILURES):
        if watch._tries:
            assert bench.reading(watch) == []
        assert watch.poll() == []
        bench.now += EVERY
    assert len(bench.runs) == FAILURES


def test_an_error_between_two_answers_is_passed_over(bench: Bench) -> None:
    flaky = f"[ $(($(wc -l < {bench.ran}) % 2)) = 0 ] && exit 9\necho {LINE.format(busy=50)}"
    watch = bench.watch(flaky)
    found = [row for dummy in range(5) for row in bench.reading(watch)]
    assert [row[1] for row in found] == [50.0]


def test_where_it_is_not_there(bench: Bench) -> None:
    watch = GpuWatch(program=str(bench.program), clock=lambda: bench.now)
    for dummy in range(3):
        assert watch.poll() == []
        bench.now += EVERY
    assert watch._tries == 0


def test_a_job_on_processors_does_not_run_it(bench: Bench) -> None:
    watch = bench.watch("exit 0", wanted=False)
    assert watch.poll() == []
    assert bench.runs == []


def test_more_gpus_than_a_host_has_are_cut(bench: Bench) -> None:
    watch = bench.watch(f'for n in $(seq 0 {MOST_GPUS + 9}); do echo "$n, 1, 2, 3, 4, 5, 6"; done')
    assert [len(bench.reading(watch)) for dummy in range(3)] == [0, 0, MOST_GPUS]
