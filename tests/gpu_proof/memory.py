# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The memory plan beside what training really takes: cases, the plan's prediction of each, and the verdict.

The prediction is the plan's own code, without its reserve: the reserve stands for what torch's allocator does not count
(context, NCCL's buffers) or cannot use (fragments), and is recorded beside it. One GPU shares nothing with others. So
what each of several ranks holds is measured with **stand-ins** for the others (torch's "fake" process group): DeepSpeed
divides among them and calls its collectives, and nothing is sent.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.gpus import Gpus
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory import (
    GPU_RESERVE,
    MOST_FRAGMENTS,
    Memory,
    plan,
)
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.memory_terms import CUBLAS
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.model import read as read_model

from tests.gpu_proof.commands import EXTENSIONS, python
from tests.gpu_proof.parts import Failed

LEAST, MOST_OVER = 0.998, 1.15
"""Predicted divided by measured: never below the first, as scalars are not counted, and never above the second."""
LEAST_ON_CPU = 0.98
"""A rehearsal counts scalars, and what Gloo's threads free, with the rest; on GPUs workspaces are far more."""

SIZES = {
    "0.13B": {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12},
    "0.37B": {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 24, "num_attention_heads": 16},
    "0.78B": {"hidden_size": 1536, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16},
    "1.4B": {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16},
}
"""Widths as those of Llama's smaller kin; 24 bytes a parameter make 32 GB of the largest, which GPUs of 40 GB hold."""
LARGER = {
    "6.7B": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32},
}
"""Trained by several ranks only."""
DIVIDED = (("0.37B", 64), ("1.4B", 8), ("6.7B", 16))
"""Sizes, and numbers of ranks of which one is real."""
VOCABULARY = 32_000
REHEARSED = {"tiny": {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "num_attention_heads": 4}}
"""For a rehearsal on a CPU."""
WAYS = (
    ("zero0", 0, ""),
    ("zero1", 1, ""),
    ("zero2", 2, ""),
    ("zero3", 3, ""),
    ("zero2_offload", 2, "optimizer"),
    ("zero3_offload", 3, "both"),
)


@dataclass(frozen=True)
class Case:
    """One model trained in one way."""

    size: str
    way: str
    shape: dict[str, Any]
    config: dict[str, Any]
    sequence_length: int
    recompute: bool
    ranks: int = 1
    architecture: str = ""
    """The ``model_type`` of a model of transformers; without it, the model is that of job/model.py."""

    @property
    def name(self) -> str:
        """How the result calls it."""
        return f"{self.size} {self.way}{f', {self.ranks} ranks' if self.ranks > 1 else ''}"


def cases(rehearsal: bool = False) -> Iterator[Case]:
    """Every size in every way; the smallest also with its activations kept, which shows what they take; then ranks."""
    sizes = REHEARSED if rehearsal else SIZES
    smallest = next(iter(sizes), "")
    # the bucket is that of our presets
    vocabulary, tokens, bucket = (1_024, 128, 500_000) if rehearsal else (VOCABULARY, 2_048, 200_000_000)
    for size, widths in sizes.items():
        shape = {**widths, "vocab_size": vocabulary}
        for way, stage, offload in WAYS:
            yield Case(size, way, shape, config(stage, offload, bucket), tokens, True)
        if size == smallest:
            yield Case(size, "zero2, activations kept", shape, config(2, "", bucket), tokens, False)
    for size, ranks in ((smallest, 4),) if rehearsal else DIVIDED:
        shape = {**{**sizes, **LARGER}[size], "vocab_size": vocabulary}
        for way, stage, offload in WAYS:
            if stage:
                yield Case(size, way, shape, config(stage, offload, bucket), tokens, True, ranks)


def config(stage: int, offload: str, bucket: int) -> dict[str, Any]:
    """Return what DeepSpeed is given."""
    zero: dict[str, Any] = {"stage": stage, "reduce_bucket_size": bucket, "allgather_bucket_size": bucket}
    zero["overlap_comm"] = stage == 3
    if offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if offload == "both":
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "steps_per_print": 1000,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": zero,
    }


def predict(case: Case, accelerator: str = "cuda") -> tuple[int, Memory]:
    """Return the plan's bytes on the GPU without its reserve, and the plan. Raises Failed where it does not count.

    A CPU has no cuBLAS.
    """
    given = {
        "model_type": case.architecture or "llama",
        "num_key_value_heads": case.shape["num_attention_heads"],
        **case.shape,
        "sequence_length": case.sequence_length,
        "activation_checkpointing": case.recompute,
    }
    model, problems = read_model(given)
    if model is None:
        raise Failed(f"{case.name}: the plan refuses the model: {problems[0].message}")
    memory = plan(case.config, model, Gpus(count=min(case.ranks, 8)), case.ranks)
    counted = memory
    if accelerator != "cuda":
        counted = replace(memory, parts=tuple(part for part in memory.parts if part.name != CUBLAS))
    return counted.gpu - counted.of("gpu", "reserve"), memory


def measure(
    case: Case, accelerator: str, limit: float, most: int = 0, *, expandable: bool = False, number: int = 0
) -> dict[str, Any]:
    """Train it in a process of its own; return what job/memory.py found.

    ``most``: bytes that torch may have. ``expandable``: with PyTorch's remedy for fragments, expandable segments.
    ``number``: of those that run at the same time, which needs a port of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        fields = ("shape", "config", "sequence_length", "recompute", "ranks", "architecture")
        given = {**{name: getattr(case, name) for name in fields}, "limit": most}
        path.write_text(json.dumps(given), encoding="utf-8")
        more = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if expandable else {}
        return python("memory.py", [str(path)], limit, {**environment(accelerator, case.ranks, number), **more})


def environment(accelerator: str, ranks: int = 1, number: int = 0) -> dict[str, str]:
    """Return what a single rank needs that no launcher starts."""
    rank = {"RANK": "0", "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0", "LOCAL_SIZE": "1"}
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20_000 + (os.getpid() + number) % 20_000)}
    return {**rank, **place, "DS_ACCELERATOR": accelerator, "TORCH_EXTENSIONS_DIR": str(EXTENSIONS)}


def room(predicted: int, share: int = MOST_FRAGMENTS) -> int:
    """Return the bytes that torch would have on the smallest GPU of which a share, such as a tenth, is for fragments.

    With the default that is the smallest for which the plan gives no warning.
    """
    whole = (predicted + GPU_RESERVE) * share // (share - 1)
    return whole - GPU_RESERVE


def row(case: Case, predicted: int, measured: dict[str, Any], reserve: int, least: float = LEAST) -> dict[str, Any]:
    """Return what is kept of a case."""
    ratio = predicted / measured["requested"]
    # with stand-ins for the other ranks losses mean nothing
    losses = [round(measured["losses"][place], 3) for place in (0, -1)] if case.ranks == 1 else []
    return {
        "size": case.size,
        "way": case.way,
        "parameters": measured["parameters"],
        "predicted": predicted,
        "measured": measured["requested"],
        "allocated": measured.get("allocated"),
        "phases": measured["phases"],
        "ratio": round(ratio, 3),
        "verdict": verdict(ratio, least),
        "reserve": reserve,
        "reserved_by_torch": measured.get("reserved"),
        "outside_torch": measured.get("outside_torch"),
        "losses": losses,
    }


def verdict(ratio: float, least: float = LEAST) -> str:
    """Judge predicted ÷ measured."""
    return "under" if ratio < least else "over" if ratio > MOST_OVER else "right"
