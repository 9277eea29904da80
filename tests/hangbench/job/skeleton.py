# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""What the scripts of all cases share: the environment of a rank, a small model, progress lines, marks for the runner.

A script is run as ``python -u -m job.NAME`` with torchrun's variables and HANGBENCH_PARAMETERS (JSON) and
HANGBENCH_PRIVATE (a folder that the runner shares with the scripts and that a doctor does not get).
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from . import trace_collectives

RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
PRIVATE = Path(os.environ["HANGBENCH_PRIVATE"])
PARAMETERS: dict[str, Any] = json.loads(os.environ.get("HANGBENCH_PARAMETERS", "{}"))
STEPS = int(PARAMETERS.get("steps", 12))
FAULTY = int(PARAMETERS.get("rank", -1))
AT = int(PARAMETERS.get("step", 4))
VERIFYING = "HANGBENCH_VERIFY" in os.environ
"""The runner compares the truth with a trace of collectives, and with stacks that SIGUSR1 requests."""
if VERIFYING:
    faulthandler.register(signal.SIGUSR1, file=(PRIVATE / f"stacks-{RANK}").open("w"))


def mark(name: str) -> None:
    """Write a mark that only the runner reads."""
    (PRIVATE / f"{name}-{RANK}").write_text(str(time.time()))


def hang_begins() -> None:
    """Mark the moment from which the run cannot go on."""
    mark("begins")


def request_fault() -> None:
    """Have the runner inject the case's fault now; return when it has done so."""
    mark("inject")
    while not (PRIVATE / "injected").exists():
        time.sleep(0.01)
    hang_begins()


def due(step: int) -> bool:
    """Return whether this rank is the faulty one, and this the step."""
    return FAULTY == RANK and step == AT


def progress(step: int, loss: Any = 0.0) -> None:
    if PARAMETERS.get("only_rank_0") and RANK != 0:
        return
    print(f"[rank{RANK}] step {step}/{STEPS} loss {float(loss):.4f}", flush=True)


def start() -> Any:
    """Join the other ranks on gloo; return torch.distributed."""
    torch.set_num_threads(1)
    torch.manual_seed(RANK)
    if VERIFYING:
        trace_collectives.install(PRIVATE / f"trace-{RANK}")
    mark("joining")
    dist.init_process_group("gloo", timeout=timedelta(minutes=30))
    print(f"[rank{RANK}] joined {WORLD} ranks, torch {torch.__version__}", flush=True)
    return dist


def model(width: int = 64) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))


def gradients(network: Any, width: int = 64) -> Any:
    """Compute one batch forward and backward; return the loss."""
    loss = network(torch.randn(16, width)).square().mean()
    network.zero_grad()
    loss.backward()
    return loss.detach()


def average(dist: Any, network: Any, group: Any = None) -> None:
    """Average gradients as one flat tensor, one all_reduce a step."""
    flat = torch.cat([parameter.grad.flatten() for parameter in network.parameters()])
    dist.all_reduce(flat, group=group)


def train_step(dist: Any, network: Any, step: int, group: Any = None) -> None:
    loss = gradients(network)
    average(dist, network, group)
    time.sleep(float(PARAMETERS.get("pace", 0.1)))
    progress(step, loss)


def finish(dist: Any) -> None:
    dist.barrier()
    print(f"[rank{RANK}] finished", flush=True)
    mark("finished")
    dist.destroy_process_group()
    sys.stdout.flush()
