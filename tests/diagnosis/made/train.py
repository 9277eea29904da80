# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""A small training script that ends in the way its first argument names. record.py runs it."""

# mypy: ignore-errors
# ruff: noqa: PLC0415, F821, PTH123

import ctypes
import importlib
import json
import logging
import mmap
import os
import signal
import sys
import threading
import time
import warnings
from datetime import timedelta
from pathlib import Path

RANK = int(os.environ.get("RANK", "0"))
TIMEOUT = float(os.environ.get("INIT_TIMEOUT", "60"))


def start(seconds: float = TIMEOUT) -> None:
    """Join the other ranks."""
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds))


def train(first: int, last: int, shown: int = 1) -> None:
    """Some steps with an all-reduce in each, as data-parallel training has."""
    import torch
    import torch.distributed as dist

    for step in range(first, last):
        loss = torch.tensor([2.5 - 0.01 * step])
        dist.all_reduce(loss)
        if step % shown == 0:
            print(f"step {step} loss {float(loss) / dist.get_world_size():.4f}", flush=True)
        time.sleep(0.02)


def leave(number: int) -> None:
    """End this process by a signal, as the kernel or an operator does."""
    os.kill(os.getpid(), number)
    time.sleep(5)


def plain_signal() -> None:
    start()
    train(1, 6)
    if RANK == 1:
        leave(getattr(signal, os.environ["END_BY"]))
    train(6, 400, 50)


def read_null() -> None:
    start()
    train(1, 4)
    if RANK == 1:
        ctypes.string_at(0)
    train(4, 400, 50)


def wrong_instruction() -> None:
    start()
    train(1, 4)
    if RANK == 0:
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(b"\x0f\x0b")
        ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
    train(4, 400, 50)


def free_twice() -> None:
    start()
    train(1, 4)
    if RANK == 1:
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        block = libc.malloc(64)
        libc.free(ctypes.c_void_p(block))
        libc.free(ctypes.c_void_p(block))
    train(4, 400, 50)


def memory_map() -> None:
    """An array in /dev/shm that does not fit there: the kernel notices at the first write to a page."""
    import numpy

    start()
    train(1, 4)
    if RANK == 1:
        cache = numpy.memmap("/dev/shm/samples.npy", dtype="float32", mode="w+", shape=(16 << 20,))
        for at in range(0, cache.shape[0], 1024):
            cache[at] = at
    train(4, 400, 50)


def grow() -> None:
    """Take memory until there is none."""
    start()
    train(1, 4)
    kept = []
    if RANK == 1:
        for dummy in range(400):
            kept.append(bytearray(os.urandom(1 << 20) * 16))
            time.sleep(0.01)
    train(4, 400, 50)


def big_tensor() -> None:
    import torch

    start()
    train(1, 3)
    cache = torch.empty(6 << 30) if RANK == 1 else torch.empty(1)
    train(3, 300, 50)
    print(cache.shape)


def big_list() -> None:
    start()
    train(1, 3)
    rows: list = []
    while RANK == 0:
        rows.append([0] * (1 << 20))
    train(3, 300, 50)


def many_threads() -> None:
    start()
    train(1, 3)
    for dummy in range(200):
        if RANK == 1:
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    train(3, 300, 50)


class Samples:
    """A dataset of tensors; ``bad`` raises."""

    def __init__(self, bad: int = -1, size: int = 64) -> None:
        self.bad, self.size = bad, size

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> object:
        import torch

        if index == self.bad:
            raise ValueError(f"sample {index} has no label: {{'text': 'lorem', 'label': None}}")
        return torch.ones(self.size)


def open_files() -> None:
    from torch.utils.data import DataLoader

    start()
    kept = []
    for batch in DataLoader(Samples(), batch_size=1, num_workers=2):
        kept.append(batch)
        train(len(kept), len(kept) + 1)


def worker_raises() -> None:
    from torch.utils.data import DataLoader

    start()
    for step, dummy in enumerate(DataLoader(Samples(bad=9 if RANK else -1), batch_size=2, num_workers=1)):
        train(step, step + 1)


def worker_shm() -> None:
    from torch.utils.data import DataLoader

    start()
    for step, dummy in enumerate(DataLoader(Samples(size=1 << 20), batch_size=2, num_workers=2, prefetch_factor=4)):
        train(step, step + 1)
        time.sleep(0.2)


def save_torch() -> None:
    import torch

    start()
    train(1, 4)
    if RANK == 0:
        torch.save({"weight": torch.ones(1 << 20)}, Path(os.environ["CHECKPOINTS"]) / "step_4.pt")
    train(4, 300, 50)


def save_safetensors() -> None:
    import torch
    from safetensors.torch import save_file

    start()
    train(1, 4)
    if RANK == 0:
        save_file({"weight": torch.ones(1 << 20)}, Path(os.environ["CHECKPOINTS"]) / "model.safetensors")
    train(4, 300, 50)


def save_retried() -> None:
    """A disk that is full for a while; the script logs the exception and goes on. Then somebody kills rank 1."""
    start()
    train(1, 4)
    if RANK == 0:
        try:
            (Path(os.environ["CHECKPOINTS"]) / "step_4.pt").write_bytes(b"0" * (4 << 20))
        except OSError:
            logging.exception("checkpoint of step 4 was not saved, trying again at step 50")
    train(4, 60, 1)
    if RANK == 1:
        leave(signal.SIGKILL)
    train(60, 400, 50)


def late() -> None:
    """A rank that takes longer than the others wait."""
    start()
    train(1, 4)
    if RANK == 1:
        time.sleep(15)
    train(4, 6)


def barrier() -> None:
    import torch.distributed as dist

    start()
    train(1, 4)
    if RANK == 1:
        time.sleep(15)
    dist.monitored_barrier(timeout=timedelta(seconds=4))


def join() -> None:
    if RANK == 1:
        time.sleep(float(os.environ.get("COMES_LATE", "0")))
    start()
    train(1, 3)


def late_start() -> None:
    """Rank 0 starts later than the others, whose attempts to connect are refused for a while; later one is killed."""
    if RANK == 0:
        time.sleep(float(os.environ["COMES_LATE"]))
    plain_signal()


def import_first() -> None:
    """Rank 1 lacks a package; rank 0 waits for it."""
    if RANK == 1:
        import sentencepiece  # noqa: F401
    start()
    train(1, 3)


def two_operations() -> None:
    import torch
    import torch.distributed as dist

    start()
    train(1, 4)
    loss = torch.ones(4)
    if RANK == 0:
        dist.all_reduce(loss)
    else:
        dist.broadcast(loss, 0)


def two_shapes() -> None:
    import torch
    import torch.distributed as dist

    start()
    train(1, 4)
    dist.all_reduce(torch.ones(4 + RANK))
    train(4, 6)


def open_data() -> None:
    start()
    train(1, 3)
    path = f"/data/shards/part-{RANK:05d}.jsonl"
    if RANK == 0:
        path = __file__
    with open(path) as file:
        print(len(file.read()) > 1)
    train(3, 300, 50)


def load_checkpoint() -> None:
    import torch

    start()
    torch.load("/checkpoints/step_1200/pytorch_model.bin", map_location="cpu")


def load_folder() -> None:
    from transformers import AutoModelForCausalLM

    start()
    AutoModelForCausalLM.from_pretrained(os.environ["MODEL"])


def load_tokenizer() -> None:
    from transformers import AutoTokenizer

    start()
    AutoTokenizer.from_pretrained(os.environ["MODEL"])


def read_config() -> None:
    start()
    folder = Path(os.environ["CHECKPOINTS"])
    (folder / "ds_config.json").write_text('{"train_batch_size": 16,\n "zero_optimization": {"stage": 2,}\n}\n')
    json.loads((folder / "ds_config.json").read_text())


def import_module() -> None:
    name = os.environ["MODULE"]
    __import__(name)
    start()
    train(1, 3)


class LabelsMissing(Exception):
    """An exception of the script's own, without a text."""


def own_exception() -> None:
    start()
    train(1, 4)
    if RANK == 1:
        raise LabelsMissing
    train(4, 300, 50)


def several_lines() -> None:
    start()
    train(1, 4)
    rows = {"id": 7, "text": ""}
    if RANK == 1:
        raise ValueError(
            f"bad row:\n{json.dumps(rows, indent=2)}\nError: connection to the labelling service was refused earlier"
        )
    train(4, 300, 50)


def chained() -> None:
    start()
    train(1, 4)
    rows = {"prompt": "a"}
    try:
        rows["response"]
    except KeyError as error:
        if RANK == 0:
            raise RuntimeError("row 17 of the data cannot be used") from error
    train(4, 300, 50)


def assertion() -> None:
    start()
    train(1, 4)
    batch = list(range(RANK + 3))
    assert len(batch) == 3
    train(4, 300, 50)


def exit_text() -> None:
    start()
    train(1, 4)
    if RANK == 1:
        sys.exit("no improvement for 3 evaluations, giving up")
    train(4, 300, 50)


def exit_number() -> None:
    start()
    train(1, 4)
    if RANK == 1:
        sys.exit(3)
    train(4, 300, 50)


def group() -> None:
    start()
    train(1, 4)
    if RANK == 1:
        raise ExceptionGroup("2 rows failed", [ValueError("row 3 is empty"), TypeError("row 9 is a list")])
    train(4, 300, 50)


def syntax() -> None:
    path = Path(os.environ["CHECKPOINTS"]) / "model.py"
    path.write_text("def build(\n    layers = 2\nreturn layers\n")
    sys.path.insert(0, str(path.parent))
    start()
    import model

    model.build()


def recursion() -> None:
    start()
    train(1, 4)

    def depth(tree: list) -> int:
        return 1 + depth(tree)

    if RANK == 1:
        depth([])
    train(4, 300, 50)


def shapes() -> None:
    import torch

    start()
    train(1, 4)
    layer = torch.nn.Linear(16, 4)
    layer(torch.ones(2, 16 + RANK))
    train(4, 300, 50)


def index() -> None:
    import torch

    start()
    train(1, 4)
    words = torch.nn.Embedding(10, 4)
    words(torch.tensor([3, 9 + RANK]))
    train(4, 300, 50)


def in_place() -> None:
    import torch

    start()
    weight = torch.ones(3, requires_grad=True)
    out = weight.exp()
    out += 1
    out.sum().backward()


def not_saved_weights() -> None:
    import torch

    start()
    path = Path(os.environ["CHECKPOINTS"]) / f"old_{RANK}.pt"
    torch.save({"args": Path("x"), "weight": torch.ones(2)}, path)
    torch.load(path)


def caught_then_killed() -> None:
    """A traceback that is logged; sixty steps later the rank is killed."""
    start()
    try:
        import triton.ops  # noqa: F401
    except ImportError:
        logging.exception("fused kernels are not available, using the slow path")
    train(1, 61)
    if RANK == 1:
        leave(signal.SIGKILL)
    train(61, 400, 50)


def caught_near_end() -> None:
    """A traceback that is logged a few lines before the rank is killed."""
    start()
    train(1, 30)
    try:
        raise ConnectionError("HTTPSConnectionPool(host='metrics.example.org', port=443): Max retries exceeded")
    except ConnectionError:
        logging.exception("metrics were not sent")
    train(30, 34)
    if RANK == 1:
        leave(signal.SIGKILL)
    train(34, 400, 50)


def smaller_batch() -> None:
    """The script halves its batch after an allocation that failed; later another signal ends it."""
    import torch

    start()
    train(1, 3)
    for size in (1 << 42, 1 << 10):
        try:
            torch.empty(size)
            break
        except RuntimeError as error:
            print(f"batch too large, halving it: {error}", flush=True)
    train(3, 50)
    if RANK == 1:
        leave(signal.SIGTERM)
    train(50, 400, 50)


def thread_dies() -> None:
    def report() -> None:
        raise OSError("[Errno 101] Network is unreachable")

    start()
    train(1, 4)
    threading.Thread(target=report, name="reporter").start()
    train(4, 50)
    if RANK == 1:
        leave(signal.SIGKILL)
    train(50, 400, 50)


def warned() -> None:
    """Warnings that frighten; the end is a crash in compiled code."""
    warnings.warn("Cannot write the compile cache /root/.triton: [Errno 13] Permission denied", stacklevel=1)
    print("WARNING: CUDA extension apex was not found: No module named 'apex'. Using PyTorch's layer norm.", flush=True)
    start()
    train(1, 20)
    if RANK == 1:
        ctypes.string_at(0)
    train(20, 400, 50)


def warned_then_raises() -> None:
    print("wandb: WARNING Network error (ConnectionError), entering retry loop.", flush=True)
    print("WARNING: no cached model info: [Errno 2] No such file or directory: '/root/.cache/info'", flush=True)
    start()
    train(1, 20)
    if RANK == 1:
        raise KeyError("labels")
    train(20, 400, 50)


def deleted() -> None:
    """An exception in a destructor is printed and ignored."""

    class Reader:
        def __del__(self) -> None:
            raise BrokenPipeError(32, "Broken pipe")

    start()
    train(1, 4)
    Reader()
    train(4, 60)
    if RANK == 0:
        leave(signal.SIGKILL)
    train(60, 400, 50)


def engine(stage: int = 1, **more: object) -> object:
    """A DeepSpeed engine of a tiny model on the CPU."""
    import deepspeed
    import torch

    # Would compile an operator first, which these runs do not need.
    importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None
    deepspeed.init_distributed("gloo")
    model = torch.nn.Linear(8, 8)
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": stage},
        **more,
    }
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]


def engine_steps(ds: object, first: int, last: int) -> None:
    import torch

    for step in range(first, last):
        loss = ds(torch.ones(2, 8, dtype=next(ds.module.parameters()).dtype)).sum()
        ds.backward(loss)
        ds.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


def resume_none() -> None:
    """The first run has no checkpoint, as DeepSpeed warns; later rank 1 is killed."""
    ds = engine()
    ds.load_checkpoint(os.environ["CHECKPOINTS"])
    engine_steps(ds, 1, 45)
    if RANK == 1:
        leave(signal.SIGKILL)
    engine_steps(ds, 45, 400)


def checkpoint_cut() -> None:
    ds = engine()
    folder = Path(os.environ["CHECKPOINTS"])
    engine_steps(ds, 1, 3)
    ds.save_checkpoint(str(folder), tag="step_2")
    if RANK == 1:
        file = next(folder.glob("step_2/*zero_pp_rank_1*optim*"))
        file.write_bytes(file.read_bytes()[:1000])
    ds.load_checkpoint(str(folder), tag="step_2")


def long() -> None:
    start()
    train(1, 4000, 50)


def early() -> None:
    """Rank 1 believes that it is done."""
    start()
    train(1, 5)
    if RANK == 1:
        sys.exit(0)
    train(5, 300, 50)


def worker_killed() -> None:
    from torch.utils.data import DataLoader

    class Large(Samples):
        def __getitem__(self, index: int) -> object:
            if index == 9 and RANK == 1:
                leave(signal.SIGKILL)
            return super().__getitem__(index)

    start()
    for step, dummy in enumerate(DataLoader(Large(), batch_size=2, num_workers=1)):
        train(step, step + 1)


def folder_of_model(**config: object) -> Path:
    folder = Path(os.environ["CHECKPOINTS"]) / f"model_{RANK}"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def load_pointer() -> None:
    """A model cloned without git-lfs."""
    from transformers import AutoModelForCausalLM

    start()
    small = {"n_embd": 8, "n_layer": 1, "n_head": 1, "vocab_size": 16, "n_positions": 8}
    folder = folder_of_model(model_type="gpt2", architectures=["GPT2LMHeadModel"], **small)
    pointer = (
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2\n"
    )
    (folder / "model.safetensors").write_text(pointer + "size 4976698672\n")
    AutoModelForCausalLM.from_pretrained(folder)


def load_unknown() -> None:
    from transformers import AutoModelForCausalLM

    start()
    AutoModelForCausalLM.from_pretrained(folder_of_model(model_type="qwen9_moe"))


def load_flash() -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    start()
    config = AutoConfig.for_model("llama", hidden_size=8, num_hidden_layers=1, num_attention_heads=1, vocab_size=16)
    AutoModelForCausalLM.from_config(config, attn_implementation="flash_attention_2")


def compiled() -> None:
    import torch

    start()
    torch.compile(lambda value: (value * 2).sin())(torch.ones(4))
    train(1, 4)


def locked() -> None:
    """One rank writes a file that the other reads."""
    import h5py
    import torch.distributed as dist

    start()
    path = os.environ["DATA"]
    if RANK == 0:
        file = h5py.File(path, "w")
    dist.barrier()
    if RANK == 1:
        file = h5py.File(path, "r")
    train(1, 200, 50)
    print(file)


def write_result() -> None:
    start()
    train(1, 4)
    if RANK == 0:
        (Path(os.environ["CHECKPOINTS"]) / "metrics.json").write_text("{}")
    train(4, 300, 50)


def numbers_then_killed() -> None:
    """pandas tries an optional package built for NumPy 1, and does without it."""
    import pandas

    start()
    train(1, 40)
    print(len(pandas.DataFrame({"loss": [1.0]})), "rows", flush=True)
    if RANK == 1:
        leave(signal.SIGKILL)
    train(40, 400, 50)


def half_steps() -> None:
    """Rank 0 is killed in fp16 training."""
    ds = engine(1, bf16={"enabled": False}, fp16={"enabled": True, "initial_scale_power": 32})
    engine_steps(ds, 1, 25)
    if RANK == 0:
        leave(signal.SIGKILL)
    engine_steps(ds, 25, 400)


def batch_size() -> None:
    engine(train_batch_size=15)


def other_model() -> None:
    import torch

    ds = engine(0)
    folder = Path(os.environ["CHECKPOINTS"])
    ds.save_checkpoint(str(folder), tag="step_2")
    ds.module.bias = None
    ds.module.weight = torch.nn.Parameter(torch.ones(8, 6))
    ds.load_checkpoint(str(folder), tag="step_2")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
