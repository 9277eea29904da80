# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Fine-tune all weights of a language model with the HF Trainer and DeepSpeed, and have the trained model answer.

--do_train is run by deepspeed: train.py --deepspeed ds_config.json --do_train --train_file F --test_file F. It leaves a
checkpoint, of which zero_to_fp32 makes one file of weights. --do_predict is run by torchrun and without DeepSpeed, as
ZeRO-2 cannot predict, with a batch size of its own: the model reads that file, answers the questions of --test_file,
and is written as it is used elsewhere. The job fails when less than --target of the answers are right.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from tiny import make
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

IGNORED = -100
"""Label of what is not learnt: the question, and padding."""


@dataclass
class Own:
    """What the script has beside the Trainer's own arguments."""

    model_name_or_path: str = field(metadata={"help": "folder or name of a model"})
    train_file: str = field(default="", metadata={"help": "JSON lines with prompt and answer"})
    test_file: str = field(default="", metadata={"help": "the same, held out"})
    weights: str = field(default="", metadata={"help": "one file of weights, read in the place of the model's own"})
    final: str = field(default="", metadata={"help": "folder for the trained model and its answers"})
    max_length: int = field(default=64, metadata={"help": "tokens of a question with its answer"})
    target: float = field(default=0.0, metadata={"help": "share of right answers below which the job fails"})
    make: str = field(default="", metadata={"help": "make a tiny model and data in this folder, where it is missing"})


def read(path: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]


class Answers(torch.utils.data.Dataset):
    """Questions with their answers, each at one length; only the answer is learnt."""

    def __init__(self, rows: list[dict[str, str]], tokenizer: Any, length: int) -> None:
        self.rows = [self._coded(row, tokenizer, length) for row in rows]

    @staticmethod
    def _coded(row: dict[str, str], tokenizer: Any, length: int) -> dict[str, torch.Tensor]:
        prompt = tokenizer(row["prompt"])["input_ids"]
        coded = [*prompt, *tokenizer(row["answer"])["input_ids"], tokenizer.eos_token_id]
        if len(coded) > length:
            raise SystemExit(f"trainer_full: a row has {len(coded)} tokens. Remedy: raise --max_length above {length}")
        padding = length - len(coded)
        return {
            "input_ids": torch.tensor(coded + [tokenizer.pad_token_id] * padding),
            "attention_mask": torch.tensor([1] * len(coded) + [0] * padding),
            "labels": torch.tensor([IGNORED] * len(prompt) + coded[len(prompt) :] + [IGNORED] * padding),
        }

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return self.rows[at]


def train(trainer: Trainer) -> None:
    trainer.train()
    if trainer.is_world_process_zero():
        backend = dist.get_backend() if dist.is_initialized() else "none"
        print(f"trainer_full: {trainer.args.world_size} ranks, backend {backend}, on {trainer.args.device}", flush=True)
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        print(f"trainer_full: loss {losses[0]:.4f} -> {losses[-1]:.4f}, step {trainer.state.global_step}", flush=True)


def predict(trainer: Trainer, own: Own, tokenizer: Any) -> bool:
    """Return whether enough answers are right; each rank asks its own part of the questions, one at a time."""
    rows = read(own.test_file)
    loss = trainer.predict(Answers(rows, tokenizer, own.max_length)).metrics["test_loss"]
    rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    model = trainer.model.eval()
    mine = {at: answer(model, tokenizer, rows[at]["prompt"], own.max_length) for at in range(rank, len(rows), world)}
    parts: list[Any] = [mine]
    if world > 1:
        parts = [None] * world
        dist.all_gather_object(parts, mine)
    answers = {at: text for part in parts for at, text in part.items()}
    right = sum(answers[at].strip() == row["answer"].strip() for at, row in enumerate(rows)) / len(rows)
    if rank == 0:
        print(f"trainer_full: {world} ranks, loss on held-out questions {loss:.4f}", flush=True)
        print(f"trainer_full: asked {rows[0]['prompt']!r}, answered {answers[0]!r}", flush=True)
        if own.final:
            model.save_pretrained(own.final)
            tokenizer.save_pretrained(own.final)
            lines = (json.dumps({**row, "said": answers[at]}) + "\n" for at, row in enumerate(rows))
            Path(own.final, "answers.jsonl").write_text("".join(lines), encoding="utf-8")
        verdict = "reached" if right >= own.target else "MISSED"
        print(f"trainer_full: {right:.4f} of the answers are right, target {own.target} {verdict}", flush=True)
    return right >= own.target


def answer(model: Any, tokenizer: Any, prompt: str, length: int) -> str:
    coded = tokenizer(prompt, return_tensors="pt")
    question = {name: coded[name].to(model.device) for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        whole = model.generate(**question, max_length=length, do_sample=False, pad_token_id=tokenizer.pad_token_id)
    return str(tokenizer.decode(whole[0, question["input_ids"].shape[1] :], skip_special_tokens=True))


def main() -> int:
    own, others = HfArgumentParser(Own).parse_args_into_dataclasses(return_remaining_strings=True)
    # Before TrainingArguments, which begin the process group: in one, transformers saves a model on rank 0 alone.
    if own.make:
        make(Path(own.make))
    (settings,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(others)
    tokenizer = AutoTokenizer.from_pretrained(own.model_name_or_path)
    model = AutoModelForCausalLM.from_pretrained(own.model_name_or_path)
    if own.weights:
        model.load_state_dict(torch.load(own.weights, map_location="cpu", weights_only=True))
    trainer = Trainer(
        model=model,
        args=settings,
        train_dataset=Answers(read(own.train_file), tokenizer, own.max_length) if settings.do_train else None,
        data_collator=default_data_collator,
        processing_class=tokenizer,
    )
    if settings.do_train:
        train(trainer)
    reached = predict(trainer, own, tokenizer) if settings.do_predict else True
    if dist.is_initialized():
        dist.barrier()  # rank 0 writes the model
        dist.destroy_process_group()
    return 0 if reached else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: see examples/digits/train.py.
    os._exit(code)
