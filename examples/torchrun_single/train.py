# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train on the slots of one node without DeepSpeed: DistributedDataParallel, DistributedSampler, checkpoints by rank 0.

Its ranks are started by torchrun, by python -m torch.distributed.launch, or by spawn.py (mp.spawn). The data are the
1,797 real handwritten digits that ship inside scikit-learn. The job ends with a failure when the accuracy on held-out
digits is below --target.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64, help="pictures of one step, divided among the ranks")
    parser.add_argument("--target", type=float, default=0.95, help="accuracy below which the job fails")
    parser.add_argument("--checkpoint", default="/workspace/checkpoints/torchrun_single/last.pt", help="empty: none")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint, where there is one")
    parser.add_argument("--seed", type=int, default=5)
    # torch.distributed.launch adds it; before torch 2.0 with an underscore.
    parser.add_argument("--local-rank", "--local_rank", type=int, default=0)
    return parser.parse_args()


def digits(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Return 1,437 digits to train on and 360 held out, the same split on every rank."""
    data = load_digits()
    pixels = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(data.target, dtype=torch.long)
    train, held_out = train_test_split(range(len(labels)), test_size=0.2, random_state=seed, stratify=data.target)
    return TensorDataset(pixels[train], labels[train]), TensorDataset(pixels[held_out], labels[held_out])


def network() -> torch.nn.Module:
    """Return a CNN for 8 by 8 pictures of 10 classes."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 24, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(24 * 4 * 4, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )


def save(path: Path, model: DistributedDataParallel, optimizer: torch.optim.Optimizer, epoch: int) -> None:
    """Write the checkpoint beside its place and then move it there: who reads it never sees half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, part)
    part.replace(path)


def accuracy(model: torch.nn.Module, data: TensorDataset, device: torch.device) -> float:
    """Return the share of right answers; each rank evaluates its own part once, the counts are added up."""
    part = range(dist.get_rank(), len(data), dist.get_world_size())
    pixels, labels = (tensor[list(part)].to(device) for tensor in data.tensors)
    with torch.no_grad():
        right = (model(pixels).argmax(dim=1) == labels).sum()
    counts = torch.stack([right, torch.tensor(len(labels), device=device)]).double()
    dist.all_reduce(counts)
    return float(counts[0] / counts[1])


def run(args: argparse.Namespace) -> int:
    """Be one rank, as the environment says which: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."""
    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", args.local_rank))
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if args.batch < world:
        raise SystemExit(f"torchrun_single: --batch {args.batch} is less than a picture for each of {world} ranks")
    batch = args.batch // world
    torch.manual_seed(args.seed)
    train, held_out = digits(args.seed)
    model = DistributedDataParallel(network().to(device), device_ids=[device.index] if cuda else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    sampler = DistributedSampler(train, shuffle=True, seed=args.seed)
    loader = DataLoader(train, batch_size=batch, sampler=sampler, drop_last=True)
    checkpoint = Path(args.checkpoint) if args.checkpoint else None
    done = 0
    if args.resume and checkpoint and checkpoint.exists():
        found = torch.load(checkpoint, map_location=device, weights_only=True)
        model.module.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
        done = found["epoch"]
    if rank == 0:
        print(
            f"torchrun_single: {world} ranks, backend {dist.get_backend()}, {batch} pictures a rank and step, "
            f"from epoch {done + 1}",
            flush=True,
        )

    total, step, began, loss = args.epochs * len(loader), done * len(loader), time.monotonic(), torch.zeros(())
    for epoch in range(done + 1, args.epochs + 1):
        sampler.set_epoch(epoch)  # without it every epoch has the same order
        for pixels, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(pixels.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            step += 1
        if rank == 0:
            rate = (step - done * len(loader)) * batch * world / (time.monotonic() - began)
            print(f"torchrun_single: step {step}/{total} loss={loss.item():.4f} {rate:.0f} samples/s", flush=True)
            if checkpoint:
                save(checkpoint, model, optimizer, epoch)
        dist.barrier()  # no rank runs ahead of the checkpoint

    seen = accuracy(model.module, held_out, device)
    if rank == 0:
        verdict = "reached" if seen >= args.target else "MISSED"
        print(f"torchrun_single: accuracy on held-out digits {seen:.4f}, target {args.target} {verdict}", flush=True)
    dist.destroy_process_group()
    return 0 if seen >= args.target else 1


if __name__ == "__main__":
    code = run(arguments())
    sys.stdout.flush()
    # Not sys.exit: a worker of Gloo's may still hold a tensor, and freeing that while Python goes down aborts the
    # process after training has ended well (github.com/pytorch/pytorch/pull/179291).
    os._exit(code)
