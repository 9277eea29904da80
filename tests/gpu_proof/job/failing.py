# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Fail in one way that only a GPU, its libraries or NCCL can fail in. Launched by the role deepspeed_launch.

Nothing here changes a setting of the GPU or of the machine, and no memory of the host is filled: where that is what
fails, the process limits itself first.

Usage: failing.py --how allocator
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator

GIB = 1024**3
_KERNEL = """
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
__global__ void add(float* numbers) { numbers[threadIdx.x] += 1; }
void add_one(torch::Tensor t) {
  add<<<1, 32>>>(t.data_ptr<float>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""


def allocator() -> None:
    """Request more from torch's allocator than the GPU has."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.empty(2 * total, dtype=torch.uint8, device="cuda")


def cublas() -> None:
    """Leave cuBLAS no memory for its handle."""
    left, right = (torch.ones(64, 64, device="cuda") for dummy in range(2))
    held = []
    for size in (GIB, 64 * 1024**2, 2 * 1024**2):
        try:
            while True:
                held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            continue
    print(left @ right, len(held))


def ordinal() -> None:
    """Use a GPU that is not there."""
    torch.cuda.set_device(torch.cuda.device_count())
    torch.ones(1, device="cuda")


def index() -> None:
    """Look up a token that the vocabulary does not have."""
    table = torch.nn.Embedding(16, 8).cuda()
    print(table(torch.full((4,), 99, device="cuda")).sum().item())


def address() -> None:
    """Write where nothing was allocated. What compiles the kernel is private to torch, which has nothing public."""
    write = torch.cuda._compile_kernel('extern "C" __global__ void far(long* at) { *(long*)at[0] = 1; }', "far")
    write(grid=(1, 1, 1), block=(1, 1, 1), args=[torch.full((1,), 64, dtype=torch.long, device="cuda")])
    torch.cuda.synchronize()


def architecture() -> None:
    """Run a kernel that was compiled for an older GPU only."""
    from torch.utils.cpp_extension import load_inline  # noqa: PLC0415 - it searches for compilers

    os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0" if torch.cuda.get_device_capability()[0] != 8 else "7.5"
    with tempfile.TemporaryDirectory() as folder:
        declared = "void add_one(torch::Tensor t);"
        built = load_inline("older", declared, _KERNEL, functions=["add_one"], build_directory=folder)
        built.add_one(torch.ones(32, device="cuda"))
        torch.cuda.synchronize()


def twice() -> None:
    """Let two ranks train on one GPU."""
    torch.multiprocessing.spawn(_one_of_two, nprocs=2)


def _one_of_two(rank: int) -> None:
    torch.cuda.set_device(0)
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_PORT=str(int(os.environ["MASTER_PORT"]) + 1))
    dist.init_process_group("nccl")
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()


def interface() -> None:
    """Name an interface that is not there to NCCL."""
    os.environ["NCCL_SOCKET_IFNAME"] = "=nosuch0"
    deepspeed.init_distributed(dist_backend="nccl")
    dist.all_reduce(torch.ones(1, device="cuda"))


def none() -> None:
    """Hide all GPUs."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.ones(1, device="cuda")


def toolkit() -> None:
    """Build an operator without CUDA's compiler."""
    os.environ["CUDA_HOME"] = "/nonexistent"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCH_EXTENSIONS_DIR"] = folder
        parameter = torch.nn.Parameter(torch.ones(8, device="cuda"))
        deepspeed.ops.adam.FusedAdam([parameter])


def pinned() -> None:
    """Pin memory of the host that the process may not have."""
    torch.ones(1, device="cuda")
    size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 3 * GIB // 4, size + 3 * GIB // 4))
    get_accelerator().pin_memory(torch.empty(GIB // 2, dtype=torch.uint8))


def precision() -> None:
    """Give a model in bf16 inputs in fp32."""
    torch.nn.Linear(8, 8).to("cuda", torch.bfloat16)(torch.ones(4, 8, device="cuda"))


def letter() -> None:
    """Build an operator for an architecture with a letter."""
    os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0a"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCH_EXTENSIONS_DIR"] = folder
        deepspeed.ops.op_builder.FusedAdamBuilder().load()


def own() -> None:
    """Raise, which any machine can: for a rehearsal."""
    raise LookupError("the seventh shard is not there")


_ON_GPU = (allocator, cublas, ordinal, index, address, architecture, twice, interface, none, toolkit, pinned)
HOW: dict[str, Callable[[], None]] = {run.__name__: run for run in (*_ON_GPU, precision, letter, own)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--how", choices=sorted(HOW), required=True)
    parser.add_argument("--local_rank", type=int, default=-1)
    HOW[parser.parse_args().how]()


if __name__ == "__main__":
    main()
