# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""One step of a small model, and when it was done."""

from __future__ import annotations

import argparse
import os
import sys
import time

import deepspeed
import torch
import torch.distributed as dist


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int)
    args = deepspeed.add_config_arguments(parser).parse_args()
    model = torch.nn.Linear(64, 1)
    engine = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())[0]
    engine.backward(engine(torch.ones(engine.train_micro_batch_size_per_gpu(), 64)).sum())
    engine.step()
    if dist.get_rank() == 0:
        print(f"first step at {time.time():.3f}", flush=True)
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # see examples/digits


if __name__ == "__main__":
    main()
