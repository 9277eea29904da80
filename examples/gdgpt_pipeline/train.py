# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Train a small language model as a DeepSpeed pipeline: each rank holds some layers, passes activations to the next.

Configured as gdGPT is, by keys of the script's own in the same ds_config.json. It learns to continue Python's own
reference manual byte by byte (or the text in data_path), and ends with a failure when the loss on held-out text stays
above --target.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import pydoc_data.topics
import sys
import time
from pathlib import Path
from typing import Any

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from deepspeed.pipe import PipelineModule
from deepspeed.runtime.pipe import ProcessTopology
from layers import KINDS, layers
from torch.utils.data import Dataset


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=float, default=3.0, help="loss a byte above which the job fails (random: 5.5)")
    parser.add_argument("--model", choices=KINDS, default="gpt", help="architecture of the layers")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint in save_path, if any")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--local_rank", type=int, default=-1)
    return deepspeed.add_config_arguments(parser).parse_args()


def loss_of(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


class Text(Dataset):
    """Pieces of a text, each with the same piece one byte later."""

    def __init__(self, text: bytes, length: int) -> None:
        whole = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        self.pieces = whole[: (len(whole) - 1) // length * length].view(-1, length)
        self.labels = whole[1 : self.pieces.numel() + 1].view(-1, length)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, at: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pieces[at], self.labels[at]


def text_of(path: str) -> bytes:
    """Return the text: real English prose that every Python brings along, where no file is named."""
    if path:
        return Path(path).read_bytes()
    return "\n\n".join(text for _name, text in sorted(pydoc_data.topics.topics.items())).encode()


def agree(text: bytes) -> None:
    """Fail where ranks have different texts: the first stage reads the pieces, the last one the labels."""
    seen: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(seen, hashlib.sha256(text).hexdigest())
    other = [rank for rank, digest in enumerate(seen) if digest != seen[0]]
    if other:
        raise SystemExit(
            f"gdgpt: ranks {other} have another text than rank 0. Remedy: the same data_path on every node."
        )


def topology(requested: dict[str, Any], ranks: int) -> ProcessTopology:
    """Return gdGPT's process_topology; -1 among dims stands for the ranks that the others leave."""
    axes, dims = list(requested["axes"]), [int(size) for size in requested["dims"]]
    if dims.count(-1) == 1:
        dims[dims.index(-1)] = max(ranks // -math.prod(dims), 1)
    if math.prod(dims) != ranks:
        raise SystemExit(
            f"gdgpt: model_topo.process_topology.dims {requested['dims']} does not make the job's {ranks} ranks. "
            "Remedy: dims whose product is the number of ranks; one of them may be -1."
        )
    return ProcessTopology(axes=axes, dims=dims)


def seeded(seed: int) -> None:
    torch.manual_seed(int(seed))


def pipeline(config: dict[str, Any], kind: str, ranks: int, seed: int) -> PipelineModule:
    topo = config["model_topo"]
    return PipelineModule(
        layers=layers(kind, config["model_shape"], int(config["max_seq_len"]), bool(config.get("use_grad_ckpt"))),
        loss_fn=loss_of,
        topology=topology(topo["process_topology"], ranks),
        # The number of layers of each stage, as gdGPT has it; by their parameters where that is not given.
        partition_method=topo.get("parts") or "parameters",
        seed_layers=True,
        base_seed=seed,
        # DeepSpeed's own hands Python's random a number of numpy's, which that refuses.
        seed_fn=seeded,
        activation_checkpoint_interval=0,
    )


def save(engine: deepspeed.PipelineEngine, folder: Path, tag: str) -> None:
    """Write a checkpoint that can be read again where nodes share no disk.

    A rank writes the layers and states of its stage, and reads no others. But it counts the small mp_rank files of all
    stages, and asks for the file "latest", which rank 0 alone writes: these go to every node.
    """
    engine.save_checkpoint(folder, tag=tag)
    own = folder / tag / f"mp_rank_{engine.mpu.get_model_parallel_rank():02d}_model_states.pt"
    everywhere: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, (str(own), own.read_bytes()) if own.exists() else None)
    # The name last: a checkpoint that it names is whole.
    for path, content in [*filter(None, everywhere), (str(folder / "latest"), tag.encode())]:
        part = Path(f"{path}.{dist.get_rank()}")
        part.write_bytes(content)
        part.replace(path)
    dist.barrier()


def held_out_loss(engine: deepspeed.PipelineEngine, data: Text) -> float:
    """Return the mean loss over the held-out pieces, of which every replica evaluates its own."""
    replicas, mine = engine.grid.get_data_parallel_world_size(), engine.grid.get_data_parallel_rank()
    micro, times = engine.train_micro_batch_size_per_gpu(), engine.gradient_accumulation_steps()
    part = range(mine, len(data), replicas)
    batches = [
        tuple(torch.stack(column) for column in zip(*(data[at] for at in part[start : start + micro])))
        for start in range(0, micro * times, micro)
    ]
    return float(engine.eval_batch(iter(batches)))


def main() -> int:
    args = arguments()
    config = json.loads(Path(args.deepspeed_config).read_text(encoding="utf-8"))
    if config.get("save_path") and args.model != "gpt":
        config["save_path"] += f"_{args.model}"  # another architecture has other layers
    deepspeed.init_distributed(dist_backend=get_accelerator().communication_backend_name())
    ranks, first = dist.get_world_size(), dist.get_rank() == 0
    text = text_of(config.get("data_path", ""))
    agree(text)
    cut = len(text) * 9 // 10
    train, held_out = (Text(part, int(config["max_seq_len"])) for part in (text[:cut], text[cut:]))
    model = pipeline(config, args.model, ranks, args.seed)
    args.deepspeed_config = None  # given as a dict below; DeepSpeed refuses both
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    engine = deepspeed.initialize(args=args, model=model, model_parameters=trained, training_data=train, config=config)[
        0
    ]
    steps = int(config["n_steps"])
    if args.resume and config.get("save_path"):
        engine.load_checkpoint(config["save_path"])
    if first:
        stages = engine.grid.get_pipe_parallel_world_size()
        print(
            f"gdgpt: {args.model}, {ranks} ranks, {stages} stages, backend {dist.get_backend()}, "
            f"{len(text)} bytes of text, from step {engine.global_steps}",
            flush=True,
        )
    before = held_out_loss(engine, held_out)
    since, tokens = time.monotonic(), engine.train_batch_size() * int(config["max_seq_len"])
    while engine.global_steps < steps:
        loss = float(engine.train_batch())
        step = engine.global_steps
        if step % 10 == 0 or step == steps:
            if first:
                rate = 10 * tokens / (time.monotonic() - since)
                print(f"gdgpt: step {step}/{steps} loss={loss:.4f} tokens/s={rate:.0f}", flush=True)
            since = time.monotonic()
        if config.get("save_path") and (step % int(config.get("save_steps", 50)) == 0 or step == steps):
            save(engine, Path(config["save_path"]), f"step{step:05d}")
            since = time.monotonic()
    after = held_out_loss(engine, held_out)
    reached = after <= args.target
    if first:
        verdict = "reached" if reached else "MISSED"
        print(f"gdgpt: held-out loss {before:.4f} -> {after:.4f}, target {args.target} {verdict}", flush=True)
    dist.barrier()
    dist.destroy_process_group()
    return 0 if reached else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: see examples/digits/train.py.
    os._exit(code)
