# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""LoRA fine-tuning by LLaMA-Factory's own entry, configured by its own YAML file, on as many nodes as the job has.

The same as `llamafactory-cli train FILE` under a launcher, with two additions: --tiny makes model and data on the spot,
and --target ends the job with a failure when the loss has not fallen below it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="LLaMA-Factory's YAML file")
    parser.add_argument("--deepspeed", required=True, help="path of ds_config.json, given by the role")
    parser.add_argument("--tiny", default="", metavar="FOLDER", help="make a tiny model and data there, and use them")
    parser.add_argument("--target", type=float, default=0.0, help="loss at the end above which the job fails; 0: none")
    parser.add_argument("--local_rank", type=int, default=-1)
    return parser.parse_args()


def configuration(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(Path(args.file).read_text(encoding="utf-8"))
    found["deepspeed"] = args.deepspeed
    if args.tiny:
        os.environ["HF_HUB_OFFLINE"] = "1"
        from make_data import make  # noqa: PLC0415 - imports torch, and offline has to be said first

        digest = make(Path(args.tiny))
        print(f"llama_factory_sft: model and data {digest[:12]} in {args.tiny}", flush=True)
        found.update(model_name_or_path=f"{args.tiny}/model", dataset_dir=f"{args.tiny}/data", dataset="alpaca")
    return found


def judged(folder: Path, target: float) -> bool:
    """Say how the loss went, by LLaMA-Factory's own log, and whether it fell far enough."""
    lines = (folder / "trainer_log.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [entry["loss"] for entry in map(json.loads, lines) if entry.get("loss") is not None]
    last = losses[-max(len(losses) // 10, 1) :]
    mean = sum(last) / len(last)
    reached = not target or mean <= target
    verdict = "" if not target else f", target {target} {'reached' if reached else 'MISSED'}"
    print(f"llama_factory_sft: loss {losses[0]:.4f} -> {mean:.4f}{verdict}", flush=True)
    return reached


def main() -> int:
    args = arguments()
    requested = configuration(args)

    import torch.distributed as dist  # noqa: PLC0415 - after HF_HUB_OFFLINE
    from llamafactory.train.tuner import run_exp  # noqa: PLC0415

    run_exp(args=requested)
    reached = [judged(Path(requested["output_dir"]), args.target) if os.environ.get("RANK", "0") == "0" else True]
    if dist.is_initialized():
        dist.broadcast_object_list(reached, src=0)
        dist.destroy_process_group()
    return 0 if reached[0] else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: see examples/digits/train.py.
    os._exit(code)
