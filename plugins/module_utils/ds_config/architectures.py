# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How many parameters a decoder of each known architecture has, from its widths.

Source: the classes of transformers 5 (and of ChatGLM2's and Baichuan's own code); the published counts in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NEEDED = ("hidden_size", "num_hidden_layers", "vocab_size")
"""Sizes without which nothing can be counted."""


@dataclass(frozen=True)
class Family:
    """How the modules of an architecture differ from Llama's: no biases, two norms of weights, a gated MLP."""

    gated: bool = True
    tied: bool = False
    """The default of ``tie_word_embeddings``, which a config.json leaves out where it is kept."""
    qkv_bias: bool = False
    biases: bool = False
    """On every matrix and norm, as in GPT-2."""
    head_norms: bool = False
    """A norm each for queries and keys, of one head's width."""
    norms: int = 2
    embedding_norm: bool = False
    positions: int | None = None
    """Learned positions: how many more than ``max_position_embeddings``."""
    head_width: int = 0
    """Where ``head_dim`` is not the hidden size over the heads by default."""


GPT = Family(gated=False, tied=True, biases=True)
FAMILIES = {
    "llama": Family(),
    "mistral": Family(),
    "mixtral": Family(),
    "baichuan": Family(),
    "phi3": Family(),
    "qwen2": Family(qkv_bias=True),
    "qwen2_moe": Family(qkv_bias=True),
    "qwen3": Family(head_norms=True, head_width=128),
    "qwen3_moe": Family(head_norms=True),
    "gemma": Family(tied=True, head_width=256),
    "gemma2": Family(tied=True, norms=4, head_width=256),
    "gemma3_text": Family(tied=True, norms=4, head_norms=True, head_width=256),
    "chatglm": Family(),
    "gpt2": Family(gated=False, tied=True, biases=True, positions=0),
    "opt": Family(gated=False, tied=True, biases=True, positions=2),
    "bloom": Family(gated=False, tied=True, biases=True, embedding_norm=True),
    "gpt_neox": Family(gated=False, biases=True),
}


def decoder(
    family: Family, shapes: dict[str, int | None], fields: dict[str, Any], attention: tuple[int, int, int]
) -> tuple[int, dict[str, Any]]:
    """Parameters of a decoder, and the widths that its activations have, as ``model.Model`` names them.

    ``shapes`` are the sizes that were read, by their usual names, ``fields`` the whole config.json for its flags, and
    ``attention`` the widths of all queries, of all keys, and of one head.
    """
    hidden, layers, vocabulary = (shapes[name] or 0 for name in NEEDED)
    query, key_value, head = attention
    inner = shapes["intermediate_size"] or (round(hidden * 8 / 3) if family.gated else 4 * hidden)
    matrices = 3 if family.gated else 2
    norm = 2 * hidden if family.biases else hidden

    layer = hidden * (query + 2 * key_value) + query * hidden + family.norms * norm
    if family.biases or fields.get("attention_bias") is True:
        layer += query + 2 * key_value + hidden
    elif family.qkv_bias or fields.get("add_qkv_bias") is True:
        layer += query + 2 * key_value
    layer += 2 * head if family.head_norms else 0

    experts, chosen = shapes["experts"] or 0, 1
    dense = matrices * hidden * inner
    if family.biases or fields.get("mlp_bias") is True:
        dense += (matrices - 1) * inner + hidden
    largest = hidden * inner
    if experts > 1:
        each = shapes["moe_intermediate_size"] or inner
        shared = shapes["shared_expert_intermediate_size"] or 0
        chosen = shapes["experts_per_token"] or 2
        dense = experts * matrices * hidden * each + hidden * experts
        dense += matrices * hidden * shared + hidden if shared else 0
        inner = chosen * each + shared
        # transformers 5 keeps the first matrices of all experts as one parameter
        largest = experts * (matrices - 1) * hidden * each

    tied = fields.get("tie_word_embeddings")
    tied = tied if isinstance(tied, bool) else family.tied
    total = layers * (layer + dense) + vocabulary * hidden * (1 if tied else 2) + norm
    if family.embedding_norm:
        total += norm
    if family.positions is not None:
        total += ((shapes["max_position_embeddings"] or 1024) + family.positions) * hidden
    return total, {
        "layers": layers,
        "hidden": hidden,
        "vocabulary": vocabulary,
        "largest": max(largest, vocabulary * hidden),
        "query": query,
        "key_value": key_value,
        "feed_forward": inner,
        "gated": family.gated,
        "copies": chosen,
    }
