# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""The rows that may be chosen, with what the user set put in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .numbers import key, major, minor
from .requested import RequestedVersions, cuda_of_name
from .table import EXTRAS, Cuda, Stack, Table

PYTORCH_INDEX = "https://download.pytorch.org/whl/"


@dataclass(frozen=True)
class Candidate:
    """One combination. ``release`` and ``row`` are empty where the table does not know this PyTorch or its CUDA."""

    stack: str
    cuda: str
    torch: str
    release: str
    index: str
    nccl: str
    toolkit: str
    row: Cuda | None

    @property
    def compiler(self) -> tuple[str, ...]:
        """Return the requirements that bring nvcc, none where no wheel has it."""
        return (f"cuda-toolkit[{EXTRAS}]=={self.toolkit}",) if self.toolkit else ()

    def kernels(self, *, arm: bool = False) -> tuple[str, ...]:
        """Return the compute capabilities that this PyTorch has code for, on aarch64 with ``arm``."""
        if self.row is None:
            return ()
        if arm:
            return self.row.aarch64
        last = self.row.kernels.items()
        return tuple(name for name, until in last if not until or not self.release or minor(self.release) <= key(until))


def fixed_cuda(requested: RequestedVersions, table: Table) -> str:
    """Return the CUDA that follows from what the user set, empty where it is free."""
    if requested.cuda:
        return requested.cuda
    named = cuda_of_name(requested.index_name) or cuda_of_name(requested.local)
    row = table.torch_row(requested.release)
    return named or (row.cuda if row else "")


def candidates(requested: RequestedVersions, table: Table, *, arm: bool = False) -> Iterator[Candidate]:
    """Yield the combinations that what the user set leaves open, in the order of the table; one at least.

    ``arm``: whether hosts are aarch64, for which the ordinary index has no CUDA with older releases of PyTorch.
    """
    fixed = fixed_cuda(requested, table)
    found = False
    for stack in table.gpu_stacks():
        # An index of the user's that does not name its build is an ordinary one: it has what brings its own CUDA.
        another_index = bool(requested.torch_index and not requested.index_name and stack.index)
        if fixed in ("", stack.cuda) and not another_index:
            found = True
            yield candidate(requested, table, stack, arm=arm)
    if not found:
        name = f"cu{fixed.replace('.', '')}"
        release = next((row.release for row in table.torch if row.cuda == fixed), "")
        stack = Stack(name, fixed, release, "" if release else f"{PYTORCH_INDEX}{name}", "")
        yield candidate(requested, table, stack, arm=arm)


def candidate(requested: RequestedVersions, table: Table, stack: Stack, *, arm: bool = False) -> Candidate:
    """Put what the user set into a row."""
    row = table.cuda_row(stack.cuda)
    pinned = requested.release if requested.torch else stack.torch
    torch = table.torch_row(pinned)
    index = requested.torch_index or stack.index
    if requested.torch and torch and not requested.torch_index:
        # The ordinary index has one build of each release; the others are in PyTorch's own.
        index = "" if torch.cuda == stack.cuda else f"{PYTORCH_INDEX}cu{stack.cuda.replace('.', '')}"
    if arm and not index and torch and torch.aarch64 == "cpu" and not requested.local:
        index = _own_index(stack.cuda, pinned, table)
    nccl = torch.nccl if torch and major(torch.cuda) == major(stack.cuda) else ""
    toolkit = torch.toolkit if torch and torch.cuda == stack.cuda else row.toolkit if row else ""
    requirement = requested.torch or (f"torch=={stack.torch}" if stack.torch else "torch")
    return Candidate(stack.name, stack.cuda, requirement, pinned, index, nccl, toolkit, row)


def _own_index(cuda: str, release: str, table: Table) -> str:
    """Return PyTorch's own index for a CUDA where it has the release, else nothing: then wheel_problems says so."""
    row = next((one for one in table.indices if cuda and one.cuda == cuda), None)
    there = row and key(row.first) <= minor(release) and (not row.last or minor(release) <= key(row.last))
    return f"{PYTORCH_INDEX}{row.name}" if row and there else ""
