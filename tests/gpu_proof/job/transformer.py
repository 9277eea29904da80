# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Train a small decoder on rules of counting; the loss must fall. Launched by the role deepspeed_launch.

Usage: transformer.py --result FILE [--steps 30] --deepspeed_config …
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from model import Decoder, Shape

WORDS, TOKENS = 256, 64
SHAPE = Shape(hidden_size=256, intermediate_size=768, num_hidden_layers=4, num_attention_heads=4, vocab_size=WORDS)


def batch(step: int, rows: int, rank: int) -> torch.Tensor:
    """Return sequences that count from a start by a stride: what comes next follows from the two tokens before."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    start, stride = (torch.randint(1, limit, (rows, 1), generator=generator) for limit in (WORDS, 5))
    return (start + stride * torch.arange(TOKENS)) % WORDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--result", required=True)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--local_rank", type=int, default=-1)
    args = deepspeed.add_config_arguments(parser).parse_args()
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    torch.manual_seed(7)
    model = Decoder(SHAPE, recompute=False)
    engine = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())[0]
    losses = []
    for step in range(args.steps):
        loss, dummy = engine(batch(step, engine.train_micro_batch_size_per_gpu(), dist.get_rank()).to(engine.device))
        engine.backward(loss)
        engine.step()
        losses.append(float(loss.detach()))
        if dist.get_rank() == 0:
            print(f"step {step + 1}/{args.steps} loss {losses[-1]:.4f}", flush=True)
    if dist.get_rank() == 0:
        optimizer = engine.optimizer
        found = {
            "losses": [round(losses[0], 4), round(losses[-1], 4)],
            "ranks": dist.get_world_size(),
            "backend": dist.get_backend(),
            "device": str(engine.device).partition(":")[0],
            "precision": str(next(model.parameters()).dtype).removeprefix("torch."),
            "stage": engine.zero_optimization_stage(),
            "optimizer": type(getattr(optimizer, "optimizer", optimizer)).__name__,
        }
        Path(args.result).write_text(json.dumps(found), encoding="utf-8")
    dist.destroy_process_group()
    return 0 if losses[-1] < losses[0] / 2 else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
