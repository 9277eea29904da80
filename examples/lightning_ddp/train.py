# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train a tiny voice model with Lightning's DDP: one command on each node, which starts the ranks of that node itself.

The model recognizes which vowel a voice says. The voices are synthetic: a pulse train of random pitch through three
resonances, with noise. The job ends with a failure when the accuracy on held-out voices is below --target.

Of the environment it needs MASTER_ADDR, MASTER_PORT, WORLD_SIZE (ranks of all nodes) and NODE_RANK. NPROC_PER_NODE
(ranks of this node) and NNODES may be given; without them every node has one rank for each GPU, or one on CPUs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.environments import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader, TensorDataset

RATE = 8000  # samples a second
SAMPLES = 2048  # about a quarter of a second
# The first three formants of five vowels in Hz, as textbooks of phonetics give them for a man's voice.
FORMANTS = {
    "a": (730.0, 1090.0, 2440.0),
    "e": (530.0, 1840.0, 2480.0),
    "i": (270.0, 2290.0, 3010.0),
    "o": (570.0, 840.0, 2410.0),
    "u": (300.0, 870.0, 2240.0),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16, help="voices a rank processes in one step")
    parser.add_argument("--voices", type=int, default=1200, help="how many voices to make; a fifth is held out")
    parser.add_argument("--target", type=float, default=0.9, help="accuracy below which the job fails")
    parser.add_argument("--checkpoints", default="/workspace/checkpoints/lightning_ddp", help="empty: save none")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint, where there is one")
    parser.add_argument("--seed", type=int, default=3)
    return parser.parse_args()


def layout() -> tuple[int, int]:
    """Return the number of nodes and the ranks of each, from the environment."""
    given = {name: os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "NODE_RANK")}
    missing = [name for name, value in given.items() if not value]
    if missing:
        raise SystemExit(
            f"lightning_ddp: {', '.join(missing)} not in the environment. Remedy: launch it with "
            "deepspeed_launch_launcher: per_node, or set them by hand on every node"
        )
    world = int(given["WORLD_SIZE"])
    devices = int(os.environ.get("NPROC_PER_NODE") or torch.cuda.device_count() or 1)
    nodes = int(os.environ.get("NNODES") or world // devices)
    if world != nodes * devices:
        raise SystemExit(
            f"lightning_ddp: WORLD_SIZE is {world}, and this node has {devices} ranks: Lightning needs as many on each "
            "node. Remedy: the same gpu_slots everywhere, or the same number of slots in deepspeed_launch_include"
        )
    return nodes, devices


def voices(number: int, seed: int) -> TensorDataset:
    """Return waveforms of vowels that no one has spoken, the same on every rank."""
    source = torch.Generator().manual_seed(seed)
    vowels = torch.randint(len(FORMANTS), (number,), generator=source)
    pitch = 90.0 + 130.0 * torch.rand(number, 1, generator=source)
    throat = 0.88 + 0.24 * torch.rand(number, 1, generator=source)  # longer and shorter throats move all formants
    harmonics = torch.arange(1, 40).view(1, -1) * pitch
    places = torch.tensor(list(FORMANTS.values()))[vowels] * throat
    loud = sum(1.0 / (1.0 + ((harmonics - places[:, n : n + 1]) / 90.0) ** 2) for n in range(3)) / harmonics.sqrt()
    loud = torch.where(harmonics < RATE / 2, loud, torch.zeros(()))
    phases = 6.2832 * torch.rand(harmonics.shape, generator=source)
    times = torch.arange(SAMPLES) / RATE
    waves = torch.zeros(number, SAMPLES)
    for n in range(harmonics.shape[1]):
        turns = 6.2832 * harmonics[:, n : n + 1] * times + phases[:, n : n + 1]
        waves += loud[:, n : n + 1] * torch.sin(turns)
    waves /= waves.std(dim=1, keepdim=True)
    return TensorDataset(waves + 0.8 * torch.randn(number, SAMPLES, generator=source), vowels)


class Listener(lightning.LightningModule):
    """Short-time spectra, then a CNN over time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(256), persistent=False)
        self.network = torch.nn.Sequential(
            torch.nn.BatchNorm1d(129),
            torch.nn.Conv1d(129, 32, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.Conv1d(32, 32, 3, padding=1),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool1d(1),
            torch.nn.Flatten(),
            torch.nn.Linear(32, len(FORMANTS)),
        )
        self.seen = 0.0
        self.began = time.monotonic()
        self.steps = 0

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        spectra = torch.stft(waves, 256, hop_length=128, window=self.window, return_complex=True).abs()
        scores: torch.Tensor = self.network(torch.log1p(spectra))
        return scores

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        waves, vowels = batch
        loss = torch.nn.functional.cross_entropy(self(waves), vowels)
        self.steps += 1
        if self.steps % 10 == 0 and self.trainer.is_global_zero:
            rate = self.steps * len(vowels) * self.trainer.world_size / (time.monotonic() - self.began)
            total = self.trainer.estimated_stepping_batches
            step = self.global_step + 1
            print(f"lightning_ddp: step {step}/{total} loss={loss.item():.4f} {rate:.0f} samples/s", flush=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor], _index: int) -> None:
        waves, vowels = batch
        right = (self(waves).argmax(dim=1) == vowels).float().mean()
        self.log("accuracy", right, on_epoch=True, batch_size=len(vowels), sync_dist=True)

    def on_train_start(self) -> None:
        self.began = time.monotonic()
        epochs: list[Any] = [None] * self.trainer.world_size
        dist.all_gather_object(epochs, self.current_epoch)
        if len(set(epochs)) > 1:
            raise SystemExit(
                f"lightning_ddp: the ranks go on from different epochs ({epochs}): only the node of rank 0 "
                "has the checkpoint. Remedy: --checkpoints on a disk that all nodes share"
            )
        if self.trainer.is_global_zero:
            print(
                f"lightning_ddp: {self.trainer.world_size} ranks on {self.trainer.num_nodes} nodes, "
                f"backend {dist.get_backend()}",
                flush=True,
            )

    def on_validation_epoch_end(self) -> None:
        self.seen = float(self.trainer.callback_metrics["accuracy"])
        if self.trainer.is_global_zero:
            epochs = f"{self.trainer.current_epoch + 1}/{self.trainer.max_epochs}"
            print(f"lightning_ddp: epoch {epochs} accuracy {self.seen:.4f}", flush=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


def wait_for_children(trainer: lightning.Trainer) -> int:
    """Wait for the ranks that this one has started on its node; return the first bad exit code, or 0."""
    children = getattr(trainer.strategy.launcher, "procs", [])
    return next((code for code in [child.wait() for child in children] if code), 0)


def main() -> int:
    args = arguments()
    nodes, devices = layout()
    lightning.seed_everything(args.seed)
    data = voices(args.voices, args.seed)
    cut = args.voices * 4 // 5
    train, held_out = ([tensor[part] for tensor in data.tensors] for part in (slice(cut), slice(cut, None)))
    cuda = torch.cuda.is_available()
    saving: list[Any] = [ModelCheckpoint(args.checkpoints, save_last=True)] if args.checkpoints else []
    trainer = lightning.Trainer(
        accelerator="gpu" if cuda else "cpu",
        num_nodes=nodes,
        devices=devices,
        strategy=DDPStrategy(process_group_backend="nccl" if cuda else "gloo"),
        plugins=[LightningEnvironment()],  # never a scheduler that Lightning believes to see
        max_epochs=args.epochs,
        callbacks=saving,
        enable_checkpointing=bool(saving),
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=True,
    )
    last = Path(args.checkpoints) / "last.ckpt" if args.checkpoints else None
    model = Listener()
    trainer.fit(
        model,
        DataLoader(TensorDataset(*train), batch_size=args.batch, shuffle=True, drop_last=True),
        DataLoader(TensorDataset(*held_out), batch_size=64),
        ckpt_path=str(last) if args.resume and last and last.exists() else None,
    )
    if trainer.is_global_zero:
        verdict = "reached" if model.seen >= args.target else "MISSED"
        print(
            f"lightning_ddp: accuracy on held-out voices {model.seen:.4f}, target {args.target} {verdict}", flush=True
        )
    if dist.is_initialized():
        dist.destroy_process_group()
    return wait_for_children(trainer) or (0 if model.seen >= args.target else 1)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: a worker of Gloo's may still hold a tensor, and freeing that while Python goes down aborts the
    # process after training has ended well (github.com/pytorch/pytorch/pull/179291).
    os._exit(code)
