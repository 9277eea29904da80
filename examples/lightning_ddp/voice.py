# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""A tiny voice model and its data, as LightningCLI takes them: their arguments are keys of its configuration.

The model recognizes which vowel a voice says. The voices are synthetic: a pulse train of random pitch through three
resonances, with noise.
"""

from __future__ import annotations

import time
from typing import Any

import lightning
import torch
import torch.distributed as dist
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


class Vowels(lightning.LightningDataModule):
    """So many voices, the same on every rank; a fifth is held out."""

    def __init__(self, voices: int = 1200, batch: int = 16, seed: int = 3) -> None:
        super().__init__()
        self.voices, self.batch, self.seed = voices, batch, seed
        self.train: TensorDataset
        self.held_out: TensorDataset

    def setup(self, stage: str) -> None:
        data = voices(self.voices, self.seed)
        cut = self.voices * 4 // 5
        self.train, self.held_out = (
            TensorDataset(*(tensor[part] for tensor in data.tensors)) for part in (slice(cut), slice(cut, None))
        )

    def train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(self.train, batch_size=self.batch, shuffle=True, drop_last=True)

    def val_dataloader(self) -> DataLoader[Any]:
        return DataLoader(self.held_out, batch_size=64)


class Listener(lightning.LightningModule):
    """Short-time spectra, then a CNN over time."""

    def __init__(self, rate: float = 3e-3, target: float = 0.9) -> None:
        super().__init__()
        self.rate, self.target = rate, target
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
                "has the checkpoint. Remedy: dirpath of ModelCheckpoint on a disk that all nodes share"
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
        return torch.optim.AdamW(self.parameters(), lr=self.rate)
