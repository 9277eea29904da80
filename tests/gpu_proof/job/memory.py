# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Train a few steps of one model with one configuration of DeepSpeed, and write how much memory torch held at most.

On a GPU that is torch.cuda.max_memory_allocated. On a CPU (a rehearsal) it is what torch's profiler saw its allocator
hand out: the same tensors of the same engine, but kernels, and buffers that offload shares between CPU and GPU, differ.
One process a case, so that nothing of one is left in another.

Usage: python memory.py CASE.json RESULT.json
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from model import Decoder, Shape
from torch.testing._internal.distributed.fake_pg import FakeStore

PHASES = ("start", "backward", "step", "end")
STEPS = 4
"""The first step makes lazy buffers, the second fragments, the rest repeat."""


class Meter(Protocol):
    """What is recorded when training goes from one phase to the next."""

    def enter(self, phase: str) -> None: ...


def train(case: dict[str, Any], held: dict[str, int], meter: Meter) -> list[float]:
    """Return the losses. Forward and backward pass are one phase, as one fills what the other empties."""
    config = case["config"]
    device = torch.device(get_accelerator().current_device_name())
    stage = config["zero_optimization"]["stage"]
    torch.manual_seed(7)
    ours = stage == 3 and not case.get("architecture")
    built = deepspeed.zero.Init(config_dict_or_path=config) if ours else device
    torch.set_default_dtype(torch.bfloat16)
    with built:
        model = (
            of_transformers(case)
            if case.get("architecture")
            else Decoder(Shape(**case["shape"]), recompute=case["recompute"])
        )
    torch.set_default_dtype(torch.float32)
    held["parameters"] = sum(getattr(item, "ds_numel", item.numel()) for item in model.parameters())
    engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
    if case.get("limit"):
        # what making the engine took for a moment is no part of the plan
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(case["limit"] / total)
    shape_of_batch = (engine.train_micro_batch_size_per_gpu(), case["sequence_length"])
    generator = torch.Generator().manual_seed(7)
    tokens = torch.randint(case["shape"]["vocab_size"], shape_of_batch, generator=generator).to(device)
    losses = []
    for dummy in range(STEPS * engine.gradient_accumulation_steps()):
        meter.enter("backward")
        loss, logits = engine(tokens)
        engine.backward(loss)
        losses.append(float(loss.detach()))
        del loss, logits
        meter.enter("step")
        engine.step()
    meter.enter("end")
    return losses


class Trained(torch.nn.Module):  # type: ignore[misc]  # torch is not where types are checked
    """A model of transformers that is called as those of job/model.py; its losses are its own."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        result = self.model(input_ids=tokens, labels=tokens)
        return result.loss, result.logits


def of_transformers(case: dict[str, Any]) -> torch.nn.Module:
    """Return a model of transformers from the fields of a config.json, its weights random. Nothing is downloaded."""
    import transformers  # noqa: PLC0415 - most cases need none
    from transformers.integrations import HfDeepSpeedConfig  # noqa: PLC0415

    fields = dict(case["shape"])
    # as from its Trainer: at stage 3 it divides the weights itself and knows how to initialize them; known while held
    held = HfDeepSpeedConfig(case["config"]) if case["config"]["zero_optimization"]["stage"] == 3 else None
    config = transformers.AutoConfig.for_model(case["architecture"], use_cache=False, **fields)
    model = transformers.AutoModelForCausalLM.from_config(config)
    if case["recompute"]:
        model.gradient_checkpointing_enable()
    model.train()
    del held
    return Trained(model)


class GpuMeter:
    """The most that was requested of CUDA's caching allocator in each phase, and the most that it handed out.

    A block that it hands out can be up to 1 MiB larger than what was requested.
    """

    def __init__(self) -> None:
        self.phase, self.most, self.allocated = "start", dict.fromkeys(PHASES, 0), 0
        torch.cuda.reset_peak_memory_stats()

    def enter(self, phase: str) -> None:
        torch.cuda.synchronize()
        stats = torch.cuda.memory_stats()
        self.most[self.phase] = max(self.most[self.phase], stats["requested_bytes.all.peak"])
        if self.phase != "start":
            self.allocated = max(self.allocated, stats["allocated_bytes.all.peak"])
        torch.cuda.reset_peak_memory_stats()
        self.phase = phase


class CpuMeter:
    """When each phase began, to divide what the profiler saw.

    It does not see what Gloo's threads free, such as weights and gradients that stage 3 sends round. So each phase of
    training begins with what the tensors hold that are there: no graph holds others then.
    """

    def __init__(self) -> None:
        self.entered: list[tuple[int, str, int | None]] = [(0, "start", None)]

    def enter(self, phase: str) -> None:
        held = live_tensors() if phase in ("backward", "step") else None
        self.entered.append((time.time_ns(), phase, held))

    def divide(self, events: list[Any]) -> dict[str, int]:
        most, now, entered = dict.fromkeys(PHASES, 0), 0, list(self.entered)
        for event in sorted((item for item in events if item.name() == "[memory]"), key=lambda item: item.start_ns()):
            while len(entered) > 1 and entered[1][0] <= event.start_ns():
                del entered[0]
                held = entered[0][2]
                now = now if held is None else held
            now += event.nbytes()
            phase = entered[0][1]
            most[phase] = max(most[phase], now)
        return most


def live_tensors() -> int:
    """Return the bytes of all tensors' storages, each counted once."""
    gc.collect()
    tensors = (item for item in gc.get_objects() if isinstance(item, torch.Tensor) and item.device.type == "cpu")
    storages = (tensor.untyped_storage() for tensor in tensors)
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def stand_in_for_others(ranks: int) -> None:
    """Make the process group of so many ranks of which this is the first; its collectives return at once.

    What a rank is sent then is what it has itself or nothing: the losses mean nothing, the tensors are as large.
    """
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def counted(most: dict[str, int]) -> int:
    """Return what a plan is compared with: training. What making the engine takes for a moment stands in its phase."""
    return max(size for phase, size in most.items() if phase != "start")


def on_gpu(case: dict[str, Any]) -> dict[str, Any]:
    """Measure with CUDA's caching allocator."""
    held: dict[str, int] = {}
    meter = GpuMeter()
    losses = train(case, held, meter)
    free, total = torch.cuda.mem_get_info()
    return {
        **held,
        "losses": losses,
        "phases": meter.most,
        "requested": counted(meter.most),
        "allocated": meter.allocated,
        "reserved": torch.cuda.max_memory_reserved(),
        # context, kernels, NCCL's buffers: in use on the GPU, and not torch's allocator's
        "outside_torch": total - free - torch.cuda.memory_reserved(),
    }


def on_cpu(case: dict[str, Any]) -> dict[str, Any]:
    """Count what the CPU's allocator hands out."""
    held: dict[str, int] = {}
    meter = CpuMeter()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        losses = train(case, held, meter)
    most = meter.divide(seen.profiler.kineto_results.events())
    return {**held, "losses": losses, "phases": most, "requested": counted(most)}


def main() -> int:
    case = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if case["ranks"] > 1:
        stand_in_for_others(case["ranks"])
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    with contextlib.suppress(RuntimeError):
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0))))
    try:
        result = on_gpu(case) if get_accelerator().device_name().startswith("cuda") else on_cpu(case)
    except torch.OutOfMemoryError as error:
        result = {"out_of_memory": str(error)}
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
