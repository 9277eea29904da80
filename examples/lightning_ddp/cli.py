# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train the voice model with LightningCLI: python3 cli.py fit -c fit.yaml, once on each node.

Of the environment Lightning needs MASTER_ADDR, MASTER_PORT and NODE_RANK. With LOCAL_RANK it is one rank; without, it
starts the ranks of its node itself, as many as trainer.devices says. The job ends with a failure when the accuracy on
held-out voices is below model.target.
"""

from __future__ import annotations

import os
import sys

import lightning
import torch.distributed as dist
from lightning.pytorch.cli import LightningCLI
from voice import Listener, Vowels


def wait_for_children(trainer: lightning.Trainer) -> int:
    """Wait for the ranks that this one has started on its node; return the first bad exit code, or 0."""
    children = getattr(trainer.strategy.launcher, "procs", [])
    return next((code for code in [child.wait() for child in children] if code), 0)


def main() -> int:
    # The configuration is in the workspace already; a copy of it would be in the way of the next job.
    cli = LightningCLI(Listener, Vowels, save_config_callback=None, seed_everything_default=3)
    model, trainer = cli.model, cli.trainer
    reached = model.seen >= model.target
    if trainer.is_global_zero:
        verdict = "reached" if reached else "MISSED"
        print(
            f"lightning_ddp: accuracy on held-out voices {model.seen:.4f}, target {model.target} {verdict}", flush=True
        )
    if dist.is_initialized():
        dist.destroy_process_group()
    return wait_for_children(trainer) or (0 if reached else 1)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: a worker of Gloo's may still hold a tensor, and freeing that while Python goes down aborts the
    # process after training has ended well (github.com/pytorch/pytorch/pull/179291).
    os._exit(code)
