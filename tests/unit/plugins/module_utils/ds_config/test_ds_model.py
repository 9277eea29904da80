# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A model's size: published counts, texts of errors, and that any input ends in a model or in words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.swarmspeed.cluster.plugins.module_utils.ds_config.model import MOMENTS, Model, read
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples

LLAMA = {"model_type": "llama", "hidden_act": "silu"}
LLAMA3 = {**LLAMA, "vocab_size": 128256, "num_key_value_heads": 8, "tie_word_embeddings": False}
LLAMA3_8B = {
    **LLAMA3,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
}
LLAMA2 = {**LLAMA, "vocab_size": 32000}

PUBLISHED: dict[str, tuple[int, dict[str, Any]]] = {
    "Llama-3-8B": (8_030_261_248, LLAMA3_8B),
    "Llama-3-70B": (
        70_553_706_496,
        {
            **LLAMA3,
            "hidden_size": 8192,
            "num_hidden_layers": 80,
            "intermediate_size": 28672,
            "num_attention_heads": 64,
        },
    ),
    "Llama-3.2-1B, tied": (
        1_235_814_400,
        {
            **LLAMA3,
            "tie_word_embeddings": True,
            "hidden_size": 2048,
            "num_hidden_layers": 16,
            "intermediate_size": 8192,
            "num_attention_heads": 32,
            "head_dim": 64,
        },
    ),
    "Llama-2-7B": (
        6_738_415_616,
        {
            **LLAMA2,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "intermediate_size": 11008,
            "num_attention_heads": 32,
        },
    ),
    "Llama-2-13B": (
        13_015_864_320,
        {
            **LLAMA2,
            "hidden_size": 5120,
            "num_hidden_layers": 40,
            "intermediate_size": 13824,
            "num_attention_heads": 40,
        },
    ),
    "Mistral-7B": (
        7_241_732_096,
        {
            "model_type": "mistral",
            "vocab_size": 32000,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "intermediate_size": 14336,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": None,
        },
    ),
    "Mixtral-8x7B": (
        46_702_792_704,
        {
            "model_type": "mixtral",
            "vocab_size": 32000,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "intermediate_size": 14336,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
        },
    ),
    "Qwen2.5-7B": (
        7_615_616_512,
        {
            "model_type": "qwen2",
            "vocab_size": 152064,
            "hidden_size": 3584,
            "num_hidden_layers": 28,
            "intermediate_size": 18944,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
        },
    ),
    "Qwen2.5-0.5B, tied": (
        494_032_768,
        {
            "model_type": "qwen2",
            "vocab_size": 151936,
            "hidden_size": 896,
            "num_hidden_layers": 24,
            "intermediate_size": 4864,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "tie_word_embeddings": True,
        },
    ),
    "Qwen3-8B": (
        8_190_735_360,
        {
            "model_type": "qwen3",
            "vocab_size": 151936,
            "hidden_size": 4096,
            "num_hidden_layers": 36,
            "intermediate_size": 12288,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
        },
    ),
    "Qwen3-30B-A3B": (
        30_532_122_624,
        {
            "model_type": "qwen3_moe",
            "vocab_size": 151936,
            "hidden_size": 2048,
            "num_hidden_layers": 48,
            "intermediate_size": 6144,
            "moe_intermediate_size": 768,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 128,
        },
    ),
    "Gemma-7B": (
        8_537_680_896,
        {
            "model_type": "gemma",
            "vocab_size": 256000,
            "hidden_size": 3072,
            "num_hidden_layers": 28,
            "intermediate_size": 24576,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "head_dim": 256,
        },
    ),
    "Gemma-2-9B": (
        9_241_705_984,
        {
            "model_type": "gemma2",
            "vocab_size": 256000,
            "hidden_size": 3584,
            "num_hidden_layers": 42,
            "intermediate_size": 14336,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 256,
        },
    ),
    "Phi-3-mini": (
        3_821_079_552,
        {
            "model_type": "phi3",
            "vocab_size": 32064,
            "hidden_size": 3072,
            "num_hidden_layers": 32,
            "intermediate_size": 8192,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
        },
    ),
    "ChatGLM2-6B": (
        6_243_584_000,
        {
            "model_type": "chatglm",
            "padded_vocab_size": 65024,
            "hidden_size": 4096,
            "num_layers": 28,
            "ffn_hidden_size": 13696,
            "num_attention_heads": 32,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "kv_channels": 128,
            "add_qkv_bias": True,
            "seq_length": 32768,
        },
    ),
    "Baichuan2-7B": (
        7_505_973_248,
        {
            "model_type": "baichuan",
            "vocab_size": 125696,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "intermediate_size": 11008,
            "num_attention_heads": 32,
        },
    ),
    "GPT-2": (
        124_439_808,
        {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024},
    ),
    "GPT-2 XL": (
        1_557_611_200,
        {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 1600, "n_layer": 48, "n_head": 25, "n_inner": None},
    ),
    "OPT-1.3B": (
        1_315_758_080,
        {
            "model_type": "opt",
            "vocab_size": 50272,
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "ffn_dim": 8192,
            "num_attention_heads": 32,
            "max_position_embeddings": 2048,
            "word_embed_proj_dim": 2048,
        },
    ),
    "OPT-6.7B": (
        6_658_473_984,
        {
            "model_type": "opt",
            "vocab_size": 50272,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "ffn_dim": 16384,
            "num_attention_heads": 32,
            "max_position_embeddings": 2048,
        },
    ),
    "BLOOM-7B1": (
        7_069_016_064,
        {"model_type": "bloom", "vocab_size": 250880, "n_embed": 4096, "n_embd": 4096, "n_layer": 30, "n_head": 32},
    ),
    "Pythia-6.9B": (
        6_857_302_016,
        {
            "model_type": "gpt_neox",
            "vocab_size": 50432,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "intermediate_size": 16384,
            "num_attention_heads": 32,
            "tie_word_embeddings": False,
        },
    ),
}
"""Counts of the published weights (safetensors' own totals, or the papers')."""

ESTIMATED: dict[str, tuple[int, dict[str, Any]]] = {
    # one norm a layer, no biases
    "Falcon-7B": (
        6_921_720_704,
        {
            "model_type": "falcon",
            "vocab_size": 65024,
            "hidden_size": 4544,
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "multi_query": True,
        },
    ),
    "Phi-2": (
        2_779_683_840,
        {
            "model_type": "phi",
            "vocab_size": 51200,
            "hidden_size": 2560,
            "num_hidden_layers": 32,
            "intermediate_size": 10240,
            "num_attention_heads": 32,
            "tie_word_embeddings": False,
        },
    ),
    "StarCoder2-7B": (
        7_173_923_840,
        {
            "model_type": "starcoder2",
            "vocab_size": 49152,
            "hidden_size": 4608,
            "num_hidden_layers": 32,
            "intermediate_size": 18432,
            "num_attention_heads": 36,
            "num_key_value_heads": 4,
        },
    ),
}


def model(given_model: dict[str, Any]) -> Model:
    found, problems = read(given_model)
    assert problems == [] and found is not None
    return found


def errors(given_model: Any) -> list[str]:
    found, problems = read(given_model)
    assert (found is None) is bool(problems)
    return [str(problem) for problem in problems]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str) -> None:
    parameters, config = PUBLISHED[name]
    found = model(config)
    assert found.parameters == found.trainable == parameters
    assert not any("estimate" in note for note in found.notes)


@pytest.mark.parametrize("name", ESTIMATED)
def test_other_architectures_are_estimates_and_say_so(name: str) -> None:
    parameters, config = ESTIMATED[name]
    found = model(config)
    assert found.parameters == pytest.approx(parameters, rel=0.03)
    assert any(f"a model '{config['model_type']}' are an estimate" in note for note in found.notes)


def test_shape() -> None:
    found = model({**LLAMA3_8B, "sequence_length": 8192, "activation_checkpointing": False, "optimizer": "Lion"})
    assert (found.layers, found.hidden, found.vocabulary) == (32, 4096, 128256)
    assert (found.query, found.key_value, found.feed_forward, found.gated) == (4096, 1024, 14336, True)
    assert found.largest == 128256 * 4096
    assert (found.sequence_length, found.activation_checkpointing, found.optimizer) == (8192, False, "lion")
    assert found.notes == ()


def test_experts() -> None:
    found = model(PUBLISHED["Mixtral-8x7B"][1])
    assert (found.feed_forward, found.copies) == (2 * 14336, 2)
    # transformers 5 keeps the first two matrices of all eight experts in one parameter
    assert found.largest == 8 * 2 * 4096 * 14336


def test_the_language_model_of_a_multimodal_one() -> None:
    found = model({"model_type": "gemma3", "text_config": LLAMA3_8B, "vision_config": {"hidden_size": 1152}})
    assert found.parameters == 8_030_261_248
    assert "only the language model (text_config) is counted, not the encoders beside it" in found.notes
    assert errors({"text_config": {**LLAMA3_8B, "hidden_size": "wide"}}) == [
        "model.text_config.hidden_size: must be a whole number of at least 1, not 'wide'"
    ]


@pytest.mark.parametrize(
    "parameters, count",
    [
        ("10B", 10**10),
        ("10 b", 10**10),
        ("7.5e9", 75 * 10**8),
        ("350M", 350 * 10**6),
        ("1.3B", 13 * 10**8),
        (7e9, 7 * 10**9),
        ("8030261248", 8_030_261_248),
        (8_030_261_248, 8_030_261_248),
    ],
)
def test_parameters(parameters: Any, count: int) -> None:
    found = model({"parameters": parameters})
    assert found.parameters == count
    assert "layers and widths are those of a typical model of this size, since only parameters is given" in found.notes


@pytest.mark.parametrize("name", ["Llama-2-7B", "Llama-2-13B", "Llama-3-70B", "Llama-3-8B"])
def test_typical_widths_are_near_the_real_ones(name: str) -> None:
    parameters, config = PUBLISHED[name]
    typical, real = model({"parameters": parameters}), model(config)
    assert typical.hidden == pytest.approx(real.hidden, rel=0.12)
    assert typical.layers == pytest.approx(real.layers, rel=0.15)


def test_a_count_beside_fields_counts() -> None:
    found = model({**LLAMA3_8B, "parameters": "9B"})
    assert (found.parameters, found.hidden) == (9 * 10**9, 4096)
    # also where the fields alone would not do
    assert model({"parameters": "16B", "kv_lora_rank": 512, **LLAMA3_8B, "model_type": "deepseek_v2"}).layers == 32


@pytest.mark.parametrize(
    "trainable, count",
    [("20M", 20 * 10**6), (0.01, 100 * 10**6), ("0.01", 100 * 10**6), ("1%", 10**8), (1.0, 10**10), (10**10, 10**10)],
)
def test_trainable(trainable: Any, count: int) -> None:
    assert model({"parameters": "10B", "trainable_parameters": trainable}).trainable == count


@pytest.mark.parametrize(
    "given_model, expected",
    [
        (7, ["model: must be a mapping with parameters or a config.json's fields, not 7"]),
        (
            {},
            ["model: needs parameters, or a config.json's fields (hidden_size, num_hidden_layers, vocab_size)"],
        ),
        (
            {"parameters": "ten"},
            ["model.parameters: must be a number of parameters such as 10B, 7.5e9 or 350M, not 'ten'"],
        ),
        (
            {"parameters": True},
            ["model.parameters: must be a number of parameters such as 10B, 7.5e9 or 350M, not true"],
        ),
        ({"parameters": 0}, ["model.parameters: must be a number of parameters such as 10B, 7.5e9 or 350M, not 0"]),
        (
            {"hidden_size": 4096},
            [
                "model.num_hidden_layers: is missing; a config.json has it, else give parameters",
                "model.vocab_size: is missing; a config.json has it, else give parameters",
            ],
        ),
        (
            {**LLAMA3_8B, "hidden_size": "4k", "n_head": -1, "num_key_value_heads": 1.5},
            [
                "model.hidden_size: must be a whole number of at least 1, not '4k'",
                "model.num_key_value_heads: must be a whole number of at least 0, not 1.5",
            ],
        ),
        (
            {**LLAMA3_8B, "model_type": "deepseek_v3", "kv_lora_rank": 512, "n_routed_experts": 256},
            ["model.kv_lora_rank: belongs to an architecture that is not counted here; give model.parameters"],
        ),
        (
            {"parameters": "1B", "optimizer": "adamw_8bit", "sequence_length": 0, "activation_checkpointing": "yes"},
            [
                "model.sequence_length: must be a number of tokens, 1 or more, not 0",
                "model.activation_checkpointing: must be true or false, not 'yes'",
                f"model.optimizer: must be one of {', '.join(MOMENTS)}, not 'adamw_8bit'",
            ],
        ),
        (
            {"parameters": "1B", "trainable_parameters": "2B"},
            [
                "model.trainable_parameters: must be a count such as 20M or a share such as 0.01 or 1%,"
                " at most all 1,000,000,000, not '2B'"
            ],
        ),
    ],
)
def test_errors(given_model: Any, expected: list[str]) -> None:
    assert errors(given_model) == expected


KEYS = st.sampled_from(
    [
        *LLAMA3_8B,
        *("parameters", "trainable_parameters", "sequence_length", "activation_checkpointing", "optimizer"),
        *("n_embd", "head_dim", "num_experts", "num_local_experts", "moe_intermediate_size", "text_config"),
        *("multi_query", "kv_lora_rank", "decoder_sparse_step", "mlp_only_layers", "max_position_embeddings"),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 0, 1, 8, 4096, 1e308, 0.5, float("nan"), "7B", "1e99", "1%", "llama", "gpt2"])
    | st.floats()
    | st.text(max_size=8)
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(), inner))


@settings(deadline=None, derandomize=True, max_examples=examples(1500))
@given(
    VALUES | st.dictionaries(KEYS, VALUES) | st.dictionaries(KEYS, SCALARS).map(lambda extra: {**LLAMA3_8B, **extra})
)
def test_any_input_ends_in_a_model_or_in_words(given_model: Any) -> None:
    found, problems = read(given_model)
    assert (found is None) is bool(problems)
    if found is not None:
        assert 1 <= found.trainable <= found.parameters <= 10**15 and 1 <= found.largest <= found.parameters
        assert min(found.layers, found.hidden, found.vocabulary, found.query, found.sequence_length) >= 1
    assert all(problem.path.startswith("model") and len(problem.message) < 400 for problem in problems)
