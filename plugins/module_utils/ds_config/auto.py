# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""``precision: auto`` and ``preset: auto``: what the GPUs can do, and the fastest preset whose memory plan fits.

The order is by bytes that cross a wire in one step, ``P`` being the bytes of the weights (ZeRO, arXiv:1910.02054,
section 7; DeepSpeed's ``average_tensor``). ZeRO-0 reduces gradients once a step (2P); ZeRO-1 does so too and then
gathers weights (2P to 3P), with an optimizer step of a fraction of the time; ZeRO-2 reduces at every micro-batch;
ZeRO-3 gathers the weights twice for every micro-batch besides. Offload adds PCIe (gradients down, weights up) and Adam
on the CPU, which most networks that people train over outrun; NVMe is slower still.

Never chosen: pipeline (the script must be written for it), zenflow (it changes what is learned: most gradients update
late), superoffload (it pays only where CPU and GPU share NVLink, such as GH200, which nothing here can see).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..common.problems import Problem
from .facts import NEWEST, Version
from .gpus import Capability, Gpus, human
from .memory import Memory, plan
from .model import Model

ORDER = (
    "zero0",
    "zero1",
    "zero2",
    "zero3",
    "zero2_offload",
    "zero3_offload_optimizer",
    "zero3_offload",
    "zero3_infinity",
)
"""Candidates for several ranks, the fastest first."""
ORDER_ALONE = ("zero0", "zero2_offload", "zero3_offload", "zero3_infinity")
"""For one rank, which has no one to share with: stages differ by their offload only."""

_NVME = "zero3_infinity"
_MICRO = "train_micro_batch_size_per_gpu"
_BF16: Capability = (8, 0)
_FP16: Capability = (7, 0)
_MOST_HOSTS = 512
_LEAST_LENGTH = 512
"""Tokens; a shorter sequence is not an advice to train a language model by."""


@dataclass(frozen=True)
class Precision:
    """``bf16``, ``fp16`` or ``fp32``, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Candidate:
    """A preset that was considered; ``verdict`` says in words why it was taken or not. No plan: it cannot be had."""

    preset: str
    memory: Memory | None
    fits: bool
    verdict: str


@dataclass(frozen=True)
class Choice:
    """The preset that was taken, and everything that was considered before."""

    preset: str
    memory: Memory
    candidates: tuple[Candidate, ...]

    @property
    def reasons(self) -> list[str]:
        """One line for each candidate."""
        return [candidate.verdict for candidate in self.candidates]


@dataclass(frozen=True)
class _Situation:
    """What a choice is made for."""

    configuration: Callable[[str], dict[str, Any]]
    model: Model
    gpus: Gpus
    world_size: int
    host_memory: int | None
    version: Version

    def plan(self, name: str) -> Memory:
        config = self.configuration(name)
        return plan(config, self.model, self.gpus, self.world_size, self.host_memory, version=self.version)

    def fits(self, name: str) -> bool:
        memory = self.plan(name)
        return memory.fits_gpu is not False and memory.fits_host is not False

    @property
    def micro_batch(self) -> int:
        """That of the final configuration, 1 where it is not a number."""
        value = self.configuration(self.order[0]).get(_MICRO)
        return value if isinstance(value, int) and not isinstance(value, bool) else 1

    @property
    def order(self) -> tuple[str, ...]:
        return ORDER if self.world_size > 1 else ORDER_ALONE


def precision_for(compute_capability: Capability | None) -> Precision | None:
    """The precision for GPUs of this compute capability (the least of them), or ``None`` where it is not known.

    bf16 from 8.0 (Ampere): it needs no loss scaling. fp16 from 7.0, as DeepSpeed's ``is_fp16_supported``. bf16 is
    emulated below 8.0, slowly, whatever ``torch.cuda.is_bf16_supported()`` says.
    """
    if compute_capability is None:
        return None
    seen = "{}.{}".format(*compute_capability)
    if compute_capability >= _BF16:
        return Precision("bf16", f"compute capability {seen}: bf16 is there from 8.0 and needs no loss scaling")
    if compute_capability >= _FP16:
        return Precision("fp16", f"compute capability {seen}: bf16 comes with 8.0, DeepSpeed takes fp16 from 7.0")
    return Precision("fp32", f"compute capability {seen}: DeepSpeed refuses fp16 below 7.0, and bf16 comes with 8.0")


def missing(model: Model | None, gpus: Gpus | None, world_size: int | None) -> list[Problem]:
    """What ``preset: auto`` needs and was not given."""
    needs = {
        "model": (model is not None, "its parameters, such as 10B, or the fields of its config.json"),
        "gpus.count": (gpus is not None and gpus.count is not None, "the number of GPUs in each host"),
        "gpus.memory": (gpus is not None and gpus.memory is not None, "of one GPU, such as 24GB or 24564 MiB"),
        "world_size": (world_size is not None, "the number of ranks of the job, one for each GPU"),
    }
    return [Problem(path, f"is needed with preset auto: {what}") for path, (there, what) in needs.items() if not there]


def choose(
    configuration: Callable[[str], dict[str, Any]],
    model: Model | None,
    gpus: Gpus | None,
    world_size: int | None,
    host_memory: int | None = None,
    *,
    version: Version = NEWEST,
) -> tuple[Choice | None, list[Problem]]:
    """The first preset in ``ORDER`` that fits on GPUs and hosts.

    ``configuration`` gives the final configuration for a preset's name, overrides and precision in it. Without
    ``host_memory`` hosts are taken as large enough, and the verdict says what they need.
    """
    problems = missing(model, gpus, world_size)
    if problems or model is None or gpus is None or world_size is None:
        return None, problems
    situation = _Situation(configuration, model, gpus, max(1, world_size), host_memory, version)
    considered: list[Candidate] = []
    for name in situation.order:
        candidate = _candidate(situation, name)
        considered.append(candidate)
        if candidate.fits and candidate.memory is not None:
            return Choice(name, candidate.memory, tuple(considered)), []
    remedies = "; or ".join(_remedies(situation)) or "GPUs or hosts with more memory"
    nothing = Problem("preset", f"auto found none that fits. What would: {remedies}")
    return None, [nothing, *(Problem("preset", candidate.verdict) for candidate in considered)]


def _candidate(situation: _Situation, name: str) -> Candidate:
    if name == _NVME and not _nvme_path(situation.configuration(name)):
        needs = "zero_optimization.offload_param.nvme_path and offload_optimizer.nvme_path in config"
        return Candidate(name, None, False, f"{name}: not considered; it needs {needs}")
    memory = situation.plan(name)
    wrong = []
    if memory.fits_gpu is False:
        part = memory.largest("gpu")
        wrong.append(
            f"a GPU has {human(memory.gpu_available or 0)}, it needs {human(memory.gpu)}"
            f" ({human(part.bytes)} of that for {part.name})"
        )
    if memory.fits_host is False:
        wrong.append(f"a host has {human(memory.host_available or 0)}, it needs {human(memory.host)}")
    if wrong:
        return Candidate(name, memory, False, f"{name}: does not fit; " + ", and ".join(wrong))
    unknown = "; host_memory was not given: see that a host has that" if memory.fits_host is None else ""
    return Candidate(name, memory, True, f"{name}: fits; {memory.summary()}{unknown}")


def _remedies(situation: _Situation) -> Iterator[str]:
    """Changes that make one of the presets fit, each tried alone, the cheapest first.

    Checkpointing costs a third more time and nothing else: where it is off, the others are tried with it.
    """
    tried = [name for name in situation.order if name != _NVME or _nvme_path(situation.configuration(name))]
    also, model = "", situation.model
    if not model.activation_checkpointing:
        model = replace(model, activation_checkpointing=True)
        situation = replace(situation, model=model)
        name = _first(situation, tried)
        if name:
            yield f"activation checkpointing ({name})"
            return
        also = "activation checkpointing and "
    was = situation.micro_batch
    micro = was // 2
    while micro >= 1:
        name = _first(replace(situation, configuration=_with_micro_batch(situation.configuration, micro)), tried)
        if name:
            yield f"{also}train_micro_batch_size_per_gpu {micro} instead of {was} ({name})"
            break
        micro //= 2
    length = model.sequence_length // 2
    while length >= _LEAST_LENGTH:
        name = _first(replace(situation, model=replace(model, sequence_length=length)), tried)
        if name:
            yield f"{also}sequence_length {length} instead of {model.sequence_length} ({name})"
            break
        length //= 2
    if model.trainable > model.parameters // 100:
        name = _first(replace(situation, model=replace(model, trainable=max(1, model.parameters // 100))), tried)
        if name:
            yield f"{also}LoRA with 1 % of the parameters ({name})"
    if _NVME not in tried and situation.fits(_NVME):
        yield f"{also}a local NVMe disk with {human(situation.plan(_NVME).nvme)} in each host ({_NVME})"
    for remedy in _more_memory(situation, tried):
        yield also + remedy


def _with_micro_batch(configuration: Callable[[str], dict[str, Any]], micro: int) -> Callable[[str], dict[str, Any]]:
    return lambda name: {**configuration(name), _MICRO: micro}


def _first(situation: _Situation, names: Sequence[str]) -> str | None:
    return next((name for name in names if situation.fits(name)), None)


def _more_memory(situation: _Situation, tried: list[str]) -> Iterator[str]:
    count = situation.gpus.count or 1
    ranks = count * (situation.world_size // count + 1)
    order = [name for name in ORDER if name != _NVME or name in tried]
    while ranks <= count * _MOST_HOSTS:
        larger = replace(situation, world_size=ranks)
        name = _first(larger, order)
        if name:
            yield f"{ranks} GPUs, {ranks // count} hosts of {count} ({name})"
            break
        ranks += count
    offloads = [(situation.plan(name), name) for name in tried if "offload" in name]
    enough = [(memory.host, name) for memory, name in offloads if memory.fits_gpu and memory.fits_host is False]
    if enough:
        need, name = min(enough)
        yield f"{human(need)} of memory in each host ({name})"


def _nvme_path(config: dict[str, Any]) -> bool:
    zero = config.get("zero_optimization")
    block = zero.get("offload_param") if isinstance(zero, dict) else None
    return isinstance(block, dict) and bool(block.get("nvme_path"))
