# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Supervised fine-tuning as step 1 of DeepSpeed-Chat does it: a Llama, LoRA, ZeRO-3, and perplexity as the measure.

Its flags are those of DeepSpeed-Chat's main.py; what they say replaces what ds_config.json has. Without
--model_name_or_path it makes a tiny Llama and a tokenizer on the spot and generates dialogues to learn: nothing is
downloaded. Ends with a failure when the perplexity on held-out dialogues stays above --target.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from peft import LoraConfig, PeftModel, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.utils.data import DataLoader, DistributedSampler
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    get_scheduler,
)
from transformers.integrations import HfDeepSpeedConfig

IGNORED = -100
"""Label of padding: no loss there."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model_name_or_path", default="", help="a model; empty: a tiny Llama made on the spot")
    parser.add_argument("--data_path", default="", help="JSON lines with prompt and chosen; empty: generated dialogues")
    parser.add_argument("--data_split", default="2,4,4", help="parts of the data for steps 1, 2 and 3; this is step 1")
    parser.add_argument("--num_train_epochs", type=int, default=1)
    parser.add_argument("--max_seq_len", type=int, default=64)
    parser.add_argument("--per_device_train_batch_size", type=int, help="this and those below: else as in ds_config")
    parser.add_argument("--per_device_eval_batch_size", type=int)
    parser.add_argument("--gradient_accumulation_steps", type=int)
    parser.add_argument("--zero_stage", type=int, choices=(0, 1, 2, 3))
    parser.add_argument("--learning_rate", type=float)
    parser.add_argument("--weight_decay", type=float)
    parser.add_argument("--lr_scheduler_type", choices=("linear", "cosine", "constant"))
    parser.add_argument("--num_warmup_steps", type=int, default=0)
    parser.add_argument("--lora_dim", type=int, default=8, help="0: train all weights")
    parser.add_argument("--lora_module_name", default="layers.", help="what is in the names of layers that get LoRA")
    parser.add_argument("--gradient_checkpointing", action="store_true")
    parser.add_argument("--output_dir", default="checkpoints/deepspeed_chat_sft", help="empty: save nothing")
    parser.add_argument("--target", type=float, default=0.0, help="perplexity above which the job fails; 0: none")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--local_rank", type=int, default=-1)
    return deepspeed.add_config_arguments(parser).parse_args()


def configuration(args: argparse.Namespace) -> dict[str, Any]:
    """Return ds_config.json with what the flags say."""
    config: dict[str, Any] = json.loads(Path(args.deepspeed_config).read_text(encoding="utf-8"))
    sizes = {
        "train_micro_batch_size_per_gpu": args.per_device_train_batch_size,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
    }
    for name, value in sizes.items():
        if value is not None:
            config[name] = value
            config.pop("train_batch_size", None)  # follows from the two
    if args.zero_stage is not None:
        config.setdefault("zero_optimization", {})["stage"] = args.zero_stage
    for name, value in (("lr", args.learning_rate), ("weight_decay", args.weight_decay)):
        if value is not None:
            config["optimizer"]["params"][name] = value
    if args.lr_scheduler_type:
        config.pop("scheduler", None)
    return config


def first_part(rows: list[dict[str, str]], split: str) -> list[dict[str, str]]:
    """Return the part of the data that step 1 trains on."""
    parts = [float(part) for part in split.split(",")]
    return rows[: max(int(len(rows) * parts[0] / sum(parts)), 1)]


def dialogues(path: str, seed: int) -> list[dict[str, str]]:
    """Return prompts with the answers wanted; without a file 2,400 generated ones with rules that can be learnt."""
    if path:
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    chosen = random.Random(seed)
    things = ["node", "rank", "disk", "cable", "switch", "fan"]
    rows = []
    for _row in range(2400):
        many, thing = chosen.randint(2, 9), chosen.choice(things)
        rows.append(
            {
                "prompt": f"Human: I have {many} {thing}s and buy one more. How many {thing}s are there? Assistant:",
                "chosen": f" There are {many + 1} {thing}s now.",
            }
        )
    return rows


def tiny(texts: list[str], seed: int) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """Return a stand-in for a real model: 2 layers, random weights, a byte-level BPE trained on the texts."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bpe.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    torch.manual_seed(seed)
    shape = LlamaConfig(
        vocab_size=len(tokenizer),
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
    return LlamaForCausalLM(shape), tokenizer


def with_lora(model: Any, args: argparse.Namespace) -> Any:
    if not args.lora_dim:
        return model
    # The tiny model's weights are random: its words have to be learnt too. A real model has learnt them.
    whole = None if args.model_name_or_path else ["embed_tokens", "lm_head"]
    linear = [name for name, layer in model.named_modules() if isinstance(layer, torch.nn.Linear)]
    chosen = [name for name in linear if args.lora_module_name in name]
    if not chosen:
        raise SystemExit(
            f"sft: no layer of this model has {args.lora_module_name!r} in its name, as {linear[0]} has. Remedy: "
            "--lora_module_name with what its layers have, such as decoder.layers. (OPT) or layers. (Llama)"
        )
    requested = LoraConfig(
        r=args.lora_dim,
        lora_alpha=2 * args.lora_dim,
        target_modules=chosen,
        modules_to_save=whole,
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, requested)


def examples(rows: list[dict[str, str]], tokenizer: Any, length: int) -> list[dict[str, torch.Tensor]]:
    """Return every dialogue at one length: cut or padded, with labels that leave the padding out."""
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    found = []
    for row in rows:
        coded = tokenizer(
            row["prompt"] + row["chosen"] + (tokenizer.eos_token or ""),
            max_length=length,
            padding="max_length",
            truncation=True,
            return_tensors="pt",
        )
        ids, mask = coded["input_ids"][0], coded["attention_mask"][0]
        found.append({"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, IGNORED)})
    return found


def train_on(engine: Any, loader: DataLoader, epochs: int) -> None:
    since, steps = time.monotonic(), epochs * len(loader) // engine.gradient_accumulation_steps()
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for batch in loader:
            loss = engine(**{name: part.to(engine.device) for name, part in batch.items()}, use_cache=False).loss
            engine.backward(loss)
            edge = engine.is_gradient_accumulation_boundary()
            engine.step()
            if dist.get_rank() == 0 and edge and engine.global_steps % 10 == 0:
                rate = engine.global_steps * engine.train_batch_size() / (time.monotonic() - since)
                print(
                    f"sft: step {engine.global_steps}/{steps} loss={loss.item():.4f} samples/s={rate:.1f}", flush=True
                )


def perplexity(engine: Any, data: list[dict[str, torch.Tensor]], micro: int) -> float:
    """Return the perplexity of held-out dialogues. Every rank does the same number of steps, as ZeRO-3 needs."""
    sampler = DistributedSampler(data, shuffle=False)
    engine.eval()
    losses = torch.zeros((), device=engine.device)
    loader = DataLoader(data, batch_size=micro, sampler=sampler)
    with torch.no_grad():
        for batch in loader:
            losses += engine(**{name: part.to(engine.device) for name, part in batch.items()}, use_cache=False).loss
    engine.train()
    dist.all_reduce(losses)
    return math.exp(float(losses) / dist.get_world_size() / len(loader))


def save(engine: Any, tokenizer: Any, folder: str, only_trained: bool) -> int:
    """Write the weights from rank 0, gathered one by one: all at once can outlast the collective's timeout."""
    kept = {}
    for name, parameter in engine.module.named_parameters():
        if only_trained and not parameter.requires_grad:
            continue
        with deepspeed.zero.GatheredParameters([parameter]):
            if dist.get_rank() == 0:
                kept[name] = parameter.detach().cpu().clone()
    if dist.get_rank() == 0:
        engine.module.save_pretrained(folder, state_dict=kept)
        tokenizer.save_pretrained(folder)
    dist.barrier()
    return sum(weights.numel() for weights in kept.values())


def saved_perplexity(args: argparse.Namespace, texts: list[str], data: list[dict[str, torch.Tensor]]) -> float:
    """Return what the files give when they are read back without DeepSpeed: for the tiny model, which is soon made."""
    base = tiny(texts, args.seed)[0]
    saved = args.output_dir
    model = PeftModel.from_pretrained(base, saved) if args.lora_dim else base.from_pretrained(saved)
    model.eval()
    with torch.no_grad():
        losses = [float(model(**{name: part[None] for name, part in row.items()}).loss) for row in data]
    return math.exp(sum(losses) / len(losses))


def schedule(args: argparse.Namespace, config: dict[str, Any], batches: int) -> Any:
    """Return what makes the scheduler of an optimizer; none where no flag names one."""
    if not args.lr_scheduler_type:
        return None
    every = int(config.get("gradient_accumulation_steps") or 1)
    steps = args.num_train_epochs * batches // every
    return lambda optimizer: get_scheduler(args.lr_scheduler_type, optimizer, args.num_warmup_steps, steps)


def main() -> int:
    args = arguments()
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    first, ranks = dist.get_rank() == 0, dist.get_world_size()
    config = configuration(args)
    rows = first_part(dialogues(args.data_path, args.seed), args.data_split)
    texts = [row["prompt"] + row["chosen"] for row in rows]
    if args.model_name_or_path:
        # While this object lives, from_pretrained divides the weights among the ranks as it reads them (ZeRO-3).
        kept = HfDeepSpeedConfig(config)
        tokenizer = AutoTokenizer.from_pretrained(args.model_name_or_path)
        model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
        del kept
    else:
        model, tokenizer = tiny(texts, args.seed)
    if args.gradient_checkpointing:
        # Reentrant: the other way compares what it computes again with weights that ZeRO-3 has divided by then.
        model.gradient_checkpointing_enable({"use_reentrant": True})
        model.enable_input_require_grads()
    model = with_lora(model, args)
    data = examples(rows, tokenizer, args.max_seq_len)
    cut = max(len(data) // 10, ranks)
    train, held_out = data[cut:], data[:cut]
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # ds_numel: a weight that ZeRO-3 has divided already has no elements of its own.
    counts = [sum(getattr(part, "ds_numel", part.numel()) for part in parts) for parts in (trained, model.parameters())]
    micro = int(config["train_micro_batch_size_per_gpu"])
    sampler = DistributedSampler(train, shuffle=True, seed=args.seed)
    loader = DataLoader(train, batch_size=micro, sampler=sampler, drop_last=True)
    engine = deepspeed.initialize(
        model=model, model_parameters=trained, config=config, lr_scheduler=schedule(args, config, len(loader))
    )[0]
    if first:
        print(
            f"sft: {ranks} ranks, backend {dist.get_backend()}, ZeRO stage {engine.zero_optimization_stage()}, "
            f"{counts[0]} of {counts[1]} parameters trained, {len(train)} dialogues",
            flush=True,
        )
    requested = args.per_device_eval_batch_size or micro
    before = perplexity(engine, held_out, requested)
    train_on(engine, loader, args.num_train_epochs)
    after = perplexity(engine, held_out, requested)
    reached = not args.target or after <= args.target
    if first:
        verdict = "" if not args.target else f", target {args.target} {'reached' if reached else 'MISSED'}"
        print(f"sft: perplexity {before:.2f} -> {after:.2f}{verdict}", flush=True)
    if args.output_dir:
        written = save(engine, tokenizer, args.output_dir, only_trained=bool(args.lora_dim))
        if first:
            print(f"sft: {written} parameters in {args.output_dir}", flush=True)
        if first and not args.model_name_or_path:
            again = saved_perplexity(args, texts, held_out)
            reached = reached and abs(again - after) < 0.05 * after
            print(f"sft: perplexity {again:.2f} when read back from there", flush=True)
    verdicts = [reached]
    dist.broadcast_object_list(verdicts, src=0)
    dist.destroy_process_group()
    return 0 if verdicts[0] else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: see examples/digits/train.py.
    os._exit(code)
