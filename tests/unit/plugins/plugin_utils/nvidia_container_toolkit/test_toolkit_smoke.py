# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""F10: the smoke test shows CUDA on all GPUs. The program runs for real against stand-ins of CUDA's library."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.nvidia_container_toolkit.smoke import (
    PROGRAM,
    problem,
)

FIXTURES = Path(__file__).parents[2] / "module_utils/fixtures/gpu"
HERE = "a container of train:1"
EIGHT = "".join(f"GPU {number}: NVIDIA H100 80GB HBM3 (UUID: GPU-{number})\n" for number in range(8))
SKIPPED = {"skipped": True, "changed": False}


def ran(stdout: str = "", rc: int = 0, stderr: str = "") -> dict[str, Any]:
    return {"rc": rc, "stdout": stdout, "stderr": stderr}


def lacks(
    listed: dict[str, Any], cuda: dict[str, Any], node: dict[str, Any] | None = None, gpus: int = 8, slots: int = 8
) -> str:
    return problem(listed, cuda, node or SKIPPED, image="train:1", gpus=gpus, slots=slots)


def test_cuda_on_all_gpus() -> None:
    assert lacks(ran(EIGHT), ran("CUDA 0 8\n")) == ""
    # What an entry point prints before.
    assert lacks(ran(EIGHT), ran("== CUDA ==\nCUDA Version 13.0.2\nCUDA 0 8\n")) == ""


def test_a_corrupted_inforom_keeps_no_gpu_from_computing() -> None:
    warned = ran(f"{EIGHT}WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", 14)
    assert lacks(warned, ran("CUDA 0 8\n")) == ""
    assert "lists 0 of the host's 8 GPUs" in lacks(ran("WARNING: infoROM is corrupted", 14), ran("CUDA 0 8\n"))


def test_a_gpu_in_mig_mode_is_one_for_cuda() -> None:
    listed = (FIXTURES / "list_a100_mig.txt").read_text(encoding="utf-8")  # recorded in a container
    assert lacks(ran(listed), ran("CUDA 0 1\n"), gpus=1, slots=1) == ""


@pytest.mark.parametrize(
    ("listed", "cuda", "node", "words"),
    [
        (
            ran("", 1, "could not select device driver"),
            SKIPPED,
            SKIPPED,
            f"nvidia-smi in {HERE} ended with 1 and printed: could not select device driver",
        ),
        (
            ran("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n"),
            ran("CUDA 0 1\n"),
            SKIPPED,
            f"nvidia-smi in {HERE} lists 1 of the host's 8 GPUs: GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)",
        ),
        (
            ran(EIGHT),
            ran("CUDA 0 7\n"),
            SKIPPED,
            f"CUDA in {HERE} has 7 of the host's 8 GPUs",
        ),
        (
            ran(EIGHT),
            ran("CUDA 999 0\n"),
            SKIPPED,
            f"CUDA does not start in {HERE}: cuInit returned 999 (CUDA_ERROR_UNKNOWN, as where /dev/nvidia-uvm is "
            "missing or cannot be opened)",
        ),
        (ran(EIGHT), ran("CUDA 46 0\n"), SKIPPED, f"CUDA does not start in {HERE}: cuInit returned 46"),
        (
            ran(EIGHT),
            ran("", 1, "OSError: libcuda.so.1: cannot open shared object file"),
            SKIPPED,
            f"CUDA could not be queried in {HERE}: OSError: libcuda.so.1: cannot open shared object file",
        ),
        (ran(EIGHT), ran("nothing of it"), SKIPPED, f"CUDA could not be queried in {HERE}: nothing of it"),
        (
            ran(EIGHT),
            ran("", 127, 'exec: "python3": executable file not found in $PATH'),
            ran("", 1),
            f"{HERE} has no /dev/nvidia-uvm, so CUDA does not start there (test -c ended with 1: nothing)",
        ),
        # The fallback did not run: that is no pass.
        (
            ran(EIGHT),
            SKIPPED,
            SKIPPED,
            f"{HERE} has no /dev/nvidia-uvm, so CUDA does not start there (test -c ended with None: nothing)",
        ),
    ],
)
def test_what_a_container_lacks(listed: dict[str, Any], cuda: dict[str, Any], node: dict[str, Any], words: str) -> None:
    assert lacks(listed, cuda, node) == words


@pytest.mark.parametrize("rc", [126, 127])
def test_an_image_without_python_is_asked_for_the_device_file(rc: int) -> None:
    assert lacks(ran(EIGHT), ran("", rc), ran()) == ""


def test_a_host_on_which_nothing_answers_passes_nothing() -> None:
    assert lacks(ran("No devices found.\n"), ran("CUDA 0 0\n"), gpus=0, slots=0) != ""
    assert lacks(ran(EIGHT), ran("CUDA 0 0\n"), gpus=0, slots=0) != ""


@pytest.mark.skipif(not shutil.which("gcc"), reason="no compiler for the stand-in of CUDA's library")
@pytest.mark.parametrize(("result", "count"), [(0, 8), (999, 0), (100, 0)])
def test_the_program_asks_cuda(tmp_path: Path, result: int, count: int) -> None:
    source = tmp_path / "cuda.c"
    source.write_text(
        f"int cuInit(unsigned flags) {{ return flags ? 1 : {result}; }}\n"
        f"int cuDeviceGetCount(int *count) {{ *count = {count}; return 0; }}\n"
    )
    command = ["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "libcuda.so.1"), str(source)]
    if subprocess.run(command, check=False, timeout=60, capture_output=True).returncode:
        pytest.skip("no C library to link with")
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert answer.stdout == f"CUDA {result} {count}\n"
    words = lacks(ran(EIGHT), ran(answer.stdout))
    assert (words == "") is (result == 0)
