# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train a small CNN on CIFAR-10 with DeepSpeed, with a mixture of experts where asked for.

Its flags are those of DeepSpeedExamples' training/cifar/cifar10_deepspeed.py; the configuration is a file. The pictures
are read from CIFAR-10's binary version. With --make an archive of that form is made where there is none: ten classes
that a CNN can learn, and no photographs. At the end the accuracy on held-out pictures is printed, also by class; the
job fails when it is below --target.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import archive
import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepspeed", action="store_true", help="no effect: it always trains with DeepSpeed")
    parser.add_argument("--deepspeed_config", required=True, help="ds_config.json")
    parser.add_argument("--stage", type=int, choices=(0, 1, 2, 3), help="ZeRO stage, instead of the one in ds_config")
    parser.add_argument("--dtype", choices=("bf16", "fp16", "fp32"), help="precision, instead of the one in ds_config")
    parser.add_argument("--epochs", "-e", type=int, default=3)
    parser.add_argument("--log-interval", type=int, default=10, help="steps between two lines")
    parser.add_argument("--target", type=float, default=0.9, help="accuracy below which the job fails")
    parser.add_argument("--data", required=True, help="cifar-10-binary.tar.gz, or the folder in it")
    parser.add_argument(
        "--make", type=int, default=0, help="where --data is missing, make this many; a fifth is held out"
    )
    parser.add_argument("--moe", action="store_true", help="replace one layer by a mixture of experts")
    parser.add_argument("--num-experts", type=int, default=0, help="number of experts; 0: one a rank")
    parser.add_argument("--ep-world-size", type=int, default=0, help="ranks that share one set of experts; 0: all")
    parser.add_argument(
        "--mlp-type", choices=("standard", "residual"), default="standard", help="residual: a dense layer beside"
    )
    parser.add_argument("--top-k", type=int, choices=(1, 2), default=1, help="experts that process each picture")
    parser.add_argument("--min-capacity", type=int, default=4, help="smallest number of pictures an expert takes")
    parser.add_argument("--noisy-gate-policy", choices=("Jitter", "RSample"), help="noise of the gate")
    parser.add_argument(
        "--moe-param-group", action="store_true", help="no effect: experts always have a group of their own"
    )
    parser.add_argument("--checkpoints", default="/workspace/checkpoints/cifar10", help="empty: save none")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--local_rank", type=int, default=-1)
    return parser.parse_args()


def configuration(args: argparse.Namespace) -> dict[str, Any]:
    """Return ds_config.json with the stage and the precision that were asked for."""
    config: dict[str, Any] = json.loads(Path(args.deepspeed_config).read_text(encoding="utf-8"))
    zero = config.setdefault("zero_optimization", {})
    if args.stage is not None:
        zero["stage"] = args.stage
    if args.dtype is not None:
        for name in ("bf16", "fp16"):
            config[name] = {**config.get(name, {}), "enabled": args.dtype == name}
    if args.moe and zero.get("stage", 0) == 3:
        raise SystemExit("cifar10: DeepSpeed's MoE does not work with ZeRO stage 3. Remedy: --stage 2, or no --moe")
    return config


def make(path: Path, number: int, seed: int) -> None:
    """Make pictures that stand in for photographs: a soft coloured pattern a class, moved, lit and noisy."""
    source = torch.Generator().manual_seed(seed)
    patterns = torch.rand(archive.CLASSES, 3, 5, 5, generator=source)
    patterns = torch.nn.functional.interpolate(patterns, size=(32, 32), mode="bilinear", align_corners=False)
    labels = torch.randint(archive.CLASSES, (number,), generator=source)
    moves = torch.randint(-5, 6, (number, 2), generator=source).tolist()
    light = 0.6 + 0.8 * torch.rand(number, 1, 1, 1, generator=source)
    noise = 0.25 * torch.randn(number, 3, 32, 32, generator=source)
    moved = [torch.roll(patterns[label], move, (1, 2)) for label, move in zip(labels.tolist(), moves)]
    pictures = ((torch.stack(moved) * light + noise).clamp(0, 1) * 255).to(torch.uint8)
    records = torch.cat([labels.to(torch.uint8).view(-1, 1), pictures.flatten(1)], dim=1)
    cut = number * 4 // 5
    train, held_out = (bytes(part.flatten().tolist()) for part in (records[:cut], records[cut:]))
    archive.write(path, train, held_out, [f"pattern{label}" for label in range(archive.CLASSES)])


def pictures_of(content: bytes) -> TensorDataset:
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).view(-1, archive.RECORD)
    return TensorDataset(records[:, 1:].reshape(-1, 3, 32, 32).float() / 255.0, records[:, 0].long())


def datasets(args: argparse.Namespace) -> tuple[TensorDataset, TensorDataset, list[str]]:
    """Return what to train on, what is held out and the names of the classes, the same on every rank."""
    path = Path(args.data)
    if args.make and not path.exists():
        make(path, args.make, args.seed)
    files = archive.read(path)
    return (
        pictures_of(b"".join(files[name] for name in archive.TRAIN)),
        pictures_of(files[archive.TEST]),
        archive.names(files),
    )


class Network(torch.nn.Module):
    """A CNN for 32 by 32 pictures; its last hidden layer may be a mixture of experts."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 5, stride=2, padding=2),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(16, 32, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(32 * 4 * 4, 84),
            torch.nn.ReLU(),
        )
        layer = torch.nn.Linear(84, 84)
        self.hidden: torch.nn.Module = layer
        if args.moe:
            world = dist.get_world_size()
            self.hidden = MoE(
                hidden_size=84,
                expert=layer,
                num_experts=args.num_experts or world,
                ep_size=args.ep_world_size or world,
                k=args.top_k,
                min_capacity=args.min_capacity,
                use_residual=args.mlp_type == "residual",
                noisy_gate_policy=args.noisy_gate_policy,
            )
        self.output = torch.nn.Linear(84, archive.CLASSES)

    def forward(self, pictures: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the scores of the classes, and the gate's loss (0 without experts)."""
        seen = self.features(pictures)
        if isinstance(self.hidden, MoE):
            more, gate_loss, _counts = self.hidden(seen)
        else:
            more, gate_loss = self.hidden(seen), seen.new_zeros(())
        # Added, not put in its place: a picture that its expert has no room for goes past it.
        return self.output(torch.relu(seen + more)), gate_loss


def parameters(model: torch.nn.Module, moe: bool) -> list[Any]:
    """Return the parameters; those of experts in their own groups: their gradients are summed over fewer ranks."""
    wanted = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return split_params_into_different_moe_groups_for_optimizer({"params": wanted, "name": "dense"}) if moe else wanted


def right_answers(engine: deepspeed.DeepSpeedEngine, data: TensorDataset) -> torch.Tensor:
    """Return by class the number of right answers, and of pictures.

    Every rank evaluates the same number of pictures, as experts exchange batches of one size; up to one picture a rank
    is left out for that.
    """
    world, size = dist.get_world_size(), 256
    mine = range(dist.get_rank(), len(data) // world * world, world)
    counts = torch.zeros(2, archive.CLASSES, dtype=torch.double, device=engine.device)
    engine.eval()
    with torch.no_grad():
        for start in range(0, len(mine), size):
            pictures, labels = (tensor[list(mine[start : start + size])].to(engine.device) for tensor in data.tensors)
            right = engine(pictures.to(engine.get_data_types()[0]))[0].argmax(dim=1) == labels
            for row, of in enumerate((labels[right], labels)):
                counts[row] += torch.bincount(of, minlength=archive.CLASSES)
    engine.train()
    dist.all_reduce(counts)
    return counts.cpu()


def curve(engine: deepspeed.DeepSpeedEngine, name: str, value: float) -> None:
    """Add a point to a curve, where ds_config asks for curves; DeepSpeed itself writes the learning rate only."""
    if engine.monitor.enabled:
        engine.monitor.write_events([(f"Train/Samples/{name}", value, engine.global_samples)])


def binding() -> str:
    """Return the cores that this process may run on and where its memory comes from, as the kernel tells it."""
    cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    maps = Path("/proc/self/numa_maps")  # not there where the kernel was built without NUMA
    policies = {line.split()[1] for line in maps.read_text(encoding="utf-8").splitlines()} if maps.exists() else set()
    return f"cores {cores} of {os.cpu_count()}, memory {','.join(sorted(policies)) or 'unknown'}"


def main() -> int:
    args = arguments()
    config = configuration(args)
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    print(f"cifar10: rank {dist.get_rank()} on {binding()}", flush=True)
    torch.manual_seed(args.seed)
    train, held_out, names = datasets(args)
    model = Network(args)
    engine = deepspeed.initialize(model=model, model_parameters=parameters(model, args.moe), config=config)[0]
    micro = engine.train_micro_batch_size_per_gpu()
    sampler = DistributedSampler(train, shuffle=True, seed=args.seed)
    loader = DataLoader(train, batch_size=micro, sampler=sampler, drop_last=True)
    first, total = dist.get_rank() == 0, args.epochs * len(loader)
    if first:
        layer = f"{args.num_experts or dist.get_world_size()} experts" if args.moe else "no experts"
        print(
            f"cifar10: {dist.get_world_size()} ranks, backend {dist.get_backend()}, {layer}, ZeRO stage "
            f"{engine.zero_optimization_stage()}, {len(loader)} steps an epoch",
            flush=True,
        )

    step, seen, began, counts = 0, 0.0, time.monotonic(), torch.zeros(2, archive.CLASSES)
    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        for pictures, labels in loader:
            scores, gate_loss = engine(pictures.to(engine.device, engine.get_data_types()[0]))
            loss = torch.nn.functional.cross_entropy(scores.float(), labels.to(engine.device)) + 0.01 * gate_loss
            engine.backward(loss)
            engine.step()
            step += 1
            curve(engine, "train_loss", loss.item())
            if first and step % args.log_interval == 0:
                rate = step * micro * dist.get_world_size() / (time.monotonic() - began)
                print(f"cifar10: step {step}/{total} loss={loss.item():.4f} {rate:.0f} samples/s", flush=True)
        counts = right_answers(engine, held_out)
        seen = float(counts[0].sum() / counts[1].sum())
        curve(engine, "accuracy", seen)
        if args.checkpoints:
            engine.save_checkpoint(args.checkpoints, tag=f"epoch{epoch:02d}")
        if first:
            print(f"cifar10: epoch {epoch}/{args.epochs} loss {loss.item():.4f} accuracy {seen:.4f}", flush=True)

    if first:
        for name, right, of in zip(names, *counts.tolist()):
            print(f"cifar10: accuracy of {name} {right / max(of, 1):.2f} ({of:.0f} pictures)", flush=True)
        verdict = "reached" if seen >= args.target else "MISSED"
        print(f"cifar10: accuracy on held-out pictures {seen:.4f}, target {args.target} {verdict}", flush=True)
    dist.destroy_process_group()
    return 0 if seen >= args.target else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: a worker of Gloo's may still hold a tensor, and freeing that while Python goes down aborts the
    # process after training has ended well (github.com/pytorch/pytorch/pull/179291).
    os._exit(code)
