# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The memory plan beside models of transformers, from the fields of their config.json, their weights random.

Four stages of ZeRO a model, at the same time where the GPU has room for all: each is a process of its own, and what
torch's allocator was asked for does not depend on its neighbours.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.gpu_proof import memory
from tests.gpu_proof.memory import Case
from tests.gpu_proof.parts import Failed

LEAST, MOST_OVER = 0.998, 1.05
STAGES = (0, 1, 2, 3)
_LLAMA = {
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
    "num_key_value_heads": 4, "vocab_size": 32_000,
}  # fmt: skip
MODELS: dict[str, dict[str, Any]] = {
    "llama": _LLAMA,
    "qwen2": {
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "vocab_size": 151_936, "tie_word_embeddings": True,
    },
    "mistral": {
        "hidden_size": 2560, "intermediate_size": 7168, "num_hidden_layers": 20, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 80, "vocab_size": 32_768,
    },
    "gemma2": {
        "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 12, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256_000, "tie_word_embeddings": True,
    },
    "mixtral": {
        "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 16,
        "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32_000,
    },
}  # fmt: skip
"""By ``model_type``: TinyLlama 1.1B, Qwen2 0.5B, a Mistral of 1.6B, 12 layers of Gemma 2, a small Mixtral."""
_TINY = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 4}
_SMALLER = {"num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1_024}


def cases(architecture: str, rehearsal: bool = False) -> list[Case]:
    """Return one case for each stage of ZeRO."""
    shape, tokens, bucket = MODELS[architecture], 2_048, 200_000_000
    if rehearsal:
        shape, tokens, bucket = {**shape, **_TINY, **_SMALLER}, 128, 500_000
    configs = ((stage, memory.config(stage, "", bucket)) for stage in STAGES)
    return [
        Case(architecture, f"zero{stage}", shape, config, tokens, True, architecture=architecture)
        for stage, config in configs
    ]


def together(sizes: list[int], room: int) -> Iterator[list[int]]:
    """Yield numbers of cases that have room at the same time; one that has none alone is by itself."""
    wave: list[int] = []
    for number, size in enumerate(sizes):
        if wave and sum(sizes[one] for one in wave) + size > room:
            yield wave
            wave = []
        wave.append(number)
    yield wave


def measured(architecture: str, accelerator: str, limit: float, room: int) -> dict[str, Any]:
    """Train a model with each stage; return a row for each. Raises Failed where a plan is not within bounds."""
    on_gpu = accelerator == "cuda"
    chosen = cases(architecture, rehearsal=not on_gpu)
    planned = [memory.predict(case, accelerator) for case in chosen]
    rows: list[dict[str, Any]] = []
    failures: list[str] = []
    waves = list(together([plan[1].gpu for plan in planned], room)) if on_gpu else [[n] for n in range(len(chosen))]
    for wave in waves:
        with ThreadPoolExecutor(len(wave)) as pool:
            begun = {
                number: pool.submit(memory.measure, chosen[number], accelerator, limit / len(waves), number=number + 1)
                for number in wave
            }
            for number, measuring in begun.items():
                predicted, plan = planned[number]
                try:
                    result = measuring.result()
                except Failed as error:
                    result = {"out_of_memory": str(error)}
                if "out_of_memory" in result:
                    failures.append(f"{chosen[number].way}: {result['out_of_memory'][:200]}")
                    continue
                row = memory.row(chosen[number], predicted, result, plan.of("gpu", "reserve"), LEAST)
                # what is in use besides is that of all who run at the same time
                rows.append({**row, "outside_torch": row["outside_torch"] if len(wave) == 1 else None})
    if failures:
        raise Failed("; ".join(failures), {"rows": rows})
    outside = [row for row in rows if not LEAST <= row["ratio"] <= MOST_OVER]
    if outside and on_gpu:
        named = ", ".join(f"{row['way']} {row['ratio']}" for row in outside)
        raise Failed(f"predicted by measured is outside of {LEAST} to {MOST_OVER}: {named}", {"rows": rows})
    return {"rows": rows}


def median_error(parts: Sequence[dict[str, Any]]) -> float | None:
    """Return the median of how far plans are off, as a share; None where nothing was measured."""
    ratios = [row["ratio"] for part in parts for row in part["found"].get("rows", ())]
    return statistics.median(abs(ratio - 1) for ratio in ratios) if ratios else None
