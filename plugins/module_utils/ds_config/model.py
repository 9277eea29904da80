# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""How large a model is: from its number of parameters, or from the fields of a Hugging Face config.json.

For the architectures in ``architectures.FAMILIES`` the count is exact. For any other decoder it is that of the
nearest of them, and ``Model.notes`` says so.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ..common.problems import Problem, shown
from .architectures import FAMILIES, GPT, NEEDED, Family, decoder
from .gpus import whole

MOMENTS = {
    "adam": 2,
    "adamw": 2,
    "lamb": 2,
    "muadam": 2,
    "muadamw": 2,
    # Adam for embeddings, norms and the head, one momentum for the rest: two are the upper bound
    "muon": 2,
    "lion": 1,
    "adagrad": 1,
    "rmsprop": 1,
    "sgd": 1,
    "musgd": 1,
}
"""Values that an optimizer keeps for each parameter, beside the parameter itself; SGD with momentum."""

_SIZES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_COUNT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?(?:e\+?[0-9]{1,2})?)\s*([kmbgt]?)", re.IGNORECASE | re.ASCII)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,10})?)\s*%", re.ASCII)
_MOST = 10**15
_MOST_WIDTH = 10**7
_SEQUENCE = 2048
"""Assumed where none is given: many fine-tuning recipes' length; models' own maximum is often 128 Ki."""

_NAMES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "intermediate_size": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"),
    "num_attention_heads": ("num_attention_heads", "n_head"),
    "num_key_value_heads": ("num_key_value_heads", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "seq_length"),
    "experts": ("num_local_experts", "num_experts"),
    "experts_per_token": ("num_experts_per_tok",),
    "moe_intermediate_size": ("moe_intermediate_size",),
    "shared_expert_intermediate_size": ("shared_expert_intermediate_size",),
}
"""What each field of a config.json is called; the first that is there and not null counts."""
_NOT_COMPUTED = ("kv_lora_rank", "n_routed_experts", "encoder_layers", "num_decoder_layers", "decoder_layers")
"""Fields of architectures (latent attention, routed experts, encoder and decoder) whose count differs much."""


@dataclass(frozen=True)
class Model:
    """A model as far as memory goes. Widths are in elements, ``largest`` and the counts in parameters."""

    parameters: int
    trainable: int
    layers: int
    hidden: int
    vocabulary: int
    largest: int
    """Parameters of the largest single module, most often the embedding: stage 3 gathers at least that."""
    query: int
    """Attention heads times their width; ``key_value`` the same for keys, and again for values."""
    key_value: int
    feed_forward: int
    """Width inside the MLP; with experts, of all that one token passes."""
    gated: bool
    """Three matrices in the MLP (SwiGLU and the like) instead of two."""
    copies: int = 1
    """Experts that a token is sent to."""
    sequence_length: int = _SEQUENCE
    activation_checkpointing: bool = True
    optimizer: str = "adam"
    notes: tuple[str, ...] = ()


def read(model: Any) -> tuple[Model | None, list[Problem]]:
    """The module's parameter ``model``: ``parameters`` (a count, or a text such as ``10B``), or config.json's fields.

    With both, the count is the given one and the fields shape the rest. Of our own are ``sequence_length``,
    ``activation_checkpointing`` (default: true), ``trainable_parameters`` (count or share; default: all) and
    ``optimizer``. Other fields are ignored, because people hand in the whole file.
    """
    if not isinstance(model, dict):
        return None, [
            Problem("model", f"must be a mapping with parameters or a config.json's fields, not {shown(model)}")
        ]
    return _Reader(model).model()


class _Reader:
    def __init__(self, model: dict[str, Any]) -> None:
        self.given = model
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        nested = model.get("text_config")
        self.fields, self.at = model, "model"
        if isinstance(nested, dict) and not any(model.get(name) is not None for name in _NAMES["hidden_size"]):
            self.fields, self.at = nested, "model.text_config"
            self.notes.append("only the language model (text_config) is counted, not the encoders beside it")

    def model(self) -> tuple[Model | None, list[Problem]]:
        count = self._count("parameters")
        shapes = {name: self._field(name) for name in _NAMES}
        sequence, checkpointing = self._sequence(shapes["max_position_embeddings"]), self._checkpointing()
        optimizer = self._optimizer()
        if all(shapes[name] is None for name in NEEDED):
            if count is None and not self.problems:
                self.problems.append(
                    Problem("model", f"needs parameters, or a config.json's fields ({', '.join(NEEDED)})")
                )
            base = None if count is None else _typical(count)
            self.notes.append(
                "layers and widths are those of a typical model of this size, since only parameters is given"
            )
        else:
            base = self._from_fields(shapes, count)
        if base is None or self.problems:
            return None, self.problems
        trainable = self._trainable(base["parameters"])
        if trainable is None or self.problems:
            return None, self.problems
        return Model(
            **base,
            trainable=trainable,
            sequence_length=sequence,
            activation_checkpointing=checkpointing,
            optimizer=optimizer,
            notes=tuple(self.notes),
        ), []

    def _from_fields(self, shapes: dict[str, int | None], count: int | None) -> dict[str, Any] | None:
        for name in NEEDED:
            if all(self.fields.get(key) is None for key in _NAMES[name]):
                self.problems.append(
                    Problem(f"{self.at}.{name}", "is missing; a config.json has it, else give parameters")
                )
        if self.problems:
            return None
        hidden = shapes["hidden_size"] or 1
        kind = self.fields.get("model_type")
        family = FAMILIES.get(kind) if isinstance(kind, str) else None
        odd = [name for name in _NOT_COMPUTED if self.fields.get(name) not in (None, 0, False)]
        if odd and family is None and count is None:
            self.problems.append(
                Problem(
                    f"{self.at}.{odd[0]}", "belongs to an architecture that is not counted here; give model.parameters"
                )
            )
            return None
        if family is None:
            family = Family(gated=True) if self.fields.get("hidden_act") in ("silu", "swish", "swiglu") else GPT
            if count is None:
                named = shown(kind) if kind is not None else "of no model_type"
                self.notes.append(
                    f"the parameters of a model {named} are an estimate; give model.parameters to be sure"
                )
        heads = shapes["num_attention_heads"] or max(1, hidden // 128)
        width = shapes["head_dim"] or family.head_width or max(1, hidden // heads)
        # Falcon and others with one key head for all say so by a flag
        alone = self.fields.get("multi_query") is True and shapes["num_key_value_heads"] is None
        key_heads = shapes["num_key_value_heads"] or (1 if alone else heads)
        if kind == "chatglm" and self.fields.get("multi_query_attention") is not True:
            key_heads = heads
        if kind == "opt" and self.fields.get("word_embed_proj_dim") not in (None, hidden) and count is None:
            self.notes.append("word_embed_proj_dim is not counted: the parameters are an upper estimate")
        if (shapes["experts"] or 0) > 1 and (
            self.fields.get("mlp_only_layers") or self.fields.get("decoder_sparse_step") not in (None, 1)
        ):
            self.notes.append("every layer is counted with experts, although some have none: an upper estimate")
        counted, base = decoder(family, shapes, self.fields, (heads * width, key_heads * width, width))
        base["parameters"] = count or counted
        base["largest"] = min(base["largest"], base["parameters"])
        if counted > _MOST:
            self.problems.append(Problem(self.at, f"these fields make a model of {counted:.0e} parameters; check them"))
            return None
        return base

    def _field(self, name: str) -> int | None:
        for key in _NAMES[name]:
            value = self.fields.get(key)
            if value is None:
                continue
            found = whole(value)
            least = 1 if name in NEEDED or name == "num_attention_heads" else 0
            if found is None or not least <= found <= _MOST_WIDTH * 100:
                self.problems.append(
                    Problem(f"{self.at}.{key}", f"must be a whole number of at least {least}, not {shown(value)}")
                )
                return None
            return found
        return None

    def _count(self, key: str) -> int | None:
        value = self.given.get(key)
        if value is None:
            return None
        count = _amount(value)
        if count is None or not 1 <= count <= _MOST:
            self.problems.append(
                Problem(
                    f"model.{key}", f"must be a number of parameters such as 10B, 7.5e9 or 350M, not {shown(value)}"
                )
            )
            return None
        return int(count)

    def _trainable(self, parameters: int) -> int | None:
        value = self.given.get("trainable_parameters")
        if value is None:
            return parameters
        count = _amount(value)
        percent = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
        if percent:
            count = parameters * float(percent[1]) / 100
        elif count is not None and (count < 1 or (isinstance(value, float) and value == 1)):
            count *= parameters
        if count is None or not 1 <= count <= parameters:
            self.problems.append(
                Problem(
                    "model.trainable_parameters",
                    f"must be a count such as 20M or a share such as 0.01 or 1%, at most all {parameters:,},"
                    f" not {shown(value)}",
                )
            )
            return None
        return math.ceil(count)

    def _sequence(self, most: int | None) -> int:
        value = self.given.get("sequence_length")
        if value is None:
            length = min(_SEQUENCE, most or _SEQUENCE)
            self.notes.append(f"sequence_length is not given: {length} tokens")
            return length
        length = whole(value) or 0
        if not 1 <= length <= _MOST_WIDTH * 10:
            self.problems.append(
                Problem("model.sequence_length", f"must be a number of tokens, 1 or more, not {shown(value)}")
            )
        return length

    def _checkpointing(self) -> bool:
        value = self.given.get("activation_checkpointing")
        if value is None:
            self.notes.append(
                "activation_checkpointing is not given: on, every layer (gradient_checkpointing in transformers)"
            )
            return True
        if not isinstance(value, bool):
            self.problems.append(
                Problem("model.activation_checkpointing", f"must be true or false, not {shown(value)}")
            )
        return bool(value)

    def _optimizer(self) -> str:
        value = self.given.get("optimizer")
        if value is None:
            return "adam"
        if not isinstance(value, str) or value.lower() not in MOMENTS:
            self.problems.append(Problem("model.optimizer", f"must be one of {', '.join(MOMENTS)}, not {shown(value)}"))
            return "adam"
        return value.lower()


def _typical(parameters: int) -> dict[str, Any]:
    """Widths of a usual decoder of this size: 12 h² parameters a layer, and h = 128 times the layers.

    7B models have 32 layers of 4096, 13B 40 of 5120, GPT-3 96 of 12288. The vocabulary is Llama 3's for today's sizes
    and GPT-2's below; the embedding is at most a third of the model.
    """
    layers = max(1, round((parameters / (12 * 128**2)) ** (1 / 3)))
    hidden = 128 * layers
    vocabulary = 128_256 if parameters >= 2 * 10**9 else 50_257
    vocabulary = max(1, min(vocabulary, parameters // (3 * hidden)))
    return {
        "parameters": parameters,
        "layers": layers,
        "hidden": hidden,
        "vocabulary": vocabulary,
        "largest": min(parameters, max(vocabulary * hidden, 4 * hidden * hidden)),
        "query": hidden,
        "key_value": hidden,
        "feed_forward": round(hidden * 8 / 3),
        "gated": True,
    }


def _amount(value: Any) -> float | int | None:
    """A number, also as a text such as ``10B`` and ``350 M``."""
    if isinstance(value, str):
        match = _COUNT.fullmatch(value.strip())
        if match is None:
            return None
        number = match[1]
        return (int(number) if number.isdigit() else float(number)) * _SIZES[match[2].lower()]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None
