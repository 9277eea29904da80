"""Trains three steps with the ds_config.json that it is given, and keeps its rank's environment and arguments."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int)
    args = deepspeed.add_config_arguments(parser).parse_known_args([word for word in sys.argv[1:] if word != "--"])[0]
    deepspeed.init_distributed("gloo")
    torch.manual_seed(7)
    model = torch.nn.Linear(8, 1)
    engine = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())[0]
    for step in range(1, 4):
        data = torch.rand(engine.train_micro_batch_size_per_gpu(), 8, dtype=engine.get_data_types()[0])
        loss = engine(data.to(engine.device)).float().mean()
        engine.backward(loss)
        engine.step()
        if dist.get_rank() == 0:
            print(f"step {step}/3 loss {float(loss):.4f}", flush=True)
    # Without what is added to the user's: a rank by DeepSpeed's launcher, and the configuration at the end.
    words = [word for word in sys.argv[1:] if not word.startswith("--local_rank=")]
    words = words[:-2] if words[-2:] == ["--deepspeed_config", args.deepspeed_config] else words
    seen = {"environment": dict(os.environ), "words": words, "world_size": dist.get_world_size()}
    Path("seen").mkdir(exist_ok=True)
    (Path("seen") / f"rank-{dist.get_rank()}.json").write_text(json.dumps(seen), encoding="utf-8")
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # see examples/digits


if __name__ == "__main__":
    main()
