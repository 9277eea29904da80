# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Bytes that a training job needs on each GPU, in each host and on each host's NVMe disk, before anybody rents them.

``plan`` reads the final configuration, so that overrides count. Every term stands in ``memory_terms`` with its
formula and source. On a GPU it is the sum of what is there at the fullest moment of a step of training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .facts import NEWEST, Version
from .gpus import Gpus, human, read_bytes, read_gpus
from .memory_inputs import Job, job
from .memory_terms import MOMENTS, Part, parts
from .model import Model

__all__ = ["COMPONENTS", "Gpus", "Memory", "Part", "human", "plan", "read_bytes", "read_gpus"]

COMPONENTS = ("weights", "gradients", "optimizer_states", "activations", "buffers", "reserve")
"""What the bytes on a GPU are for; a host has no activations, but ``loading``."""

GPU_RESERVE = 1_536 * 1024**2
"""Bytes for what is not torch's. See ``_reserves``."""
NCCL_IN_HOST = 768 * 1024**2
"""Bytes of NCCL's buffers where a host has several ranks. See ``_nccl``."""
NCCL_BETWEEN_HOSTS = 256 * 1024**2
NCCL_HCA = 64 * 1024**2
_MOST_HCAS = 8
GPU_RESERVE_SHARE = 25
"""A 25th, 4 %, of the memory for what torch's allocator cannot use."""
MOST_FRAGMENTS = 10
"""A tenth: a plan that leaves less than that for fragments is tight."""
_HOST_RESERVE = 4 * 1024**3
_HOST_RESERVE_RANK = 3 * 1024**3


@dataclass(frozen=True)
class Memory:
    """A plan. Sizes are in bytes; ``available`` and ``fits`` are ``None`` where the memory was not given."""

    parts: tuple[Part, ...]
    ranks_per_host: int
    gpu_available: int | None
    host_available: int | None
    assumptions: tuple[str, ...]

    def of(self, place: str, component: str) -> int:
        """Bytes of one component at a place, ``gpu``, ``host`` or ``nvme``; on a GPU the most at any moment."""
        if place == "gpu":
            return max(self.at(moment, component) for moment in MOMENTS)
        return sum(part.bytes for part in self.parts if (part.place, part.component) == (place, component))

    def at(self, moment: str, component: str | None = None) -> int:
        """Bytes on the fullest GPU at a moment, of one component or of all."""
        found = (part for part in self.parts if part.place == "gpu" and moment in part.when)
        return sum(part.bytes for part in found if component in (None, part.component))

    @property
    def fullest(self) -> str:
        """The moment at which a GPU holds most."""
        return max(MOMENTS, key=self.at)

    @property
    def gpu(self) -> int:
        """Bytes on the fullest GPU at that moment."""
        return self.at(self.fullest)

    @property
    def host(self) -> int:
        """Bytes in the fullest host: while loading the model, or while training, whichever is more."""
        loading, reserve = self.of("host", "loading"), self.of("host", "reserve")
        training = sum(part.bytes for part in self.parts if part.place == "host") - loading - reserve
        return reserve + max(loading, training)

    @property
    def nvme(self) -> int:
        """Bytes on the NVMe disk of the fullest host."""
        return sum(part.bytes for part in self.parts if part.place == "nvme")

    @property
    def fits_gpu(self) -> bool | None:
        """Whether a GPU holds it."""
        return None if self.gpu_available is None else self.gpu <= self.gpu_available

    @property
    def tight(self) -> bool:
        """Whether a GPU holds it only if fragments take less than they were seen to take."""
        if self.gpu_available is None or not self.fits_gpu:
            return False
        more = self.gpu_available // MOST_FRAGMENTS - self.gpu_available // GPU_RESERVE_SHARE
        return self.gpu + more > self.gpu_available

    @property
    def fits_host(self) -> bool | None:
        """Whether a host holds it."""
        return None if self.host_available is None else self.host <= self.host_available

    def largest(self, place: str) -> Part:
        """The part that weighs most at a place; on a GPU at its fullest moment."""
        there = (part for part in self.parts if part.place == place and (place != "gpu" or self.fullest in part.when))
        return max(there, key=lambda part: part.bytes)

    def summary(self) -> str:
        """One line for a message."""
        text = f"{_of(self.gpu, self.gpu_available)} per GPU, {_of(self.host, self.host_available)} per host"
        return f"{text}, {human(self.nvme)} of NVMe per host" if self.nvme else text

    def as_dict(self) -> dict[str, Any]:
        """What the module returns as ``memory``."""
        on_gpu = {component: self.at(self.fullest, component) for component in COMPONENTS}
        in_host = {component: self.of("host", component) for component in COMPONENTS if component != "activations"}
        return {
            "per_gpu": {
                **on_gpu,
                "total": self.gpu,
                "fullest": self.fullest,
                "available": self.gpu_available,
                "fits": self.fits_gpu,
            },
            "per_host": {
                **in_host,
                "loading": self.of("host", "loading"),
                "total": self.host,
                "available": self.host_available,
                "fits": self.fits_host,
            },
            "nvme": self.nvme,
            "summary": self.summary(),
            "assumptions": list(self.assumptions),
            "formulas": [part.as_dict() for part in self.parts],
        }


def plan(
    config: dict[str, Any],
    model: Model,
    gpus: Gpus,
    world_size: int,
    host_memory: int | None = None,
    *,
    version: Version = NEWEST,
) -> Memory:
    """The memory that ``config``, as it is to be written, needs on ``world_size`` ranks, ``gpus.count`` in a host.

    ``config`` must have passed the checks: a value that makes no sense counts as absent here. ``host_memory`` is in
    bytes, of one host. Never raises.
    """
    facts = job(config, model, gpus.count, max(1, world_size), version)
    found = [part for part in parts(facts) if part.bytes > 0]
    found += _reserves(facts, gpus)
    notes = [*model.notes, *facts.notes, *_FIXED]
    return Memory(tuple(found), facts.ranks_per_host, gpus.memory, host_memory, tuple(notes))


def _reserves(facts: Job, gpus: Gpus) -> Sequence[Part]:
    """What no formula counts.

    GPU: the CUDA context with its kernels and NCCL's buffers, 1.39 to 1.44 GB on an H100 with one rank, and what
    torch's caching allocator cannot use. With expandable segments 4 % was enough for all 33 plans that were tried so;
    without, it was not for 17 of 25, and a tenth was not for 7 of 33 (docs/gpu_hosts.md). ``tight`` tells of that.
    Host: the system, and for each rank Python with torch and CUDA and its data loaders; a round figure.
    """
    share = (gpus.memory or 0) // GPU_RESERVE_SHARE
    source = "CUDA context and NCCL as measured on an H100; fragments as in practice"
    between = _nccl(facts)
    in_host = _HOST_RESERVE + _HOST_RESERVE_RANK * facts.ranks_per_host
    return (
        Part("reserve", "gpu", "context and fragmentation", GPU_RESERVE + share, "1.5 GiB + 4 % of the memory", source),
        *([between] if between else []),
        Part(
            "reserve",
            "host",
            "system and processes",
            in_host,
            f"4 GiB + 3 GiB x {facts.ranks_per_host} ranks",
            "assumed, not measured: operating system, Python with torch and CUDA, data loaders",
        ),
    )


def _nccl(facts: Job) -> Part | None:
    """NCCL's buffers for other ranks, none with a single one, which makes no channels. Never measured here.

    They are linear in the channels, of which a fast NVLink needs many, and beyond two hosts they no longer grow (NCCL's
    author in nccl#986). Published: 544 MB with two and 688 MB with more ranks on four A100 with NVLink (nccl#964),
    1.6 GB for a communicator with its context (nccl#864), 128 MB for one between hosts (TransformerEngine#163), and
    more with each HCA (nccl#818, without a figure). Hence 768 MiB where a host has several ranks, and between hosts
    256 MiB and 64 MiB for each HCA: two channels, each with a buffer of 10 and of 2 MiB (nccl#1685) in two directions,
    rounded up. How many HCAs there are is not known here: one for each rank of a host, at most eight.
    """
    here = facts.ranks_per_host
    hcas = min(here, _MOST_HCAS)
    elsewhere = facts.data_parallel * facts.pieces > here
    size = (NCCL_IN_HOST if here > 1 else 0) + (NCCL_BETWEEN_HOSTS + NCCL_HCA * hcas if elsewhere else 0)
    terms = [*(["0.75 GiB"] if here > 1 else []), *([f"0.25 GiB + 64 MiB x {hcas} HCAs"] if elsewhere else [])]
    source = "assumed, not measured: nccl#986, #964, #864, #818"
    return Part("reserve", "gpu", "NCCL between ranks", size, " + ".join(terms), source) if size else None


_FIXED = (
    "attention runs in a fused kernel (SDPA, FlashAttention): no memory that grows with the square of the length",
    "the loss is transformers' cross entropy; a fused one (Liger) saves most of the logits' memory",
    "of all moments of a step the fullest counts; what making the engine takes for a moment does not",
)


def _of(size: int, available: int | None) -> str:
    return human(size) if available is None else f"{human(size)} of {human(available)}"
