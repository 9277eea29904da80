# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Stand-ins for a model and data that a lab cannot load: a tiny Llama and Alpaca-style rows, the same on every node.

Made by seed in each node's own folder, because nodes share no disk. The first process of a node that needs them makes
them.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

ROWS = 400


def rows(seed: int) -> list[dict[str, str]]:
    """Return instructions with answers that follow rules, so that a loss can fall."""
    chosen = random.Random(seed)
    words = ["swarm", "rank", "node", "tensor", "batch", "cable", "switch", "layer", "token", "fabric"]
    found = []
    for _row in range(ROWS):
        first, second = pair = chosen.sample(words, 2)
        kind = chosen.randrange(3)
        if kind == 0:
            row = ("Write the words in the order of the alphabet.", f"{first} {second}", f"{min(pair)} {max(pair)}")
        elif kind == 1:
            row = ("Say how many letters the word has.", first, f"{first} has {len(first)} letters.")
        else:
            row = ("Write the word in capital letters.", second, second.upper())
        found.append(dict(zip(("instruction", "input", "output"), row)))
    return found


def tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE trained on the data itself."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=512,
            special_tokens=["<pad>", "<s>", "</s>"],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def make(folder: Path, seed: int = 7) -> str:
    """Make folder/model and folder/data unless they are there; return a digest that is the same on all nodes."""
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        write(part, seed)
        try:
            part.rename(folder)
        except OSError:  # another process of this node was quicker
            shutil.rmtree(part)
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def write(folder: Path, seed: int) -> None:
    data = rows(seed)
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "alpaca.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    (folder / "data" / "dataset_info.json").write_text('{"alpaca": {"file_name": "alpaca.json"}}\n', encoding="utf-8")
    words = tokenizer(["\n".join(row.values()) for row in data])
    words.save_pretrained(folder / "model")
    torch.manual_seed(seed)
    shape = LlamaConfig(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(shape).save_pretrained(folder / "model")
