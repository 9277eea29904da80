# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train a small CNN on the 1,797 real handwritten digits that ship inside scikit-learn, with DeepSpeed.

The same script runs on CPUs (Gloo) and GPUs (NCCL), on one rank or many. It saves a checkpoint every epoch, prints the
accuracy on held-out digits, and ends with a failure when that is below --target.
"""

from __future__ import annotations

import argparse
import os
import sys

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--target", type=float, default=0.95, help="accuracy below which the job fails")
    parser.add_argument("--checkpoints", default="/workspace/checkpoints/digits", help="empty: save none")
    parser.add_argument("--resume", default="", help="tag of the checkpoint to go on from")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--local_rank", type=int, default=-1)
    return deepspeed.add_config_arguments(parser).parse_args()


def network() -> torch.nn.Module:
    """Return a CNN for 8 by 8 pictures of 10 classes, about 38,000 parameters."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 4 * 4, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )


def digits(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Return 1,437 digits to train on and 360 held out, the same split on every rank."""
    data = load_digits()
    pixels = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(data.target, dtype=torch.long)
    train, held_out = train_test_split(range(len(labels)), test_size=0.2, random_state=seed, stratify=data.target)
    return TensorDataset(pixels[train], labels[train]), TensorDataset(pixels[held_out], labels[held_out])


def accuracy(engine: deepspeed.DeepSpeedEngine, data: TensorDataset) -> float:
    """Return the share of right answers; each rank evaluates its own part once, the counts are added up."""
    part = range(dist.get_rank(), len(data), dist.get_world_size())
    pixels, labels = (tensor[list(part)].to(engine.device) for tensor in data.tensors)
    pixels = pixels.to(engine.get_data_types()[0])
    engine.eval()
    with torch.no_grad():
        right = (engine(pixels).argmax(dim=1) == labels).sum()
    engine.train()
    counts = torch.stack([right, torch.tensor(len(labels), device=engine.device)]).double()
    dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def main() -> int:
    args = arguments()
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    torch.manual_seed(args.seed)
    train, held_out = digits(args.seed)
    model = network()
    engine = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())[0]
    sampler = DistributedSampler(train, shuffle=True, seed=args.seed)
    loader = DataLoader(train, batch_size=engine.train_micro_batch_size_per_gpu(), sampler=sampler, drop_last=True)
    if dist.get_rank() == 0:
        print(
            f"digits: {dist.get_world_size()} ranks, backend {dist.get_backend()}, {len(loader)} steps an epoch",
            flush=True,
        )

    seen, done = 0.0, 0
    if args.resume:
        path, state = engine.load_checkpoint(args.checkpoints, tag=args.resume)
        if path is None:
            raise SystemExit(f"digits: there is no checkpoint {args.resume} in {args.checkpoints}")
        done = state["epoch"]
        if dist.get_rank() == 0:
            print(f"digits: going on after epoch {done}", flush=True)
    for epoch in range(done + 1, args.epochs + 1):
        sampler.set_epoch(epoch)
        for pixels, labels in loader:
            # On GPUs the weights are in bf16 or fp16, and DeepSpeed converts no inputs.
            scores = engine(pixels.to(engine.device, engine.get_data_types()[0]))
            loss = torch.nn.functional.cross_entropy(scores, labels.to(engine.device))
            engine.backward(loss)
            engine.step()
        seen = accuracy(engine, held_out)
        if args.checkpoints:
            engine.save_checkpoint(args.checkpoints, tag=f"epoch{epoch:02d}", client_state={"epoch": epoch})
        if dist.get_rank() == 0:
            print(f"digits: epoch {epoch}/{args.epochs} loss {loss.item():.4f} accuracy {seen:.4f}", flush=True)

    if dist.get_rank() == 0:
        verdict = "reached" if seen >= args.target else "MISSED"
        print(f"digits: accuracy on held-out digits {seen:.4f}, target {args.target} {verdict}", flush=True)
    dist.destroy_process_group()
    return 0 if seen >= args.target else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: a worker of Gloo's may still hold a tensor, and freeing that while Python goes down aborts the
    # process after training has ended well (github.com/pytorch/pytorch/pull/179291; seen once in some hundred runs).
    os._exit(code)
