# Copyright (c) 2026 The swarmspeed.cluster founders
# Apache-2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

"""Writes docs/versions.md from the table of versions.

Usage: ``python -m tests.write_versions [--check]``. With --check nothing is written, and the exit status is 1 when the
page is stale. The unit test tests/unit/plugins/plugin_utils/versions/test_versions_page.py asks the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "collections")]

from ansible_collections.swarmspeed.cluster.plugins.module_utils.gpu.pci import GENERATIONS
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.numbers import runs
from ansible_collections.swarmspeed.cluster.plugins.plugin_utils.versions.table import (
    Stack,
    Table,
    load_table,
)

PAGE = ROOT / "docs" / "versions.md"

GENERATION_CAPABILITIES = {
    "Maxwell": "5.0, 5.2",
    "Pascal": "6.0, 6.1",
    "Volta": "7.0",
    "Turing": "7.5",
    "Ampere": "8.0, 8.6",
    "Ada": "8.9",
    "Hopper": "9.0",
    "Blackwell": "10.0, 10.3, 12.0, 12.1",
}

INTRODUCTION = """\
# Versions: what goes together, and what is chosen

<!-- Written from plugins/plugin_utils/versions/table.yml: python -m tests.write_versions -->

Driver, CUDA, PyTorch and DeepSpeed only work in certain combinations. `preflight` takes the GPUs and drivers that it
finds and chooses a row from the table below, before anything is changed; it prints what it chose and why. What was
read where is at the end; the table was read on {read}.

- **What you set wins.** `training_image_torch`, `training_image_torch_index`, `training_image_cuda`,
  `training_image_compute_capabilities`, `training_image_base`, `nvidia_driver_branch`, `nvidia_driver_source` and
  `nvidia_driver_min_version` are taken as they are, and the rest follows from them. Where they cannot work together,
  preflight names what, where, and the nearest row that works ([troubleshooting.md](troubleshooting.md)).
- **The same before a driver is installed and after.** Compute capabilities come from the PCI numbers of the GPUs.
  Where a chip is newer than this table, nvidia-smi is asked; where neither knows it, set
  `training_image_compute_capabilities`.
- **Several generations in one cluster** get a row that has code for all of them. Hosts with `gpu_slots: 0` do not
  count.
- **A working driver stays.** Where it is older than CUDA 13 needs and nothing asks for another one, a row with CUDA 12
  is chosen.
"""


def page(table: Table) -> str:
    """Return the whole page."""
    parts = [
        INTRODUCTION.format(read=table.read),
        "## Rows\n\nFrom the top, the first that has code for every GPU and that every driver runs.\n",
        _table(("row", "CUDA", "driver", "PyTorch", "from", "NCCL", "compiler", "GPUs"), _stacks(table)),
        _NVCC,
        _ARM,
        f"DeepSpeed is {table.deepspeed} in every row.\n",
        "## GPUs\n",
        _table(("generation", "compute capability", "last driver branch", "rows"), _generations(table)),
        "## Drivers\n\n" + _DRIVERS,
        _table(("distribution", "source", "branch", "end of life", "key", "read", "tried"), _drivers(table)),
        _BUILDS,
        _table(("Linux, from", "branch", "oldest driver that builds", "read"), _builds(table)),
        "## Hosts and engines, and until when\n\n" + _LIFETIMES,
        _table(("host", "state", "security updates until", "and then", "read"), _systems(table)),
        _UNTRIED,
        _table(("Docker Engine", "last release", "read"), _engines(table)),
        "## Releases of PyTorch from the ordinary package index\n",
        _table(("PyTorch", "CUDA", "NCCL", "Python", "cuda-toolkit", "on aarch64"), _torch(table)),
        "PyTorch's own indices have other builds:\n",
        _table(("index", "CUDA", "PyTorch", "read"), _indices(table)),
        "## Pairs and releases that are known to be bad\n",
        _table(("what", "why", "read"), _bad(table)),
        "## Published holes\n\n" + _HOLES,
        _table(("hole", "published", "what", "before", "read"), _holes(table)),
        "## Other parts\n",
        _table(("part", "default", "note", "read"), _parts(table)),
        _PROVEN,
        "## Sources\n",
        _table(("short name", "where"), ((f"`{name}`", where) for name, where in table.sources.items())),
    ]
    return "\n".join(parts)


_NVCC = """\
"base image": the package index has no nvcc for CUDA 12 (its nvidia-cuda-nvcc-cu12 holds ptxas alone), so the image is
built in NVIDIA's `nvidia/cuda:…-devel-ubuntu24.04` of that release, and begins with the `-base-` image beside it,
unless `training_image_base` names another. Only the rows with a `cuda-toolkit` have been built here.
"""

_ARM = """\
On aarch64 (GH200, GB200) the wheels have code for fewer GPUs: 8.0 and 9.0 with CUDA 12.6, and 10.0 and 12.0 too from
12.8 on. The ordinary index has no CUDA for aarch64 up to PyTorch 2.10, so the row `cu128` takes PyTorch's own index
there.
"""

_LIFETIMES = """\
Preflight warns of a host or an engine that is past its end, with the date (check `end_of_life`). *Tried* is deployed in
the lab; of what is *accepted* the packages were resolved from the real indices, and no host of it was deployed.
"""

_UNTRIED = """\
Ubuntu 26.04 is untried, and preflight refuses it: its kernel 7.0 needs newer drivers than the table has, its Python
3.14 and sudo-rs newer releases of ansible-core, and nvcc of CUDA 13.0 does not compile with its C library, so that
`ubuntu:26.04` as `training_image_base` takes the row `cu132`. `preflight_skip: [distribution]` tries it all the same.

A distribution's own docker.io gets the distribution's updates. From Docker's repository these get none any more:
"""

_HOLES = """\
Preflight warns of them while the version is installed (check `end_of_life`). For the container toolkit no release has
neither the hole nor a report of containers in which CUDA fails. 1.18.2 stays the default: an image that exploits the
hole has to be run on the hosts first, and this collection runs the training image alone, whereas CUDA that fails stops
every job.
"""

_DRIVERS = """\
`nvidia_driver_source: auto` takes the distribution's driver while its branch is supported, and NVIDIA's repository
where it has ended. For that repository its key is needed as text in `nvidia_driver_repository_key`; the file stands
beside the packages. [gpu_hosts.md](gpu_hosts.md) says more.
"""

_BUILDS = """\
"Tried": the packages were chosen from the distribution's indices; for `cuda_repository`, from its documentation. A
driver whose module is built on the host (DKMS) must be new enough for the kernel. This is checked before anything is
installed; modules that Ubuntu built itself are not concerned.
"""

_PROVEN = """\
## Proven on what

| | |
|---|---|
| rows from the ordinary index: CUDA, toolkit, NCCL, Python | package metadata, resolved by pip (`make resolve`) |
| the choice, every refusal | facts written by hand, unit tests |
| the row cu130 with DeepSpeed 0.19.8: operators built | by hand without a GPU (Debian 12), and on an H100 |
| rows from PyTorch's own indices | the sources named; the indices were not at hand |
| cu130 on a GPU | PyTorch 2.11.0, not the default, on an H100: [gpu_hosts.md](gpu_hosts.md#proof-on-a-gpu) |
| any other row on a GPU | nothing yet |
| aarch64 | package metadata of its wheels; nothing was run |
"""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _stacks(table: Table) -> Iterator[list[str]]:
    for stack in table.stacks:
        cuda, torch = table.cuda_row(stack.cuda), table.torch_row(stack.torch)
        own = bool(torch and torch.cuda == stack.cuda)
        compiler = f"`cuda-toolkit` {torch.toolkit}" if torch and own and torch.toolkit else "base image"
        yield [
            f"`{stack.name}`",
            stack.cuda or "none",
            f"{cuda.driver} or later" if cuda else "none",
            stack.torch,
            stack.index or "the ordinary index",
            torch.nccl if torch and own else "what it brings" if cuda else "none",
            compiler if cuda else "none",
            ", ".join(_capabilities(table, stack)) or "none",
        ]


def _capabilities(table: Table, stack: Stack) -> list[str]:
    row = table.cuda_row(stack.cuda)
    known = [text for names in GENERATION_CAPABILITIES.values() for text in names.split(", ")]
    return [one for one in known if row and one in row.compiles and any(runs(code, one) for code in row.kernels)]


def _generations(table: Table) -> Iterator[list[str]]:
    for name, capabilities in GENERATION_CAPABILITIES.items():
        wanted = capabilities.split(", ")
        rows = [stack.name for stack in table.gpu_stacks() if set(wanted) <= set(_capabilities(table, stack))]
        some = [stack.name for stack in table.gpu_stacks() if set(wanted) & set(_capabilities(table, stack))]
        partly = [f"`{one}` (in part)" for one in some if one not in rows]
        last = GENERATIONS[name].last_branch
        yield [name, capabilities, str(last or "none yet"), ", ".join([*(f"`{one}`" for one in rows), *partly])]


def _drivers(table: Table) -> Iterator[list[str]]:
    for row in table.drivers:
        ended = " (ended)" if table.has_ended(row) else ""
        key = f"`{row.key}` {row.fingerprint}" if row.key else "the distribution's"
        where, tried = f"{row.distribution.capitalize()} {row.release}", "yes" if row.tried else "no"
        yield [where, f"`{row.source}`", str(row.branch), row.end + ended, key, f"`{row.read}`", tried]


def _builds(table: Table) -> Iterator[list[str]]:
    for row in table.builds:
        yield [row.linux, str(row.branch), row.driver or "none", row.source]


def _torch(table: Table) -> Iterator[list[str]]:
    for row in table.torch:
        arm = "CUDA" if row.aarch64 == "cuda" else "CPU alone"
        yield [row.release, row.cuda, row.nccl, " to ".join(row.python), row.toolkit or "none", arm]


def _systems(table: Table) -> Iterator[list[str]]:
    for row in table.systems:
        yield [row.name, row.state, row.end, f"{row.by} until {row.further}", f"`{row.source}`"]


def _engines(table: Table) -> Iterator[list[str]]:
    for row in table.engines:
        yield [row.release, row.end, f"`{row.source}`"]


def _holes(table: Table) -> Iterator[list[str]]:
    for row in table.holes:
        yield [row.name, row.published, row.why, f"{row.part} {row.before}", row.source]


def _indices(table: Table) -> Iterator[list[str]]:
    for row in table.indices:
        span = f"{row.first} to {row.last}" if row.last else f"{row.first} and later"
        yield [f"`{row.name}`", row.cuda or "none", span, f"`{row.source}`"]


def _bad(table: Table) -> Iterator[list[str]]:
    for pair in table.deepspeed_pairs:
        cuda = f" and CUDA {pair.cuda} or later" if pair.cuda else ""
        yield [f"DeepSpeed before {pair.before} with PyTorch {pair.torch} or later{cuda}", pair.why, pair.source]
    for part in table.parts:
        for bad in part.bad:
            yield [f"{part.name} {bad.versions}", bad.why, bad.source]


def _parts(table: Table) -> Iterator[list[str]]:
    for part in table.parts:
        yield [part.name, part.default or "not set", part.note, f"`{part.source}`"]


def main(arguments: list[str]) -> int:
    """Write the page, or with --check say whether it is fresh."""
    fresh = page(load_table())
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == fresh:
        return 0
    if arguments == ["--check"]:
        print(f"{PAGE.relative_to(ROOT)} is stale. Remedy: python -m tests.write_versions", file=sys.stderr)
        return 1
    PAGE.write_text(fresh, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
