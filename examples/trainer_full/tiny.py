# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Stand-ins for a model and data that a lab cannot load: a tiny Llama, and questions with one right answer each."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SEED = 7
THINGS = ("node", "rank", "disk", "cable", "switch", "fan")


def rows(chosen: random.Random, count: int) -> list[dict[str, str]]:
    """Return questions with their answers, by a rule that can be learnt."""
    found = []
    for _row in range(count):
        many, thing = chosen.randint(2, 9), chosen.choice(THINGS)
        found.append(
            {
                "prompt": f"Human: I have {many} {thing}s and buy one more. How many {thing}s are there? Assistant:",
                "answer": f" There are {many + 1} {thing}s now.",
            }
        )
    return found


def make(folder: Path) -> None:
    """Make folder/model, folder/train.jsonl and folder/test.jsonl, whole, unless they are there."""
    if folder.exists():
        return
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    part.mkdir(parents=True)
    chosen = random.Random(SEED)
    train, test = rows(chosen, 480), rows(chosen, 40)
    for name, found in (("train", train), ("test", test)):
        text = "".join(f"{json.dumps(row)}\n" for row in found)
        (part / f"{name}.jsonl").write_text(text, encoding="utf-8")
    words = tokenizer([row["prompt"] + row["answer"] for row in train])
    words.save_pretrained(part / "model")
    torch.manual_seed(SEED)
    shape = LlamaConfig(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(shape).save_pretrained(part / "model")
    try:
        part.rename(folder)
    except OSError:  # another process of this node was quicker
        shutil.rmtree(part)


def tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE trained on the data itself."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<pad>", "<s>", "</s>"],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
