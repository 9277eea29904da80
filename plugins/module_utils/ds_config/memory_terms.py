# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The terms of a memory plan: what DeepSpeed allocates for a configuration, each with its formula and source.

Read in DeepSpeed 0.15.4 to 0.19.8: runtime/zero/stage_1_and_2.py, runtime/zero/stage3.py, runtime/swap_tensor/,
runtime/fp16/fused_optimizer.py, runtime/engine.py. The states of model and optimizer are those of Rajbhandari et al.,
"ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (arXiv:1910.02054); activations are those of
Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv:2205.05198), without the
term of the attention matrix. ``N`` is the number of ranks that share the states, ``T`` the trainable parameters.

A GPU is not full of everything at once: the gradients of a step are there when activations are gone. So each term says
at which of four moments of a step of training it is there, and a plan is the fullest moment. What is there when was
read in DeepSpeed 0.19.8 and agrees with what its engine allocates on a CPU (docs/gpu_hosts.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from .facts import Version
from .memory_inputs import Job, share

_ZERO_PAPER = "ZeRO, arXiv:1910.02054, section 3"
_ACTIVATIONS = "Korthikanti et al., arXiv:2205.05198, equation 2 without attention matrices"
_STAGE12 = "DeepSpeed, runtime/zero/stage_1_and_2.py"
_STAGE3 = "DeepSpeed, runtime/zero/stage3.py"
_SWAP = "DeepSpeed, runtime/swap_tensor"
_ZENFLOW = "DeepSpeed, runtime/zenflow: an estimate"
_LOSS = "transformers, loss/loss_utils.py: cross entropy in fp32"
_MEASURED = "as measured on an H100: docs/gpu_hosts.md"
_PINNED = "PyTorch, CachingHostAllocator: pinned blocks are powers of two (DS_PIN_MEMORY_BACKEND=native avoids it)"

_WORKSPACE = "PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp: Hopper and Blackwell, others 8 MiB; read 2026-11-23"

LOSS, BACKWARD, REDUCTION, STEP = MOMENTS = ("loss", "backward", "reduction", "step")
"""The loss's gradient, before any of a weight; the first gradients of weights, with all activations; from the first
reduction to the last, when gradients have a place of their own; the optimizer's step."""
_TRAINING = (LOSS, BACKWARD, REDUCTION)
_GRADIENTS = (BACKWARD, REDUCTION)

LARGEST = "largest layer gathered, and its gradient"
CUBLAS = "cuBLAS workspaces"
_ALLREDUCE = 500_000_000
"""Elements that stage 0 reduces at a time (MEMORY_OPT_ALLREDUCE_SIZE in runtime/engine.py)."""
_CUBLAS = 2 * 32 * 1024**2
"""A workspace for each thread that multiplies: the forward pass has one, autograd another."""
_STAGING = Version(0, 17, 6)
"""From here on, optimizer offload with stage 1 and 2 copies weights back in 16 bit; before, through fp32 on the GPU."""


@dataclass(frozen=True)
class Part:
    """One term. ``place`` is ``gpu``, ``host`` or ``nvme``; hosts' and disks' bytes are those of all ranks there."""

    component: str
    place: str
    name: str
    bytes: int
    formula: str
    source: str
    when: tuple[str, ...] = MOMENTS
    """The moments at which it is on the GPU."""

    def as_dict(self) -> dict[str, Any]:
        """The form that the module returns."""
        return {**asdict(self), "when": list(self.when)}


def parts(job: Job) -> Iterator[Part]:
    """All terms of a job but the reserves."""
    yield from _weights(job)
    yield from _gradients(job)
    yield from _optimizer(job)
    yield from _activations(job)
    yield from _stage3_buffers(job) if job.stage == 3 else _buffers(job)
    yield Part("buffers", "gpu", CUBLAS, _CUBLAS, "2 threads x 32 MiB", _WORKSPACE)
    if job.optimizer_device != "none":
        yield from _offloaded_optimizer(job)
    if job.param_device != "none":
        yield from _offloaded_weights(job)
    yield from _rounded_up(job)


def _weights(job: Job) -> Iterator[Part]:
    if job.stage < 3:
        yield _gpu("weights", "weights", job.weight, job.parameters, _ZERO_PAPER)
        size, formula = _product(job.weight, job.parameters)
        yield Part(
            "loading",
            "host",
            "every rank loads the model",
            size * job.ranks_per_host,
            f"{formula} x {job.ranks_per_host} ranks",
            "as DeepSpeed's estimators, which count 4 bytes; with stage 3 the model is built in parts (zero.Init)",
        )
    elif job.param_device == "none":
        yield _gpu("weights", "weights", job.weight, job.parameters, _ZERO_PAPER, by=job.ranks)
    if job.secondary > 1:
        source = "DeepSpeed, zero_hpz_partition_size"
        yield _gpu("weights", "second copy of ZeRO++", job.weight, job.parameters, source, by=job.secondary)


def _gradients(job: Job) -> Iterator[Part]:
    """On a GPU: what accumulates, and the copies in the master weights' precision that a step works on.

    Without accumulation there are none before the first is reduced. Stages 1 and 2 then put them into a buffer of the
    rank's share; what accumulated until then is still there beside it.
    """
    late = MOMENTS if job.accumulates else (REDUCTION, STEP)
    if job.stage < 2:
        yield _gpu("gradients", "gradients", job.gradient, job.trainable, _ZERO_PAPER, when=late)
    elif job.optimizer_device == "none":
        when = MOMENTS if job.stage == 3 else late
        yield _gpu("gradients", "gradients", job.gradient, job.trainable, _ZERO_PAPER, by=job.ranks, when=when)
    if job.stage in (1, 2) and job.accumulates and job.optimizer_device == "none" and job.gradient == job.weight:
        name = "gradients of the last micro-batch"
        yield _gpu("gradients", name, job.gradient, job.trainable, _STAGE12, by=job.ranks, when=(REDUCTION,))
    yield from _step_gradients(job)


def _step_gradients(job: Job) -> Iterator[Part]:
    """Gradients are flattened into one tensor before they are converted; stage 0 converts first and flattens then."""
    flat = job.master if job.stage == 0 else job.gradient if job.gradient != job.master else 0
    more: dict[str, Any] = {"part": job.kept, "when": (STEP,)}
    if job.stage == 3:
        group = min(job.own, job.sub_group + share(job.model.largest, job.ranks))
        name = "gradients of a step" if group == job.own else "gradients of a step, one sub_group"
        yield _gpu("gradients", name, job.master, group, _STAGE3, **more)
        yield _gpu("gradients", "flattened copy of them", flat, group, _STAGE3, **more)
        return
    source = _STAGE12 if job.stage else "DeepSpeed, runtime/fp16/fused_optimizer.py"
    yield _gpu("gradients", "gradients of a step", job.master, job.trainable, source, by=job.ranks, **more)
    yield _gpu("gradients", "flattened copy of them", flat, job.trainable, source, by=job.ranks, **more)


def _optimizer(job: Job) -> Iterator[Part]:
    """On a GPU, or the part that stays there."""
    states = "optimizer_states"
    yield _gpu(states, "master weights", job.master, job.trainable, _ZERO_PAPER, by=job.ranks, part=job.kept)
    each = job.moment * job.moments
    yield _gpu(states, "moments", each, job.trainable, _ZERO_PAPER, by=job.ranks, part=job.kept)
    if job.optimizer_device != "none":
        # its own copy of the weights and Adam's two moments, in fp32
        yield _gpu(states, "ZenFlow's selection", 12, job.trainable, _ZENFLOW, by=job.ranks, part=job.top_share)


def _offloaded_optimizer(job: Job) -> Iterator[Part]:
    """States in a host or on its NVMe disk, of all its ranks."""
    place = "nvme" if job.optimizer_device == "nvme" else "host"
    for component, name, each in (
        ("optimizer_states", "master weights", job.cpu_master),
        ("optimizer_states", "moments", job.moment * job.moments),
        ("gradients", "gradients of a step", job.cpu_master),
    ):
        yield _host(job, component, name, each, _ZERO_PAPER, place=place, part=1 - job.kept)
    if job.stage == 3:
        yield _host(job, "gradients", "gradients", job.gradient, _STAGE3)
    elif job.accumulates:
        yield _host(job, "gradients", "accumulated gradients", job.weight, _STAGE12)
    if job.stage < 3 and job.version >= _STAGING:
        yield _host(job, "buffers", "weights on their way back", job.weight, _STAGE12)
    if job.top_share:
        yield _host(job, "gradients", "ZenFlow's second buffer", job.cpu_master, _ZENFLOW)
    if place == "nvme":
        group = min(job.own, job.sub_group + share(job.model.largest, job.ranks))
        buffers = _product(job.optimizer_buffers * job.cpu_master, group)
        yield _of_all(job, "buffers", "swap buffers of the optimizer", buffers, _SWAP)


def _offloaded_weights(job: Job) -> Iterator[Part]:
    own = share(job.parameters, job.ranks)
    in_host = min(own, job.max_in_cpu) if job.param_device == "nvme" else own
    yield _of_all(job, "weights", "weights", _product(job.weight, in_host), _STAGE3)
    if job.param_device == "nvme":
        yield _of_all(job, "weights", "weights", _product(job.weight, own), _SWAP, place="nvme")
        buffers = _product(job.weight * job.param_buffers, job.param_buffer_size)
        yield _of_all(job, "buffers", "swap buffers of parameters", buffers, _SWAP)


def _rounded_up(job: Job) -> Iterator[Part]:
    """Blocks of pinned memory; DeepSpeed pins gradients, 16-bit weights and, with stage 1 and 2, master weights."""
    blocks: list[tuple[int, int]] = []
    if job.optimizer_pinned and job.optimizer_device != "none":
        if job.stage < 3:
            blocks += [(2, job.cpu_master * job.own), (int(job.version >= _STAGING), job.weight * job.own)]
        else:
            blocks.append((1, job.gradient * job.own))
        if job.stage == 3 and job.optimizer_device == "cpu":
            groups, rest = divmod(job.own, max(1, min(job.sub_group, job.own)))
            blocks += [(groups, job.cpu_master * min(job.sub_group, job.own)), (1, job.cpu_master * rest)]
    if job.param_device != "none":  # pinned whatever pin_memory says
        own = share(job.parameters, job.ranks)
        blocks.append((1, job.weight * (min(own, job.max_in_cpu) if job.param_device == "nvme" else own)))
    lost = sum(count * ((1 << (size - 1).bit_length()) - size) for count, size in blocks if size > 0)
    yield _of_all(job, "buffers", "pinned blocks rounded up", (lost, "to the next power of two"), _PINNED)


def _activations(job: Job) -> Iterator[Part]:
    """What a backward pass needs of the forward pass, on the GPU with the first layers.

    With a pipeline the first stage holds as many micro-batches as there are stages, so the layers of all count.
    Recomputation (activation checkpointing) keeps each layer's input, and one layer's activations at a time.
    """
    model, size = job.model, job.activation
    tokens = share(model.sequence_length, job.sequence_parallel) * job.micro_batch
    # inputs of two norms and of the projections; queries, keys, values, attention's output; the MLP
    attention = 3 * model.hidden + 2 * model.query + 2 * model.key_value
    mlp = (4 if model.gated else 2) * model.feed_forward + model.copies * model.hidden
    masks = 0 if model.gated else 2 * model.hidden  # of dropout, a byte each; Llama and its kin have none
    layer = size * (attention + mlp) + masks
    # fp32 log-probabilities, their gradient and that of the logits; the logits themselves, also once more in fp32
    logits = (14 if size == 2 else 16) * model.vocabulary
    held = size * model.vocabulary
    if model.activation_checkpointing:
        inputs = size * model.hidden * model.layers
        yield _gpu("activations", "input of every layer", inputs, tokens, _ACTIVATIONS, when=_TRAINING)
        yield _gpu("activations", "one layer computed again", layer, tokens, _ACTIVATIONS, when=_GRADIENTS)
    else:
        yield _gpu("activations", "all layers", layer * model.layers, tokens, _ACTIVATIONS, when=(LOSS, BACKWARD))
        # the layers behind the first bucket have been worked off when it is reduced
        later = 0.0 if job.stage == 0 else max(0.0, 1 - job.bucket / job.trainable)
        name, each = "layers whose gradients are to come", layer * (math.ceil(later * model.layers) + 1)
        yield _gpu("activations", name, min(each, layer * model.layers), tokens, _ACTIVATIONS, when=(REDUCTION,))
    name = "inputs of the last norm and of the head"
    yield _gpu("activations", name, 2 * size * model.hidden, tokens, _MEASURED, when=(LOSS, BACKWARD))
    yield _gpu("activations", "logits and loss", logits, tokens, _LOSS, when=(LOSS,))
    name = "logits, which a script holds until the step"
    yield _gpu("activations", name, held, tokens, _LOSS, when=_GRADIENTS)


def _buffers(job: Job) -> Iterator[Part]:
    """Stage 0 to 2: buckets, and what offload needs on the GPU."""
    if job.stage == 0:
        if job.data_parallel > 1:
            source, elements = "DeepSpeed, runtime/engine.py", min(_ALLREDUCE, job.trainable)
            yield _gpu("buffers", "all-reduce bucket", job.gradient, elements, source, when=(REDUCTION,))
        return
    count = 2 if job.overlap else 1
    yield _gpu("buffers", "reduce buckets", count * job.gradient, job.bucket, _STAGE12, when=_GRADIENTS)
    if job.ranks > 1:
        name, elements = "a bucket's copy while it is reduced", min(job.bucket, job.trainable)
        yield _gpu("buffers", name, job.gradient, elements, _STAGE12, when=_GRADIENTS)
    source = "autograd, before it is reduced"
    yield _gpu("buffers", "gradient of the largest layer", job.weight, job.model.largest, source, when=_GRADIENTS)
    if job.optimizer_device != "none":
        yield _gpu("buffers", "gradient on its way to the CPU", job.weight, job.model.largest, _STAGE12)
        yield _gpu("buffers", "the same in fp32", job.cpu_master, job.model.largest, _STAGE12, when=_GRADIENTS)
        if job.version < _STAGING:
            source = f"{_STAGE12} before {_STAGING}"
            name = "fp32 weights on their way back"
            yield _gpu("buffers", name, 4, job.trainable, source, by=job.ranks, when=(STEP,))


def _stage3_buffers(job: Job) -> Iterator[Part]:
    """Stage 3: parameters gathered for use, and the reduce bucket. A single rank uses its weights where they are."""
    largest = min(job.model.largest, job.parameters)
    source = "DeepSpeed's estimate_zero3_model_states_mem_needs"
    yield _gpu("buffers", LARGEST, 2 * job.weight, largest, source, when=_TRAINING)
    alone = job.ranks == 1 and job.param_device == "none"
    live = 0 if alone else max(0, min(job.live, job.parameters) - largest)
    source = "DeepSpeed, runtime/zero/partitioned_param_coordinator.py: stage3_max_live_parameters"
    yield _gpu("buffers", "further live parameters", job.weight, live, source, when=_TRAINING)
    if job.ranks > 1:
        source, elements = "DeepSpeed, runtime/zero/partition_parameters.py", min(job.prefetch, job.parameters)
        yield _gpu("buffers", "gathered weights, until they are copied", job.weight, elements, source, when=_TRAINING)
    yield _gpu("buffers", "reduce bucket", job.gradient, job.bucket, _STAGE3)
    elements = min(job.bucket, job.trainable)
    source = "DeepSpeed, runtime/comm/coalesced_collectives.py"
    yield _gpu("buffers", "a bucket's copy while it is reduced", job.gradient, elements, source, when=_GRADIENTS)
    if job.optimizer_device != "none":
        name = "gradients on their way to the CPU"
        yield _gpu("buffers", name, job.gradient, min(job.bucket, job.own), _STAGE3, when=_GRADIENTS)
        name, elements = "one of them in fp32", share(job.model.largest, job.ranks)
        yield _gpu("buffers", name, job.cpu_master, elements, _STAGE3, when=_GRADIENTS)


def _product(each: int, elements: int, by: int = 1, part: float = 1.0) -> tuple[int, str]:
    """Bytes and formula of ``each`` bytes for every element, shared ``by`` ranks, or only a part of that."""
    size = each * share(elements, by)
    formula = f"{each} x {elements:,}"
    if by > 1:
        formula += f" / {by}"
    return (size, formula) if part == 1 else (math.ceil(size * part), f"{formula} x {part:.3g}")


def _gpu(
    component: str,
    name: str,
    each: int,
    elements: int,
    source: str,
    *,
    by: int = 1,
    part: float = 1.0,
    when: tuple[str, ...] = MOMENTS,
) -> Part:
    size, formula = _product(each, elements, by, part)
    return Part(component, "gpu", name, size, formula, source, when)


def _host(
    job: Job, component: str, name: str, each: int, source: str, *, place: str = "host", part: float = 1.0
) -> Part:
    """``each`` bytes for every trainable parameter of a rank's share."""
    return _of_all(job, component, name, _product(each, job.trainable, job.ranks, part), source, place=place)


def _of_all(job: Job, component: str, name: str, product: tuple[int, str], source: str, *, place: str = "host") -> Part:
    """The same for every rank of a host."""
    size, formula = product
    ranks = job.ranks_per_host
    return Part(component, place, name, size * ranks, f"{formula} x {ranks} ranks" if ranks > 1 else formula, source)
