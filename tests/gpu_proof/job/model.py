# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A small decoder as Llama's: RMSNorm, rotary-free attention in a fused kernel, gated MLP, head of its own, fp32 loss.

Plain torch, as a machine with a GPU need not have transformers. Weights, activations and loss are those that the memory
plan counts for ``model_type: llama``: the loss is the one of transformers' loss_utils (logits in fp32, shifted labels).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class Shape:
    """The widths of a model, by the names of a config.json."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    vocab_size: int


class Norm(torch.nn.Module):  # type: ignore[misc]  # torch is not where types are checked
    """RMSNorm, torch's own operator: in bf16 it keeps its input and one number a token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(rows, self.weight.shape, self.weight, 1e-5)


class Layer(torch.nn.Module):  # type: ignore[misc]  # torch is not where types are checked
    """One decoder layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, self.heads = shape.hidden_size, shape.num_attention_heads
        self.before_attention, self.before_mlp = Norm(width), Norm(width)
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width, bias=False) for dummy in range(4))
        self.gate = torch.nn.Linear(width, shape.intermediate_size, bias=False)
        self.up = torch.nn.Linear(width, shape.intermediate_size, bias=False)
        self.down = torch.nn.Linear(shape.intermediate_size, width, bias=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = rows.shape
        inner = self.before_attention(rows)
        matrices = (self.query, self.key, self.value)
        parts = (matrix(inner).view(batch, tokens, self.heads, -1).transpose(1, 2) for matrix in matrices)
        seen = functional.scaled_dot_product_attention(*parts, is_causal=True)
        rows = rows + self.out(seen.transpose(1, 2).reshape(batch, tokens, width))
        inner = self.before_mlp(rows)
        return rows + self.down(functional.silu(self.gate(inner)) * self.up(inner))


class Decoder(torch.nn.Module):  # type: ignore[misc]  # torch is not where types are checked
    """The model; called with tokens it returns the loss of predicting each from those before it, and the logits.

    As with transformers a caller holds the logits, in 16 bit, until it drops both.
    """

    def __init__(self, shape: Shape, *, recompute: bool) -> None:
        super().__init__()
        self.recompute = recompute
        self.embedding = torch.nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = torch.nn.ModuleList(Layer(shape) for dummy in range(shape.num_hidden_layers))
        self.norm = Norm(shape.hidden_size)
        self.head = torch.nn.Linear(shape.hidden_size, shape.vocab_size, bias=False)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = self.embedding(tokens)
        for layer in self.layers:
            rows = checkpoint(layer, rows, use_reentrant=False) if self.recompute else layer(rows)
        logits = self.head(self.norm(rows))
        labels = functional.pad(tokens, (0, 1), value=-100)[:, 1:].reshape(-1)
        exact = logits.float().view(-1, logits.size(-1))
        return functional.cross_entropy(exact, labels, ignore_index=-100), logits
