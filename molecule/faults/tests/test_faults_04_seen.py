"""What the console says of GPUs and of NCCL while it follows a job, of an idle GPU and of a wrong interface.

Stand-ins: a script as nvidia-smi in each container, and one that prints what NCCL would. The figures are invented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.fault_runs import launch
from tests.playbook_run import NODES, inside

SMI = "/usr/local/bin/nvidia-smi"


@pytest.fixture
def gpus() -> Iterator[None]:
    """One GPU a node, of which the last one's idles."""
    for name, busy in zip(NODES, (97, 97, 1), strict=True):
        inside(name, f"echo 'echo 0, {busy}, 71234, 81559, 612.31, 700.00, 64' > {SMI}")
        inside(name, f"sed -i 1i#!/bin/sh {SMI}; chmod 755 {SMI}")
    yield
    for name in NODES:
        inside(name, f"rm -f {SMI}")


@pytest.mark.usefixtures("gpus")
def test_gpus_and_nccl_are_shown_beside_the_log() -> None:
    run = launch(
        deepspeed_launch_launcher="per_node",
        deepspeed_launch_script="nccl_lines.py",
        deepspeed_launch_environment={"DS_ACCELERATOR": "cuda"},  # the lab's is cpu, whose GPUs are not read
    ).done(change=True)
    assert re.search(r"fault: NCCL has connected 3 of 3 ranks, all rings: sockets on eth\d+ \(lab1, lab3\)", run.text)
    assert re.search(r"fault: on lab2 NCCL uses docker_gwbridge, but nccl_env chose eth\d+\. Remedy: ", run.text)
    assert "fault: 3 GPUs: 1–97 % busy, 70 of 80 GiB, 612 of 700 W, 64 °C" in run.text
    assert "fault: GPU 0 of lab3 (rank 2) idles at 1 %, while the others are at 97 %." in run.text
