# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Merge a LoRA adapter into its base, so that the model can be used without peft: python3 merge.py BASE ADAPTER OUTPUT

Fails where the merged model, read back from its files, does not say what base and adapter say together, or says what
the base says alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="folder of the model that was trained")
    parser.add_argument("adapter", help="folder with adapter_model.safetensors")
    parser.add_argument("output", help="folder for the merged model")
    parser.add_argument("--prompt", default="Write the word in capital letters. swarm")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    tokenizer = AutoTokenizer.from_pretrained(args.base)
    tokens = tokenizer(args.prompt, return_tensors="pt")["input_ids"]

    def reported(model: Any) -> torch.Tensor:
        with torch.no_grad():
            scores: torch.Tensor = model.eval()(input_ids=tokens).logits.float()
        return scores

    alone = reported(AutoModelForCausalLM.from_pretrained(args.base))
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(args.base), args.adapter)
    together = reported(model)
    model.merge_and_unload().save_pretrained(args.output)
    tokenizer.save_pretrained(args.output)
    merged = reported(AutoModelForCausalLM.from_pretrained(args.output))
    off, learnt = (float((other - together).abs().max()) for other in (merged, alone))
    print(f"llama_factory_sft: merged into {args.output}, off by {off:.6f}; the base alone by {learnt:.4f}", flush=True)
    return 0 if off < 0.01 * learnt else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: see examples/digits/train.py.
    os._exit(code)
