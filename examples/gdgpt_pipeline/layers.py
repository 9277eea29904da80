# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The layers of a pipeline, for three architectures: gpt, and those of bloom and llama, which gdGPT trains.

What passes from one layer to the next is one tensor, so that any of them can be the last of a stage.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from deepspeed.pipe import LayerSpec

VOCABULARY = 256
KINDS = ("gpt", "bloom", "llama")


def layers(kind: str, shape: dict[str, Any], length: int, checkpoint: bool) -> list[LayerSpec]:
    """Return an embedding, so many blocks and a head."""
    width, heads = int(shape["width"]), int(shape["heads"])
    blocks = [LayerSpec(BLOCKS[kind], width, heads, checkpoint) for dummy in range(int(shape["layers"]))]
    return [LayerSpec(Embedding, kind, width, length), *blocks, LayerSpec(Head, kind, width)]


class Norm(torch.nn.Module):
    """llama's: by the root of the mean square, without a mean and a bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(hidden.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return (hidden.float() * scale).to(hidden.dtype) * self.weight


class Embedding(torch.nn.Module):
    """The first layer: bytes, and with gpt their places. bloom normalizes them."""

    def __init__(self, kind: str, width: int, length: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(VOCABULARY, width)
        self.places = torch.nn.Embedding(length, width) if kind == "gpt" else None
        self.norm = torch.nn.LayerNorm(width) if kind == "bloom" else None

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.words(tokens)
        if self.places is not None:
            hidden = hidden + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return hidden if self.norm is None else self.norm(hidden)


class Head(torch.nn.Module):
    """The last layer: what comes next."""

    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.norm = Norm(width) if kind == "llama" else torch.nn.LayerNorm(width)
        self.words = torch.nn.Linear(width, VOCABULARY, bias=kind == "gpt")

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.words(self.norm(hidden))


class Block(torch.nn.Module):
    """gpt's transformer layer, and what all have in common."""

    def __init__(self, width: int, heads: int, checkpoint: bool) -> None:
        super().__init__()
        self.heads, self.checkpoint = heads, checkpoint
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.mix, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.mlp: torch.nn.Module = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Return what each place takes from those before it; all have the form batch, heads, length, size."""
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    def layer(self, hidden: torch.Tensor) -> torch.Tensor:
        batch, length, width = hidden.shape
        parts = self.mix(self.norm1(hidden)).view(batch, length, 3, self.heads, width // self.heads)
        seen = self.attention(*parts.permute(2, 0, 3, 1, 4))
        hidden = hidden + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return hidden + self.mlp(self.norm2(hidden))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.checkpoint and self.training:
            return torch.utils.checkpoint.checkpoint(self.layer, hidden, use_reentrant=False)
        return self.layer(hidden)


class BloomBlock(Block):
    """bloom's: no places; the further away, the less is seen (ALiBi), in each head by another slope."""

    def attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        length = query.shape[2]
        # For a power of two of heads, as arXiv 2108.12409 has them.
        slopes = torch.tensor([2.0 ** (-8.0 * (head + 1) / self.heads) for head in range(self.heads)])
        places = torch.arange(length)
        away = (places[:, None] - places[None, :]).float()
        bias = -slopes[:, None, None] * away
        bias = bias.masked_fill(away < 0, -math.inf).to(query.device, query.dtype)
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)


class Gated(torch.nn.Module):
    """llama's feed-forward part: one half lets the other through."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = 8 * width // 3 // 8 * 8
        self.gate, self.up = (torch.nn.Linear(width, inner, bias=False) for dummy in range(2))
        self.down = torch.nn.Linear(inner, width, bias=False)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.silu(self.gate(hidden)) * self.up(hidden))


class LlamaBlock(Block):
    """llama's: places turn queries and keys (rotary embedding), and there are no biases."""

    def __init__(self, width: int, heads: int, checkpoint: bool) -> None:
        super().__init__(width, heads, checkpoint)
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.mix = torch.nn.Linear(width, 3 * width, bias=False)
        self.out = torch.nn.Linear(width, width, bias=False)
        self.mlp = Gated(width)

    def attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        length, size = query.shape[2:]
        speeds = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float32) / size)
        angles = torch.outer(torch.arange(length, dtype=torch.float32), speeds).repeat(1, 2)
        cos, sin = (part.to(query.device, query.dtype) for part in (angles.cos(), angles.sin()))

        def turned(part: torch.Tensor) -> torch.Tensor:
            first, second = part.chunk(2, dim=-1)
            return part * cos + torch.cat((-second, first), dim=-1) * sin

        return super().attention(turned(query), turned(key), value)


BLOCKS = {"gpt": Block, "bloom": BloomBlock, "llama": LlamaBlock}
